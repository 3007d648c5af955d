package acceptance;

import com.couchbase.client.java.datastructures.collections.CouchbaseArrayList;
import com.couchbase.client.java.datastructures.collections.CouchbaseArraySet;
import com.couchbase.client.java.datastructures.collections.CouchbaseMap;
import com.couchbase.client.java.datastructures.collections.CouchbaseQueue;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;

/** Cases: data structures, which the SDK makes of documents and their parts. */
final class Structures {
  static void declare(Cases cases) {
    cases.add("lists", sdk -> {
      List<String> list = new CouchbaseArrayList<>(sdk.key(), sdk.bucket);
      list.add("b");
      list.add("c");
      list.add(0, "a");
      Expect.equal(List.copyOf(list), List.of("a", "b", "c"), "elements");
      Expect.equal(List.of(list.get(1), list.indexOf("c"), list.size()), List.of("b", 2, 3),
          "element, index, size");
      list.remove(0);
      list.set(0, "x");
      Expect.equal(List.copyOf(list), List.of("x", "c"), "elements");
    });
    cases.add("maps", sdk -> {
      Map<String, Integer> map = new CouchbaseMap<>(sdk.key(), sdk.bucket);
      map.put("a", 1);
      map.put("b", 2);
      Expect.equal(List.of(map.get("b"), map.size(), map.containsKey("c")), List.of(2, 2, false),
          "entry, size, existence");
      map.remove("a");
      Expect.equal(Map.copyOf(map), Map.of("b", 2), "entries");
    });
    cases.add("queues", sdk -> {
      Queue<String> queue = new CouchbaseQueue<>(sdk.key(), sdk.bucket);
      List.of("first", "second", "third").forEach(queue::add);
      Expect.equal(queue.poll(), "first", "the first one");
      Expect.equal(queue.poll(), "second", "the next one");
      Expect.equal(queue.size(), 1, "size");
    });
    cases.add("sets", sdk -> {
      Set<String> set = new CouchbaseArraySet<>(sdk.key(), sdk.bucket);
      Expect.that(set.add("a"), "a new element");
      Expect.that(!set.add("a"), "one that is there");
      set.add("b");
      Expect.that(set.contains("b"), "contained");
      set.remove("a");
      Expect.equal(Set.copyOf(set), Set.of("b"), "elements");
    });
  }
}
