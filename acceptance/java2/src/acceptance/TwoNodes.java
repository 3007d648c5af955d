package acceptance;

import com.couchbase.client.java.PersistTo;
import com.couchbase.client.java.ReplicaMode;
import com.couchbase.client.java.ReplicateTo;
import com.couchbase.client.java.document.JsonDocument;
import java.util.List;
import java.util.stream.IntStream;

/** Cases: two nodes, one replica. */
final class TwoNodes {
  private static final int COUNT = 40;

  static void declare(Cases cases) {
    cases.add("sdk-observed-writes-reach-the-replica", TwoNodes::observed);
    cases.add("sdk-replicas-can-be-read", TwoNodes::replicas);
  }

  private static List<String> keys(String name) {
    return IntStream.range(0, COUNT).mapToObj(index -> name + "-" + index).toList();
  }

  private static void expectCopies(Sdk sdk, String key, int wanted) {
    List<JsonDocument> copies = sdk.bucket.getFromReplica(key, ReplicaMode.ALL);
    Expect.equal(copies.size(), 2, "copies");
    for (JsonDocument copy : copies) {
      Expect.equal(copy.content().getInt("n"), wanted, "copy");
    }
  }

  private static void observed(Sdk sdk) {
    for (String key : keys("observed")) {
      sdk.bucket.insert(Sdk.numbered(key, 1), ReplicateTo.ONE);
      expectCopies(sdk, key, 1);
      sdk.bucket.replace(Sdk.numbered(key, 2), PersistTo.TWO, ReplicateTo.ONE);
      expectCopies(sdk, key, 2);
      sdk.bucket.remove(key, PersistTo.TWO);
      Expect.that(sdk.isGone(key), "it is removed");
    }
  }

  private static void replicas(Sdk sdk) {
    for (String key : keys("replica")) {
      sdk.bucket.upsert(Sdk.numbered(key, 7), ReplicateTo.ONE);
      List<JsonDocument> copies = sdk.bucket.getFromReplica(key, ReplicaMode.FIRST);
      Expect.equal(copies.get(0).content().getInt("n"), 7, "the copy of the replica");
    }
    Expect.equal(sdk.bucket.getFromReplica("absent", ReplicaMode.ALL), List.of(), "nothing");
  }
}
