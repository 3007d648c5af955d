package acceptance;

import com.couchbase.client.dcp.StreamFrom;
import com.couchbase.client.dcp.StreamTo;
import com.couchbase.client.dcp.config.DcpControl;
import com.couchbase.client.dcp.highlevel.DocumentChange;
import com.couchbase.client.dcp.highlevel.SnapshotDetails;
import com.couchbase.client.dcp.highlevel.StreamOffset;
import com.couchbase.client.dcp.message.SnapshotMarkerFlag;
import com.couchbase.client.dcp.state.StateFormat;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/** Cases: streams that go on, slow down, pause and are taken up again. */
final class Following {
  private static final int BUFFER = 64 << 10;
  private static final int LARGE = 20_000;
  private static final int HEADERS = 200;

  static void declare(Cases cases) {
    cases.add("streams-while-it-is-written", Following::whileItIsWritten);
    cases.add("every-change-is-in-its-snapshot", Following::snapshots);
    cases.add("pauses-and-goes-on", Following::pauses);
    cases.add("goes-on-from-saved-places", Following::savedPlaces);
    cases.add("goes-on-from-a-saved-session", Following::savedSession);
    cases.add("a-small-buffer-bounds-what-is-under-way", Following::smallBuffer);
    cases.add("a-slow-consumer-gets-everything", Following::slow);
    cases.add("noops-keep-a-silent-connection", Following::noops);
    cases.add("mitigated-rollbacks-hold-nothing-back-for-ever", Following::mitigation);
  }

  private static void whileItIsWritten(Sdk sdk) throws Exception {
    sdk.writer.storeMany("old", 10, 10);
    try (Consumer consumer = Consumer.following(builder -> { })) {
      for (int round = 0; round < 3; round++) {
        sdk.writer.churn("live", 1000, 300 + round);
      }
      consumer.catchUp();
      consumer.expectDocuments(sdk.writer.documents, key -> key.contains(".live-"));
    }
  }

  private static void snapshots(Sdk sdk) throws Exception {
    try (Consumer consumer = Consumer.following(builder -> { })) {
      sdk.writer.churn("snapshot", 1000, 300);
      consumer.catchUp();
      for (SnapshotDetails marker : consumer.markers()) {
        Set<SnapshotMarkerFlag> flags = marker.getFlags();
        Expect.that(flags.contains(SnapshotMarkerFlag.MEMORY)
            != flags.contains(SnapshotMarkerFlag.DISK), "from memory or from a file: " + flags);
      }
      // The client itself refuses a change that is not within the marker before.
      Expect.equal(consumer.faults(), List.of(), "faults");
      Set<Integer> told = new HashSet<>();
      consumer.markers().forEach(marker -> told.add(marker.getVbucket()));
      consumer.of(DocumentChange.class).forEach(
          change -> Expect.that(told.contains(change.getVbucket()), "a marker has come before"));
      Expect.that(!told.isEmpty(), "there are markers");
    }
  }

  private static void pauses(Sdk sdk) throws Exception {
    try (Consumer consumer = Consumer.connect()) {
      consumer.begin(StreamFrom.BEGINNING, StreamTo.INFINITY);
      for (int round = 0; round < 3; round++) {
        sdk.writer.churn("paused", 300, 300 + round);
        consumer.client.stopStreaming(List.of()).block(Consumer.LIMIT);
        Expect.that(!consumer.client.streamIsOpen(0), "the stream is closed");
        sdk.writer.churn("paused", 300, 400 + round);
        consumer.client.startStreaming().block(Consumer.LIMIT);
        Expect.that(consumer.client.streamIsOpen(0), "the stream is open");
      }
      consumer.catchUp();
      consumer.expectDocuments(sdk.writer);
      Expect.equal(consumer.connections.get(), 1, "connections");
    }
  }

  /** What came before the first consumer stopped, and behind that, is together everything once. */
  private static void savedPlaces(Sdk sdk) throws Exception {
    sdk.writer.churn("saved", 1000, 300);
    Map<Integer, StreamOffset> places;
    long before;
    try (Consumer first = Consumer.connect(builder -> builder.flowControl(BUFFER))) {
      first.acknowledge(false);
      first.begin(StreamFrom.BEGINNING, StreamTo.INFINITY);
      Expect.within(Consumer.LIMIT, () -> first.of(DocumentChange.class).size() > 100,
          "some have come");
      first.close();
      places = first.offsets();
      before = first.of(DocumentChange.class).size();
      sdk.writer.churn("saved", 300, 400);
      try (Consumer second = first.successor()) {
        for (int vbucket = 0; vbucket < second.client.numPartitions(); vbucket++) {
          places.putIfAbsent(vbucket, StreamOffset.ZERO);
        }
        second.goOn(places);
        second.catchUp();
        second.expectDocuments(sdk.writer);
        Expect.equal(second.rollbacks().size(), 0, "rollbacks");
        Expect.that(second.of(DocumentChange.class).size() > before, "the rest has come");
      }
    }
  }

  @SuppressWarnings("deprecation")
  private static void savedSession(Sdk sdk) throws Exception {
    byte[] session;
    try (Consumer first = Consumer.following(builder -> { })) {
      sdk.writer.churn("session", 500, 300);
      first.catchUp();
      session = first.client.sessionState().export(StateFormat.JSON);
      first.close();
      sdk.writer.churn("session", 500, 400);
      try (Consumer second = first.successor()) {
        second.client.recoverState(StateFormat.JSON, session).block(Consumer.LIMIT);
        second.client.startStreaming().block(Consumer.LIMIT);
        second.catchUp();
        second.expectDocuments(sdk.writer.documents, key -> key.contains(".session-"));
        Expect.equal(second.rollbacks().size(), 0, "rollbacks");
      }
    }
  }

  private static void smallBuffer(Sdk sdk) throws Exception {
    for (String key : Writer.keys("large", 50)) {
      sdk.writer.storeBinary(key, Writer.binary(key.hashCode(), LARGE));
    }
    try (Consumer consumer = Consumer.connect(builder -> builder.flowControl(BUFFER))) {
      consumer.acknowledge(false);
      consumer.begin(StreamFrom.BEGINNING, StreamTo.NOW);
      Expect.within(Consumer.LIMIT, () -> bytes(consumer) > BUFFER / 2, "some have come");
      Thread.sleep(Consumer.BRIEF.toMillis());
      long bytes = bytes(consumer);
      Expect.that(bytes <= BUFFER + LARGE + HEADERS, bytes + " bytes came without an answer");
      consumer.acknowledge(true);
      consumer.awaitEnds();
      consumer.expectDocuments(sdk.writer);
    }
  }

  private static long bytes(Consumer consumer) {
    return consumer.of(DocumentChange.class).stream()
        .mapToLong(change -> change.getContent().length).sum();
  }

  private static void slow(Sdk sdk) throws Exception {
    try (Consumer consumer = Consumer.following(builder -> builder.flowControl(BUFFER))) {
      consumer.slowDown(Duration.ofMillis(3));
      sdk.writer.storeMany("slow", 300, 3000);
      consumer.catchUp();
      consumer.expectDocuments(sdk.writer.documents, key -> key.contains(".slow-"));
    }
  }

  /** The client closes a connection on which nothing comes for two intervals. */
  private static void noops(Sdk sdk) throws Exception {
    try (Consumer consumer = Consumer.following(builder -> builder
        .controlParam(DcpControl.Names.SET_NOOP_INTERVAL, 1)
        .configRefreshInterval(Consumer.LIMIT))) {
      Thread.sleep(2500);
      sdk.writer.storeMany("silence", 100, 10);
      consumer.catchUp();
      consumer.expectDocuments(sdk.writer.documents, key -> key.contains(".silence-"));
      Expect.equal(consumer.connections.get(), 1, "connections");
      Expect.equal(consumer.endCount(), 0, "streams that have ended");
    }
  }

  private static void mitigation(Sdk sdk) throws Exception {
    try (Consumer consumer = Consumer.following(
        builder -> builder.mitigateRollbacks(50, TimeUnit.MILLISECONDS))) {
      for (int round = 0; round < 2; round++) {
        sdk.writer.churn("mitigated", 500, 300 + round);
      }
      consumer.catchUp();
      consumer.expectDocuments(sdk.writer.documents, key -> key.contains(".mitigated-"));
      Expect.equal(consumer.connections.get(), 1, "connections");
    }
  }
}
