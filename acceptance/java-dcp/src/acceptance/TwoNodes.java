package acceptance;

import com.couchbase.client.dcp.StreamFrom;
import com.couchbase.client.dcp.StreamTo;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.zip.CRC32;

/** Cases: two nodes, one replica. */
final class TwoNodes {
  /** How many the cluster has; the active copies of the even ones are on the first node. */
  private static final int VBUCKETS = Integer.parseInt(System.getenv("SETTEE_VBUCKETS"));

  static void declare(Cases cases) {
    cases.add("tls-two-nodes",
        sdk -> Connecting.streams(sdk, Connecting.byPassword("SETTEE_AUTHORITY")));
    cases.add("sdk-streams-come-from-both-nodes", TwoNodes::both);
    cases.add("sdk-mitigated-rollbacks-wait-for-the-replica", TwoNodes::mitigation);
    cases.add("sdk-lost-changes-are-rolled-back", TwoNodes::lost);
    // Behind the case before, everything is on the second node.
    cases.add("sdk-failover-moves-streams", TwoNodes::failover);
  }

  private static void both(Sdk sdk) throws Exception {
    sdk.writer.churn("both", 1000, 300);
    Consumer got = Consumer.toNow(builder -> { });
    got.expectDocuments(sdk.writer);
    Expect.equal(got.connections.get(), 2, "connections");
    try (Consumer consumer = Consumer.following(builder -> { })) {
      sdk.writer.churn("follow", 1000, 300);
      consumer.catchUp();
      consumer.expectDocuments(sdk.writer.documents, key -> key.contains(".follow-"));
    }
  }

  private static boolean isOnFirst(String key) {
    CRC32 sum = new CRC32();
    sum.update(key.getBytes());
    return (sum.getValue() >>> 16 & 0x7fff) % VBUCKETS % 2 == 0;
  }

  private static List<String> onFirst(String name) {
    return Writer.keys(name, 100).stream().filter(TwoNodes::isOnFirst).toList();
  }

  /** What the replica does not have yet is not shown, since a failover would take it away. */
  private static void mitigation(Sdk sdk) throws Exception {
    try (Consumer consumer = Consumer.following(
        builder -> builder.mitigateRollbacks(50, TimeUnit.MILLISECONDS))) {
      sdk.writer.storeMany("safe", 100, 10);
      Expect.within(Consumer.LIMIT, () -> consumer.documents().size() == 100, "all have come");
      sdk.order("CLUSTER pause 1");
      List<String> held = onFirst("held");
      sdk.writer.storeMany(sdk.writer.collection, held, 10);
      Thread.sleep(Consumer.BRIEF.toMillis());
      Expect.equal(consumer.documents().size(), 100, "documents that have come");
      sdk.order("CLUSTER resume 1");
      consumer.catchUp();
      Expect.equal(consumer.documents().size(), 100 + held.size(), "documents that have come");
      Expect.equal(consumer.faults(), List.of(), "faults");
    }
  }

  private static void awaitWrites(Sdk sdk) throws Exception {
    for (String key : Writer.keys("writable", 20)) {
      Expect.within(Consumer.LIMIT, () -> Expect.succeeds(
          () -> sdk.writer.store(key, Writer.json(key, 10))), "the SDK writes");
    }
  }

  private static void failover(Sdk sdk) throws Exception {
    try (Consumer consumer = Consumer.connect()) {
      consumer.begin(StreamFrom.BEGINNING, StreamTo.INFINITY);
      sdk.writer.churn("failover", 500, 100);
      consumer.catchUp();
      sdk.order("CLUSTER replicated");
      sdk.order("CLUSTER kill 1");
      sdk.order("CLUSTER failover 1");
      awaitWrites(sdk);
      sdk.writer.churn("failover", 500, 200);
      consumer.catchUp();
      consumer.expectDocuments(sdk.writer);
      sdk.order("CLUSTER recover 1");
      sdk.order("CLUSTER replicated");
      awaitWrites(sdk);
      sdk.writer.churn("failover", 500, 300);
      consumer.catchUp();
      consumer.expectDocuments(sdk.writer);
    }
  }

  /** The node that is promoted never had what a consumer has. */
  private static void lost(Sdk sdk) throws Exception {
    try (Consumer consumer = Consumer.connect()) {
      consumer.begin(StreamFrom.BEGINNING, StreamTo.INFINITY);
      sdk.writer.churn("kept", 500, 100);
      sdk.order("CLUSTER replicated");
      sdk.order("CLUSTER kill 1");
      List<String> lost = onFirst("lost");
      sdk.writer.storeMany(sdk.writer.collection, lost, 10);
      Expect.within(Consumer.LIMIT, () -> lost.stream().allMatch(key -> consumer.documents()
          .containsKey(Writer.qualified(sdk.writer.collection, key))), "the consumer has them");
      sdk.order("CLUSTER kill 0");
      sdk.order("CLUSTER restart 1");
      sdk.order("CLUSTER failover 0");
      sdk.writer.documents.keySet().removeIf(key -> key.contains(".lost-"));
      awaitWrites(sdk);
      sdk.writer.churn("kept", 500, 200);
      Expect.within(Consumer.LIMIT, () -> consumer.documents().keySet()
          .equals(sdk.writer.documents.keySet()), "what was lost is taken back");
      consumer.catchUp();
      consumer.expectDocuments(sdk.writer);
      Expect.that(!consumer.rollbacks().isEmpty(), "it was rolled back");
      sdk.order("CLUSTER recover 0");
      sdk.order("CLUSTER replicated");
    }
  }
}
