package acceptance;

import static com.couchbase.client.java.manager.bucket.BucketType.COUCHBASE;

import com.couchbase.client.dcp.StreamFrom;
import com.couchbase.client.dcp.StreamTo;
import com.couchbase.client.dcp.highlevel.DocumentChange;
import com.couchbase.client.dcp.highlevel.SnapshotMarker;
import com.couchbase.client.dcp.highlevel.StreamOffset;
import com.couchbase.client.dcp.message.SnapshotMarkerFlag;
import com.couchbase.client.java.manager.bucket.BucketManager;
import com.couchbase.client.java.manager.bucket.BucketSettings;
import java.util.List;
import java.util.Map;

/** Cases: consumers that have what the node does not, and nodes that begin again. */
final class Histories {
  private static final String BUCKET = "orders";
  private static final int BEYOND = 1000;

  static void declare(Cases cases) {
    cases.add("an-unknown-branch-rolls-back-to-the-beginning", Histories::unknownBranch);
    cases.add("a-seqno-beyond-the-end-rolls-back-to-it", Histories::beyondTheEnd);
    cases.add("a-flushed-bucket-rolls-its-consumers-back", Histories::flushed);
    cases.add("a-dropped-bucket-ends-its-streams", Histories::dropped);
    cases.add("connects-again-after-a-restart", Histories::restart);
    cases.add("streams-from-files-after-a-restart", Histories::fromFiles);
  }

  /** A consumer that has everything. */
  private static Consumer whole(Sdk sdk) throws Exception {
    sdk.writer.churn("history", 300, 100);
    return Consumer.toNow(builder -> { });
  }

  private static void unknownBranch(Sdk sdk) throws Exception {
    Consumer before = whole(sdk);
    int vbucket = busy(before);
    long seqno = before.seqno(vbucket);
    try (Consumer consumer = before.successor()) {
      consumer.goOn(Map.of(vbucket, place(0xbad, seqno)));
      Expect.within(Consumer.LIMIT, () -> !consumer.rollbacks().isEmpty(), "it is rolled back");
      Expect.within(Consumer.LIMIT, () -> consumer.seqno(vbucket) >= seqno, "all comes again");
      consumer.expectDocuments(sdk.writer);
      Expect.equal(consumer.rollbacks().size(), 1, "rollbacks");
      Expect.equal(consumer.rollbacks().get(0).getSeqno(), 0L, "where it goes back to");
    }
  }

  private static void beyondTheEnd(Sdk sdk) throws Exception {
    Consumer before = whole(sdk);
    int vbucket = busy(before);
    long seqno = before.seqno(vbucket);
    long branch = before.offsets().get(vbucket).getVbuuid();
    try (Consumer consumer = before.successor()) {
      consumer.goOn(Map.of(vbucket, place(branch, seqno + BEYOND)));
      Expect.within(Consumer.LIMIT, () -> !consumer.rollbacks().isEmpty(), "it is rolled back");
      Expect.equal(consumer.rollbacks().get(0).getSeqno(), seqno, "where it goes back to");
      String key = keyOf(before, vbucket);
      sdk.writer.store(key, Writer.json(key, 77));
      Expect.within(Consumer.LIMIT, () -> consumer.seqno(vbucket) > seqno, "the stream goes on");
      consumer.expectDocuments(sdk.writer);
    }
  }

  private static StreamOffset place(long branch, long seqno) {
    return new StreamOffset(branch, seqno, new SnapshotMarker(seqno, seqno), 0);
  }

  /** A vBucket with a document of the default collection. */
  private static int busy(Consumer consumer) {
    return consumer.documents().get("_default._default.history-0").getVbucket();
  }

  private static String keyOf(Consumer consumer, int vbucket) {
    return consumer.documents().values().stream()
        .filter(each -> each.getVbucket() == vbucket && each.getCollection().id() == 0)
        .findFirst().orElseThrow().getKey();
  }

  interface Body {
    void run(BucketManager manager, Writer writer, Consumer consumer) throws Exception;
  }

  /** Runs a body with a new bucket that is streamed, and dropped in the end. */
  private static void with(Sdk sdk, Body body) throws Exception {
    BucketManager manager = sdk.cluster.buckets();
    manager.createBucket(BucketSettings.create(BUCKET).bucketType(COUCHBASE).ramQuotaMB(100)
        .numReplicas(0).flushEnabled(true));
    try {
      Writer writer = new Writer(sdk.ready(BUCKET));
      writer.churn("order", 500, 100);
      try (Consumer consumer = Consumer.connect(builder -> builder.bucket(BUCKET))) {
        consumer.begin(StreamFrom.BEGINNING, StreamTo.INFINITY);
        consumer.catchUp();
        consumer.expectDocuments(writer);
        body.run(manager, writer, consumer);
      }
    } finally {
      Expect.succeeds(() -> manager.dropBucket(BUCKET));
    }
  }

  private static void flushed(Sdk sdk) throws Exception {
    with(sdk, (manager, writer, consumer) -> {
      manager.flushBucket(BUCKET);
      writer.documents.clear();
      writer.storeMany("again", 300, 10);
      Expect.within(Consumer.LIMIT, () -> consumer.documents().size() == 300,
          "what is written then comes");
      consumer.catchUp();
      consumer.expectDocuments(writer);
      Expect.that(!consumer.rollbacks().isEmpty(), "it was rolled back");
      Expect.that(consumer.rollbacks().stream().allMatch(each -> each.getSeqno() == 0),
          "to the beginning");
    });
  }

  private static void dropped(Sdk sdk) throws Exception {
    with(sdk, (manager, writer, consumer) -> {
      manager.dropBucket(BUCKET);
      Expect.within(Consumer.LIMIT, () -> consumer.connections.get() > 1,
          "the connection is closed, and the client tries another one");
      Expect.equal(consumer.faults(), List.of(), "faults");
    });
  }

  private static void restart(Sdk sdk) throws Exception {
    try (Consumer consumer = Consumer.connect()) {
      consumer.begin(StreamFrom.BEGINNING, StreamTo.INFINITY);
      sdk.writer.churn("restart", 500, 100);
      consumer.catchUp();
      sdk.order("NODE restart");
      Expect.within(Consumer.LIMIT, () -> Expect.succeeds(
          () -> sdk.writer.store("restarted", Writer.json("restarted", 10))), "the SDK writes");
      sdk.writer.churn("restart", 500, 200);
      consumer.catchUp();
      consumer.expectDocuments(sdk.writer);
      Expect.that(consumer.connections.get() > 1, "it has connected again");
      Expect.equal(consumer.rollbacks().size(), 0, "rollbacks after an orderly restart");
    }
  }

  private static void fromFiles(Sdk sdk) throws Exception {
    sdk.order("NODE restart");
    Expect.within(Consumer.LIMIT, () -> Expect.succeeds(
        () -> sdk.writer.store("files", Writer.json("files", 10))), "the SDK writes");
    Consumer got = Consumer.toNow(builder -> { });
    got.expectDocuments(sdk.writer);
    Expect.that(got.markers().stream().anyMatch(
        marker -> marker.getFlags().contains(SnapshotMarkerFlag.DISK)), "something is of files");
    Expect.that(!got.of(DocumentChange.class).isEmpty(), "documents have come");
  }
}
