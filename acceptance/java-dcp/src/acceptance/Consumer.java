package acceptance;

import com.couchbase.client.dcp.Client;
import com.couchbase.client.dcp.DefaultConnectionNameGenerator;
import com.couchbase.client.dcp.StreamFrom;
import com.couchbase.client.dcp.StreamTo;
import com.couchbase.client.dcp.config.DcpControl;
import com.couchbase.client.dcp.highlevel.CollectionCreated;
import com.couchbase.client.dcp.highlevel.CollectionDropped;
import com.couchbase.client.dcp.highlevel.DatabaseChangeListener;
import com.couchbase.client.dcp.highlevel.Deletion;
import com.couchbase.client.dcp.highlevel.DocumentChange;
import com.couchbase.client.dcp.highlevel.FlowControlMode;
import com.couchbase.client.dcp.highlevel.Mutation;
import com.couchbase.client.dcp.highlevel.Rollback;
import com.couchbase.client.dcp.highlevel.ScopeCreated;
import com.couchbase.client.dcp.highlevel.ScopeDropped;
import com.couchbase.client.dcp.highlevel.SeqnoAdvanced;
import com.couchbase.client.dcp.highlevel.SnapshotDetails;
import com.couchbase.client.dcp.highlevel.StreamEnd;
import com.couchbase.client.dcp.highlevel.StreamFailure;
import com.couchbase.client.dcp.highlevel.StreamOffset;
import com.couchbase.client.dcp.highlevel.internal.DatabaseChangeEvent;
import com.couchbase.client.dcp.message.PartitionAndSeqno;
import com.couchbase.client.dcp.message.StreamEndReason;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;
import reactor.util.retry.Retry;

/** Streams with the DCP client, keeps what comes, and notes what must not. */
final class Consumer implements DatabaseChangeListener, AutoCloseable {
  static final Duration LIMIT = Duration.ofSeconds(20);
  static final Duration BRIEF = Duration.ofSeconds(1);
  private static final int BUFFER = 1 << 20;

  /** What a case asks of a client beside what all have. */
  interface Settings {
    void of(Client.Builder builder);
  }

  final Client client;
  /** How many the client has opened. */
  final AtomicInteger connections = new AtomicInteger();
  private final List<DatabaseChangeEvent> events = new ArrayList<>();
  private final List<SnapshotDetails> markers = new ArrayList<>();
  private final List<Rollback> rollbacks = new ArrayList<>();
  private final List<String> faults = new ArrayList<>();
  private final Map<Integer, StreamOffset> offsets = new HashMap<>();
  private final Map<Integer, StreamEndReason> ends = new HashMap<>();
  /** The vBuckets of which a stream is being opened again. */
  private final Set<Integer> reopening = new HashSet<>();
  private boolean isClosed;
  private boolean acknowledges = true;
  private Duration delay = Duration.ZERO;

  private Consumer(Settings settings) {
    Client.Builder builder = Client.builder()
        .connectionString(System.getenv("SETTEE_CONNECT"))
        .credentials(System.getenv("SETTEE_USER"), System.getenv("SETTEE_PASSWORD"))
        .bucket(Sdk.BUCKET)
        .collectionsAware(true)
        .controlParam(DcpControl.Names.ENABLE_EXPIRY_OPCODE, true)
        .flowControl(BUFFER)
        .bootstrapTimeout(LIMIT)
        .connectionNameGenerator(() -> {
          connections.incrementAndGet();
          return DefaultConnectionNameGenerator.INSTANCE.name();
        });
    settings.of(builder);
    client = builder.build();
    client.listener(this, FlowControlMode.MANUAL);
  }

  static Consumer connect() {
    return connect(builder -> { });
  }

  static Consumer connect(Settings settings) {
    Consumer consumer = new Consumer(settings);
    consumer.client.connect().block(LIMIT.plus(LIMIT));
    return consumer;
  }

  /** What there is now, by a connection that is closed already. */
  static Consumer toNow(Settings settings) throws Exception {
    try (Consumer consumer = connect(settings)) {
      consumer.begin(StreamFrom.BEGINNING, StreamTo.NOW);
      consumer.awaitEnds();
      return consumer;
    }
  }

  /** A consumer that follows what changes from now on. */
  static Consumer following(Settings settings) {
    Consumer consumer = connect(settings);
    consumer.begin(StreamFrom.NOW, StreamTo.INFINITY);
    return consumer;
  }

  /** A consumer of the same bucket that has what this one has. */
  Consumer successor() {
    Consumer consumer = connect();
    synchronized (consumer) {
      consumer.events.addAll(of(DatabaseChangeEvent.class));
      consumer.offsets.putAll(offsets());
    }
    return consumer;
  }

  void begin(StreamFrom from, StreamTo to) {
    client.initializeState(from, to).block(LIMIT);
    synchronized (this) {
      client.sessionState().foreachPartition(
          (vbucket, state) -> offsets.put(vbucket, state.getOffset()));
    }
    client.startStreaming().block(LIMIT);
  }

  /** Streams without an end from these places, of which each is the last of its vBucket. */
  void goOn(Map<Integer, StreamOffset> places) {
    client.resumeStreaming(places).block(LIMIT);
  }

  /** Whether changes are acknowledged when they come; those that came before are then. */
  synchronized void acknowledge(boolean isAcknowledged) {
    acknowledges = isAcknowledged;
    if (isAcknowledged) {
      of(DocumentChange.class).forEach(DocumentChange::flowControlAck);
    }
  }

  /** How long it takes over each change. */
  synchronized void slowDown(Duration eachChange) {
    delay = eachChange;
  }

  /** Waits until every stream has reached its end. */
  void awaitEnds() throws Exception {
    Expect.within(LIMIT, () -> endCount() == client.numPartitions(), "streams reach their ends");
    Expect.equal(endReasons(), Set.of("OK"), "why streams have ended");
  }

  /** Waits until streams without an end have all that there is now. */
  void catchUp() throws Exception {
    List<PartitionAndSeqno> seqnos = client.getSeqnos().collectList().block(LIMIT);
    Expect.within(LIMIT, () -> seqnos.stream().allMatch(
        each -> seqno(each.partition()) >= each.seqno()), "streams catch up");
  }

  synchronized int endCount() {
    return ends.size();
  }

  synchronized Set<String> endReasons() {
    Set<String> reasons = new TreeSet<>();
    ends.values().forEach(reason -> reasons.add(reason.name()));
    return reasons;
  }

  synchronized long seqno(int vbucket) {
    StreamOffset offset = offsets.get(vbucket);
    return offset == null ? 0 : offset.getSeqno();
  }

  /** The last places, of all vBuckets that have one. */
  synchronized Map<Integer, StreamOffset> offsets() {
    return new TreeMap<>(offsets);
  }

  /** What has come of one kind, in its order. */
  synchronized <Kind> List<Kind> of(Class<Kind> kind) {
    return events.stream().filter(kind::isInstance).map(kind::cast).toList();
  }

  /** What has come of a vBucket, in its order. */
  synchronized List<DatabaseChangeEvent> ofVbucket(int vbucket) {
    return events.stream().filter(event -> event.getVbucket() == vbucket).toList();
  }

  synchronized List<SnapshotDetails> markers() {
    return List.copyOf(markers);
  }

  synchronized List<Rollback> rollbacks() {
    return List.copyOf(rollbacks);
  }

  /** Deletions, of those that tell of an expiration or of the others. */
  long deletions(boolean isExpiration) {
    return of(Deletion.class).stream()
        .filter(deletion -> deletion.isDueToExpiration() == isExpiration).count();
  }

  /** The newest of each document that is not deleted, by its qualified key. */
  synchronized Map<String, Mutation> documents() {
    Map<String, Mutation> documents = new TreeMap<>();
    for (DatabaseChangeEvent event : events) {
      if (event instanceof Mutation mutation) {
        documents.put(mutation.getQualifiedKey(), mutation);
      } else if (event instanceof Deletion deletion) {
        documents.remove(deletion.getQualifiedKey());
      } else if (event instanceof CollectionDropped dropped) {
        documents.values().removeIf(each -> each.getVbucket() == dropped.getVbucket()
            && each.getCollection().id() == dropped.getCollectionId());
      }
    }
    return documents;
  }

  /** What it has is what was written, as far as that is chosen. */
  void expectDocuments(Map<String, byte[]> written, Predicate<String> isChosen) {
    Map<String, Mutation> got = documents();
    Map<String, byte[]> wanted = new TreeMap<>(written);
    wanted.keySet().removeIf(isChosen.negate());
    Expect.equal(without(got, wanted), Set.of(), "keys of what nobody wrote");
    Expect.equal(without(wanted, got), Set.of(), "keys of what has not come");
    got.forEach((key, mutation) -> Expect.that(
        Arrays.equals(mutation.getContent(), wanted.get(key)), "value of " + key));
    Expect.equal(faults(), List.of(), "faults");
  }

  private static Set<String> without(Map<String, ?> these, Map<String, ?> those) {
    Set<String> keys = new TreeSet<>(these.keySet());
    keys.removeAll(those.keySet());
    return keys;
  }

  void expectDocuments(Writer writer) {
    expectDocuments(writer.documents, key -> true);
  }

  synchronized List<String> faults() {
    return List.copyOf(faults);
  }

  /** Ends all streams; the client itself does not come back from a second time. */
  @Override
  public void close() {
    if (!isClosed) {
      isClosed = true;
      client.close();
    }
  }

  @Override
  public void onMutation(Mutation mutation) {
    onChange(mutation);
  }

  @Override
  public void onDeletion(Deletion deletion) {
    onChange(deletion);
  }

  private void onChange(DocumentChange change) {
    if (!delay.isZero()) {
      try {
        Thread.sleep(delay.toMillis());
      } catch (InterruptedException error) {
        Thread.currentThread().interrupt();
      }
    }
    synchronized (this) {
      if (change.getOffset().getSeqno() <= seqno(change.getVbucket())) {
        faults.add(change + " comes behind " + offsets.get(change.getVbucket()));
      }
      offsets.put(change.getVbucket(), change.getOffset());
      events.add(change);
      if (acknowledges) {
        change.flowControlAck();
      }
    }
  }

  @Override
  public synchronized void onSeqnoAdvanced(SeqnoAdvanced advanced) {
    if (advanced.getOffset().getSeqno() < seqno(advanced.getVbucket())) {
      faults.add(advanced.getOffset() + " comes behind " + offsets.get(advanced.getVbucket()));
    }
    offsets.put(advanced.getVbucket(), advanced.getOffset());
  }

  @Override
  public synchronized void onScopeCreated(ScopeCreated created) {
    events.add(created);
  }

  @Override
  public synchronized void onScopeDropped(ScopeDropped dropped) {
    events.add(dropped);
  }

  @Override
  public synchronized void onCollectionCreated(CollectionCreated created) {
    events.add(created);
  }

  @Override
  public synchronized void onCollectionDropped(CollectionDropped dropped) {
    events.add(dropped);
  }

  @Override
  public synchronized void onSnapshot(SnapshotDetails snapshot) {
    markers.add(snapshot);
  }

  @Override
  public void onRollback(Rollback rollback) {
    synchronized (this) {
      int vbucket = rollback.getVbucket();
      rollbacks.add(rollback);
      offsets.remove(vbucket);
      events.removeIf(event -> event.getVbucket() == vbucket
          && (!(event instanceof DocumentChange change)
              || Long.compareUnsigned(change.getOffset().getSeqno(), rollback.getSeqno()) > 0));
    }
    rollback.resume();
  }

  @Override
  public synchronized void onStreamEnd(StreamEnd end) {
    ends.put(end.getVbucket(), end.getReason());
  }

  /**
   * While a failover goes on, a map may say of vBuckets that nobody has them. The client gives up
   * their streams if it meets that, and it is the application that opens them again.
   */
  @Override
  public void onFailure(StreamFailure failure) {
    String what = Cases.oneLine(failure.getCause());
    if (what.contains("No active node for partition")) {
      reopen(failure.getVbucket());
    } else {
      synchronized (this) {
        faults.add(what);
      }
    }
  }

  /**
   * The client moves a stream twice when a node is given up while it connects to that again, and
   * may give up both. Two that are opened at once are both rolled back, and what has come by the
   * first comes again by the second.
   */
  private void reopen(int vbucket) {
    synchronized (this) {
      if (!reopening.add(vbucket)) {
        return;
      }
    }
    client.startStreaming(List.of(vbucket))
        .retryWhen(Retry.fixedDelay(100, Duration.ofMillis(100)))
        .doFinally(signal -> {
          synchronized (this) {
            reopening.remove(vbucket);
          }
        }).subscribe();
  }
}
