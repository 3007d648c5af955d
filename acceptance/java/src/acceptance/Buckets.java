package acceptance;

import static com.couchbase.client.java.kv.ExistsOptions.existsOptions;
import static com.couchbase.client.java.kv.GetOptions.getOptions;

import com.couchbase.client.core.error.BucketExistsException;
import com.couchbase.client.core.error.BucketNotFlushableException;
import com.couchbase.client.core.error.BucketNotFoundException;
import com.couchbase.client.core.error.CouchbaseException;
import com.couchbase.client.core.error.DocumentNotFoundException;
import com.couchbase.client.java.Collection;
import com.couchbase.client.java.manager.bucket.BucketManager;
import com.couchbase.client.java.manager.bucket.BucketSettings;
import com.couchbase.client.java.manager.bucket.BucketType;
import com.couchbase.client.java.manager.bucket.CompressionMode;
import com.couchbase.client.java.manager.bucket.EvictionPolicyType;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Cases: buckets that are made, changed, emptied and deleted while the node runs. */
final class Buckets {
  private static final String NAME = "orders";
  private static final int QUOTA_MB = 100;
  private static final Duration BRIEF = Duration.ofSeconds(1);
  private static final Duration LIMIT = Duration.ofSeconds(20);

  interface Body {
    void run(BucketManager manager, Collection documents) throws Exception;
  }

  static void declare(Cases cases) {
    cases.add("buckets-are-made-listed-and-dropped", Buckets::madeListedAndDropped);
    cases.add("buckets-are-changed", Buckets::changed);
    cases.add("a-bucket-is-flushed-where-that-is-enabled", Buckets::flushed);
    cases.add("buckets-that-cannot-be-are-refused", Buckets::refused);
    cases.add("a-dropped-bucket-is-gone-for-its-clients", Buckets::dropped);
  }

  /** What a bucket is made with. */
  private static BucketSettings settings() {
    return settings(NAME);
  }

  private static BucketSettings settings(String name) {
    return BucketSettings.create(name).bucketType(BucketType.COUCHBASE).ramQuotaMB(QUOTA_MB)
        .numReplicas(0);
  }

  /** Runs a body with a new bucket, which is dropped in the end. */
  private static void with(Sdk sdk, BucketSettings settings, Body body) throws Exception {
    BucketManager manager = sdk.cluster.buckets();
    manager.createBucket(settings);
    try {
      body.run(manager, documents(sdk));
    } finally {
      manager.dropBucket(NAME);
    }
  }

  private static Collection documents(Sdk sdk) {
    return sdk.cluster.bucket(NAME).defaultCollection();
  }

  private static void madeListedAndDropped(Sdk sdk) throws Exception {
    BucketManager manager = sdk.cluster.buckets();
    String key = sdk.stored(Map.of("of", Sdk.BUCKET)).key();
    for (BucketType kind : List.of(BucketType.COUCHBASE, BucketType.EPHEMERAL)) {
      with(sdk, settings().bucketType(kind), (same, documents) -> {
        Expect.error(() -> manager.createBucket(settings().bucketType(kind)),
            BucketExistsException.class);
        BucketSettings found = manager.getBucket(NAME);
        Expect.equal(found.name(), NAME, "name");
        Expect.equal(found.ramQuotaMB(), (long) QUOTA_MB, "quota");
        Expect.equal(found.bucketType(), kind, "type");
        Expect.equal(manager.getAllBuckets().keySet(), Set.of(Sdk.BUCKET, NAME), "all buckets");
        Expect.error(() -> documents.get("k"), DocumentNotFoundException.class);
        documents.upsert("k", NAME);
        Expect.equal(documents.get("k").contentAs(String.class), NAME, "the document");
      });
      Expect.error(() -> manager.getBucket(NAME), BucketNotFoundException.class);
      Expect.error(() -> manager.dropBucket(NAME), BucketNotFoundException.class);
    }
    Expect.that(sdk.collection.exists(key).exists(), "the other bucket has its document");
  }

  private static void changed(Sdk sdk) throws Exception {
    with(sdk, settings(), (manager, documents) -> {
      documents.upsert("k", 1);
      manager.updateBucket(settings().ramQuotaMB(QUOTA_MB + 50).numReplicas(1).flushEnabled(true)
          .compressionMode(CompressionMode.ACTIVE));
      BucketSettings found = manager.getBucket(NAME);
      Expect.equal(found.ramQuotaMB(), QUOTA_MB + 50L, "quota");
      Expect.equal(found.numReplicas(), 1, "replicas");
      Expect.that(found.flushEnabled(), "it may be flushed");
      Expect.equal(found.compressionMode(), CompressionMode.ACTIVE, "compression");
      Expect.equal(documents.get("k").contentAs(Integer.class), 1, "the document");
      Expect.error(() -> manager.updateBucket(settings("none")), BucketNotFoundException.class);
    });
  }

  private static void flushed(Sdk sdk) throws Exception {
    with(sdk, settings().flushEnabled(false), (manager, documents) -> {
      documents.upsert("k", 1);
      Expect.error(() -> manager.flushBucket(NAME), BucketNotFlushableException.class);
      Expect.that(documents.exists("k").exists(), "nothing is gone");
      manager.updateBucket(settings().flushEnabled(true));
      manager.flushBucket(NAME);
      Expect.that(!documents.exists("k").exists(), "the bucket is empty");
      documents.upsert("k", 2);
      Expect.error(() -> manager.flushBucket("none"), BucketNotFoundException.class);
    });
  }

  private static void refused(Sdk sdk) {
    BucketManager manager = sdk.cluster.buckets();
    List<BucketSettings> wrong = List.of(settings().ramQuotaMB(1 << 24), settings().ramQuotaMB(99),
        settings("a/b"), settings().maxExpiry(Duration.ofSeconds(1L << 31)));
    for (BucketSettings each : wrong) {
      Expect.error(() -> manager.createBucket(each), CouchbaseException.class);
    }
    Expect.equal(manager.getAllBuckets().keySet(), Set.of(Sdk.BUCKET), "all buckets");
  }

  private static void dropped(Sdk sdk) throws Exception {
    with(sdk, settings(), (manager, documents) -> {
      documents.upsert("k", 1);
      manager.dropBucket(NAME);
      Expect.error(() -> documents.get("k", getOptions().timeout(BRIEF)),
          CouchbaseException.class);
      manager.createBucket(settings().evictionPolicy(EvictionPolicyType.FULL));
      Expect.within(LIMIT, () -> isMissing(sdk, "k"), "the new bucket is empty");
      documents(sdk).upsert("k", 2);
    });
  }

  /** Whether the bucket answers that there is no such document. */
  private static boolean isMissing(Sdk sdk, String key) {
    try {
      return !documents(sdk).exists(key, existsOptions().timeout(BRIEF)).exists();
    } catch (CouchbaseException error) {
      return false;
    }
  }
}
