package acceptance;

import com.couchbase.client.java.Bucket;
import com.couchbase.client.java.Cluster;
import com.couchbase.client.java.CouchbaseCluster;
import com.couchbase.client.java.auth.Authenticator;
import com.couchbase.client.java.auth.PasswordAuthenticator;
import com.couchbase.client.java.env.DefaultCouchbaseEnvironment;
import java.net.URI;
import java.time.Duration;
import java.util.function.UnaryOperator;

/** A cluster object, and the environment that it is made in. */
final class Connection implements AutoCloseable {
  static final String BUCKET = "default";
  static final Duration READY = Duration.ofSeconds(15);

  final Cluster cluster;
  private final DefaultCouchbaseEnvironment environment;

  private Connection(DefaultCouchbaseEnvironment environment, String host, Authenticator user) {
    this.environment = environment;
    cluster = CouchbaseCluster.create(environment, host).authenticate(user);
  }

  static Connection as(Authenticator user) {
    URI target = URI.create(System.getenv("SETTEE_CONNECT"));
    int managementPort = Integer.parseInt(System.getenv("SETTEE_MANAGEMENT_PORT"));
    return as(user, target, each -> each.bootstrapCarrierDirectPort(target.getPort())
        .bootstrapHttpDirectPort(managementPort));
  }

  /** What can be told to the SDK in no connection string is told to its environment. */
  static Connection as(Authenticator user, URI target,
      UnaryOperator<DefaultCouchbaseEnvironment.Builder> told) {
    DefaultCouchbaseEnvironment.Builder builder = DefaultCouchbaseEnvironment.builder()
        .mutationTokensEnabled(true).connectTimeout(READY.toMillis())
        .kvTimeout(Duration.ofSeconds(10).toMillis());
    return new Connection(told.apply(builder).build(), target.getHost(), user);
  }

  static Authenticator byPassword() {
    return new PasswordAuthenticator(
        System.getenv("SETTEE_USER"), System.getenv("SETTEE_PASSWORD"));
  }

  Bucket open() {
    return cluster.openBucket(BUCKET);
  }

  @Override
  public void close() {
    cluster.disconnect();
    environment.shutdown();
  }
}
