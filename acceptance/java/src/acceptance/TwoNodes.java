package acceptance;

import static com.couchbase.client.java.kv.GetOptions.getOptions;
import static com.couchbase.client.java.kv.InsertOptions.insertOptions;
import static com.couchbase.client.java.kv.MutateInOptions.mutateInOptions;
import static com.couchbase.client.java.kv.RemoveOptions.removeOptions;
import static com.couchbase.client.java.kv.ReplaceOptions.replaceOptions;
import static com.couchbase.client.java.kv.UpsertOptions.upsertOptions;

import com.couchbase.client.core.error.CouchbaseException;
import com.couchbase.client.core.error.AmbiguousTimeoutException;
import com.couchbase.client.core.error.DurabilityAmbiguousException;
import com.couchbase.client.core.error.DurabilityImpossibleException;
import com.couchbase.client.core.msg.kv.DurabilityLevel;
import com.couchbase.client.java.Collection;
import com.couchbase.client.java.kv.GetReplicaResult;
import com.couchbase.client.java.kv.LookupInReplicaResult;
import com.couchbase.client.java.kv.LookupInSpec;
import com.couchbase.client.java.kv.MutateInSpec;
import com.couchbase.client.java.kv.PersistTo;
import com.couchbase.client.java.kv.ReplicateTo;
import com.couchbase.client.java.kv.StoreSemantics;
import com.couchbase.client.java.kv.UpsertOptions;
import com.couchbase.client.java.manager.collection.CollectionManager;
import com.couchbase.client.java.transactions.error.TransactionFailedException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.zip.CRC32;

/** Cases: two nodes, one replica. */
final class TwoNodes {
  private static final int COUNT = 40;
  /** How many the cluster has; the active copies of the even ones are on the first node. */
  private static final int VBUCKETS = Integer.parseInt(System.getenv("SETTEE_VBUCKETS"));
  private static final Duration LIMIT = Duration.ofSeconds(20);

  static void declare(Cases cases) {
    cases.add("tls-two-nodes", sdk -> {
      int[] sizes = IntStream.range(0, COUNT).toArray();
      Encryption.exchange(Encryption.byPassword(), "tls", sizes);
    });
    cases.add("sdk-durable-writes-at-every-level", sdk -> {
      for (DurabilityLevel level : Durability.LEVELS) {
        durableWrites(sdk, level);
      }
      sdk.order("CLUSTER replicated");
    });
    cases.add("sdk-replicas-can-be-read", TwoNodes::replicas);
    cases.add("sdk-observed-writes-reach-the-replica", TwoNodes::observed);
    cases.add("sdk-parts-of-replicas-can-be-read", TwoNodes::parts);
    cases.add("sdk-scans-see-both-nodes", sdk -> Scans.expectScans(sdk.collection, 300));
    cases.add("sdk-transactions-on-two-nodes", TwoNodes::transactions);
    cases.add("sdk-collections-on-two-nodes", TwoNodes::collections);
    cases.add("sdk-stopped-replica-makes-durable-writes-ambiguous", TwoNodes::stoppedReplica);
    cases.add("sdk-failover-keeps-the-sdk-working", TwoNodes::failover);
  }

  private static List<String> keys(String name) {
    return IntStream.range(0, COUNT).mapToObj(index -> name + "-" + index).toList();
  }

  private static UpsertOptions durably(DurabilityLevel level) {
    return upsertOptions().durability(level);
  }

  private static void durableWrites(Sdk sdk, DurabilityLevel level) {
    for (String key : keys("durable-" + level)) {
      sdk.collection.insert(key, 0, insertOptions().durability(level));
      long cas = sdk.collection.upsert(key, 1, durably(level)).cas();
      sdk.collection.replace(key, 2, replaceOptions().durability(level).cas(cas));
      sdk.expectValue(key, 2);
      if (key.endsWith("1")) {
        sdk.collection.remove(key, removeOptions().durability(level));
        Expect.that(sdk.isGone(key), "it is removed");
      }
    }
  }

  private static void expectCopies(Sdk sdk, String key) {
    List<GetReplicaResult> copies = sdk.collection.getAllReplicas(key).toList();
    Expect.equal(copies.size(), 2, "copies");
    for (GetReplicaResult copy : copies) {
      Expect.equal(copy.contentAs(Object.class), Map.of("key", key), "copy");
    }
    Expect.equal(copies.stream().filter(GetReplicaResult::isReplica).count(), 1L, "replicas");
  }

  private static void replicas(Sdk sdk) throws Exception {
    keys("replica").forEach(key -> sdk.collection.upsert(key, Map.of("key", key)));
    sdk.order("CLUSTER replicated");
    for (String key : keys("replica")) {
      expectCopies(sdk, key);
      Expect.equal(sdk.collection.getAnyReplica(key).contentAs(Object.class), Map.of("key", key),
          "any copy");
    }
    Expect.error(() -> sdk.collection.getAnyReplica("absent"), CouchbaseException.class);
  }

  private static void observed(Sdk sdk) {
    for (String key : keys("observed").subList(0, 5)) {
      sdk.collection.upsert(key, Map.of("key", key),
          upsertOptions().durability(PersistTo.TWO, ReplicateTo.ONE));
      expectCopies(sdk, key);
    }
  }

  private static void parts(Sdk sdk) throws Exception {
    for (String key : keys("part")) {
      sdk.collection.mutateIn(key, List.of(
          MutateInSpec.upsert("meta", Map.of("key", key)).xattr(), MutateInSpec.upsert("n", 1)),
          mutateInOptions().storeSemantics(StoreSemantics.UPSERT));
    }
    sdk.order("CLUSTER replicated");
    List<LookupInSpec> paths = List.of(LookupInSpec.get("meta.key").xattr(), LookupInSpec.get("n"),
        LookupInSpec.exists("none"));
    for (String key : keys("part")) {
      List<LookupInReplicaResult> copies =
          sdk.collection.lookupInAllReplicas(key, paths).toList();
      Expect.equal(copies.size(), 2, "copies");
      for (LookupInReplicaResult copy : copies) {
        Expect.equal(copy.contentAs(0, String.class), key, "attribute");
        Expect.equal(copy.contentAs(1, Integer.class), 1, "part");
        Expect.that(!copy.exists(2), "there is no such path");
      }
      Expect.equal(sdk.collection.lookupInAnyReplica(key, paths).contentAs(1, Integer.class), 1,
          "any copy");
    }
  }

  private static void transactions(Sdk sdk) {
    Transactions.Changed changed = Transactions.Changed.prepared(sdk);
    Expect.error(() -> sdk.cluster.transactions().run(context -> {
      changed.change(sdk, context);
      throw new IllegalStateException("the application has changed its mind");
    }), TransactionFailedException.class);
    changed.expectUnchanged(sdk);
    sdk.cluster.transactions().run(context -> changed.change(sdk, context));
    changed.expectCommitted(sdk);
  }

  private static void collections(Sdk sdk) {
    CollectionManager manager = sdk.bucket.collections();
    manager.createScope("shop");
    manager.createCollection("shop", "fruit");
    Collection fruit = sdk.bucket.scope("shop").collection("fruit");
    for (String key : keys("fruit")) {
      fruit.upsert(key, key, durably(DurabilityLevel.MAJORITY));
      Expect.equal(fruit.get(key).contentAs(String.class), key, "value");
    }
    manager.dropScope("shop");
    Collections.expectGone(
        () -> fruit.get("fruit-0", getOptions().timeout(Duration.ofSeconds(1))));
  }

  private static int vbucketOf(String key) {
    CRC32 sum = new CRC32();
    sum.update(key.getBytes());
    return (int) (sum.getValue() >>> 16 & 0x7fff) % VBUCKETS;
  }

  private static void stoppedReplica(Sdk sdk) throws Exception {
    List<String> onFirst =
        keys("stopped").stream().filter(key -> vbucketOf(key) % 2 == 0).toList();
    onFirst.forEach(key -> sdk.collection.upsert(key, 1));
    sdk.order("CLUSTER pause 1");
    UpsertOptions brief = durably(DurabilityLevel.MAJORITY).timeout(Duration.ofSeconds(3));
    Expect.error(() -> sdk.collection.upsert(onFirst.get(0), 2, brief),
        AmbiguousTimeoutException.class, DurabilityAmbiguousException.class);
    sdk.expectValue(onFirst.get(0), 1);
    sdk.collection.upsert(onFirst.get(1), 3);
    sdk.expectValue(onFirst.get(1), 3);
    sdk.order("CLUSTER resume 1");
    Expect.within(LIMIT, () -> Expect.succeeds(() -> sdk.collection.upsert(
        onFirst.get(0), 4, durably(DurabilityLevel.MAJORITY))), "durable writes go on");
    sdk.expectValue(onFirst.get(0), 4);
  }

  private static void failover(Sdk sdk) throws Exception {
    DurabilityLevel level = DurabilityLevel.PERSIST_TO_MAJORITY;
    keys("failover").forEach(key -> sdk.collection.upsert(key, 1, durably(level)));
    sdk.order("CLUSTER kill 0");
    sdk.order("CLUSTER failover 0");
    for (String key : keys("failover")) {
      Expect.within(LIMIT, () -> Expect.succeeds(() -> sdk.expectValue(key, 1)), key + " is read");
      sdk.collection.upsert(key, 2);
    }
    // One of two copies is missing: no majority can be reached.
    Expect.error(() -> sdk.collection.upsert("failover-0", 3, durably(level)),
        DurabilityImpossibleException.class);
    sdk.order("CLUSTER recover 0");
    sdk.order("CLUSTER replicated");
    Expect.within(LIMIT, () -> Expect.succeeds(
        () -> sdk.collection.upsert("failover-0", 2, durably(level))), "durable writes go on");
    keys("failover").forEach(key -> sdk.expectValue(key, 2));
  }
}
