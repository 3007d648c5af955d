package acceptance;

import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;

/** Cases: data structures, which the SDK makes of documents and their parts. */
final class Structures {
  static void declare(Cases cases) {
    cases.add("lists", sdk -> {
      List<String> list = sdk.collection.list(sdk.key(), String.class);
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
      Map<String, Integer> map = sdk.collection.map(sdk.key(), Integer.class);
      map.put("a", 1);
      map.put("b", 2);
      Expect.equal(List.of(map.get("b"), map.size(), map.containsKey("c")), List.of(2, 2, false),
          "entry, size, existence");
      map.remove("a");
      Expect.equal(Map.copyOf(map), Map.of("b", 2), "entries");
    });
    cases.add("queues", sdk -> {
      Queue<String> queue = sdk.collection.queue(sdk.key(), String.class);
      List.of("first", "second", "third").forEach(queue::add);
      Expect.equal(queue.poll(), "first", "the first one");
      Expect.equal(queue.peek(), "second", "the next one");
      Expect.equal(queue.size(), 2, "size");
    });
    cases.add("sets", sdk -> {
      Set<String> set = sdk.collection.set(sdk.key(), String.class);
      Expect.that(set.add("a"), "a new element");
      Expect.that(!set.add("a"), "one that is there");
      set.add("b");
      Expect.that(set.contains("b"), "contained");
      set.remove("a");
      Expect.equal(Set.copyOf(set), Set.of("b"), "elements");
    });
  }
}
