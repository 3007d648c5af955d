package acceptance;

import com.couchbase.client.java.Bucket;
import com.couchbase.client.java.Cluster;
import com.couchbase.client.java.ClusterOptions;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.time.Duration;

/** The SDK that writes what the cases stream, and the way to who runs the nodes. */
final class Sdk implements AutoCloseable {
  static final String BUCKET = "default";
  private static final Duration READY = Duration.ofSeconds(15);

  final Cluster cluster;
  final Writer writer;
  private final BufferedReader answers = new BufferedReader(new InputStreamReader(System.in));

  Sdk() {
    String user = System.getenv("SETTEE_USER");
    ClusterOptions options = ClusterOptions.clusterOptions(user, System.getenv("SETTEE_PASSWORD"))
        .environment(environment -> environment.timeoutConfig(timeouts -> timeouts
            .connectTimeout(READY).kvTimeout(Duration.ofSeconds(10))));
    cluster = Cluster.connect(System.getenv("SETTEE_CONNECT"), options);
    writer = new Writer(ready(BUCKET));
  }

  /** A bucket that can be used. */
  Bucket ready(String name) {
    Bucket bucket = cluster.bucket(name);
    bucket.waitUntilReady(READY);
    return bucket;
  }

  @Override
  public void close() {
    cluster.disconnect();
  }

  /** Asks whoever runs the nodes, and waits until it is done. */
  void order(String line) throws IOException {
    System.out.println(line);
    String answer = answers.readLine();
    boolean isDone = "NODE ready".equals(answer) || "CLUSTER done".equals(answer);
    Expect.that(isDone, line + " was not done");
  }
}
