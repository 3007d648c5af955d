package acceptance;

import com.couchbase.client.core.error.CouchbaseException;
import com.couchbase.client.java.BinaryCollection;
import com.couchbase.client.java.Bucket;
import com.couchbase.client.java.Cluster;
import com.couchbase.client.java.ClusterOptions;
import com.couchbase.client.java.Collection;
import com.couchbase.client.java.kv.MutationResult;
import com.couchbase.client.java.kv.UpsertOptions;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;

/** The SDK's objects that the cases share. */
final class Sdk implements AutoCloseable {
  static final String BUCKET = "default";
  static final Duration READY = Duration.ofSeconds(15);
  static final Duration BRIEF = Duration.ofMillis(500);

  final Cluster cluster;
  final Bucket bucket;
  final Collection collection;
  final BinaryCollection binary;
  private final AtomicLong names = new AtomicLong();
  private final BufferedReader answers = new BufferedReader(new InputStreamReader(System.in));

  /** A new document: its key, and the CAS and token of its store. */
  record Stored(String key, MutationResult result) {
    long cas() {
      return result.cas();
    }
  }

  Sdk() {
    cluster = connect(System.getenv("SETTEE_USER"), System.getenv("SETTEE_PASSWORD"));
    bucket = ready(cluster);
    collection = bucket.defaultCollection();
    binary = collection.binary();
  }

  /** A cluster object; the SDK connects in the background. */
  static Cluster connect(String user, String password) {
    ClusterOptions options = ClusterOptions.clusterOptions(user, password)
        .environment(environment -> environment.timeoutConfig(timeouts -> timeouts
            .connectTimeout(READY).kvTimeout(Duration.ofSeconds(10))
            .kvDurableTimeout(READY).kvScanTimeout(Duration.ofSeconds(60))));
    return Cluster.connect(System.getenv("SETTEE_CONNECT"), options);
  }

  /**
   * The bucket, once it can be used. A request that meets the opening of the bucket may be lost to
   * the SDK until its time is over: its timer says "Node not found for request", where the seed's
   * management port is not the default one.
   */
  static Bucket ready(Cluster cluster) {
    Bucket bucket = cluster.bucket(BUCKET);
    bucket.waitUntilReady(READY);
    return bucket;
  }

  @Override
  public void close() {
    cluster.disconnect();
  }

  /** A key that no other case uses. */
  String key() {
    return "key-" + names.incrementAndGet();
  }

  Stored stored(Object value) {
    return stored(value, UpsertOptions.upsertOptions());
  }

  Stored stored(Object value, UpsertOptions options) {
    String key = key();
    return new Stored(key, collection.upsert(key, value, options));
  }

  void expectValue(String key, Object wanted) {
    Expect.equal(collection.get(key).contentAs(Object.class), wanted, "value of " + key);
  }

  /** Whether no document has this key. */
  boolean isGone(String key) {
    return !collection.exists(key).exists();
  }

  /** Whether the SDK reaches the node of a key. */
  boolean answers(String key) {
    try {
      collection.exists(key);
      return true;
    } catch (CouchbaseException error) {
      return false;
    }
  }

  /** Asks whoever runs the nodes, and waits until it is done. */
  void order(String line) throws IOException {
    System.out.println(line);
    String answer = answers.readLine();
    boolean isDone = "NODE ready".equals(answer) || "CLUSTER done".equals(answer);
    Expect.that(isDone, line + " was not done");
  }
}
