package acceptance;

import com.couchbase.client.core.diagnostics.EndpointDiagnostics;
import com.couchbase.client.core.diagnostics.EndpointPingReport;
import com.couchbase.client.core.diagnostics.PingState;
import com.couchbase.client.core.endpoint.EndpointState;
import com.couchbase.client.core.error.AuthenticationFailureException;
import com.couchbase.client.core.error.BucketNotFoundException;
import com.couchbase.client.core.error.UnambiguousTimeoutException;
import com.couchbase.client.core.service.ServiceType;
import com.couchbase.client.java.Cluster;
import com.couchbase.client.java.diagnostics.PingOptions;
import java.time.Duration;
import java.util.List;
import java.util.Set;

/** Cases: connecting, and what is told of connections. */
final class Connecting {
  static void declare(Cases cases) {
    cases.add("connect", sdk -> connect());
    cases.add("wait-until-ready", sdk -> {
      sdk.cluster.waitUntilReady(Sdk.READY);
      sdk.bucket.waitUntilReady(Sdk.READY);
    });
    cases.add("ping", Connecting::ping);
    cases.add("diagnostics", Connecting::diagnostics);
    cases.add("wrong-password-is-refused",
        sdk -> expectRefused(System.getenv("SETTEE_USER"), "wrong"));
    cases.add("unknown-user-is-refused",
        sdk -> expectRefused("nobody", System.getenv("SETTEE_PASSWORD")));
    cases.add("unknown-bucket-is-refused", sdk -> Expect.error(
        () -> sdk.cluster.bucket("absent").waitUntilReady(Duration.ofSeconds(2)),
        UnambiguousTimeoutException.class, BucketNotFoundException.class));
  }

  private static void connect() {
    Cluster cluster = Sdk.connect(System.getenv("SETTEE_USER"), System.getenv("SETTEE_PASSWORD"));
    try {
      boolean exists = Sdk.ready(cluster).defaultCollection().exists("connect").exists();
      Expect.that(!exists, "a fresh cluster object reads");
    } finally {
      cluster.disconnect();
    }
  }

  private static void ping(Sdk sdk) {
    PingOptions options = PingOptions.pingOptions().serviceTypes(Set.of(ServiceType.KV));
    List<EndpointPingReport> reports = sdk.bucket.ping(options).endpoints().get(ServiceType.KV);
    Expect.that(reports != null && !reports.isEmpty(), "the data service answers a ping");
    reports.forEach(report -> Expect.equal(report.state(), PingState.OK, "state"));
  }

  private static void diagnostics(Sdk sdk) {
    List<EndpointDiagnostics> known = sdk.cluster.diagnostics().endpoints().get(ServiceType.KV);
    Expect.that(known != null && !known.isEmpty(), "connections of the data service are known");
    // The SDK keeps trying to open the bucket that is not there.
    for (EndpointDiagnostics each : known) {
      boolean isOfBucket = each.namespace().filter(Sdk.BUCKET::equals).isPresent();
      Expect.that(!isOfBucket || each.state() == EndpointState.CONNECTED, "state: " + each);
    }
  }

  static void expectRefused(String user, String password) {
    Cluster cluster = Sdk.connect(user, password);
    try {
      // The SDK repeats a refused authentication until its time is over.
      Throwable error = Expect.error(
          () -> cluster.bucket(Sdk.BUCKET).waitUntilReady(Duration.ofSeconds(2)),
          UnambiguousTimeoutException.class, AuthenticationFailureException.class);
      Expect.that(error instanceof AuthenticationFailureException
          || error.toString().contains("User authentication failed"), "told: " + error);
    } finally {
      cluster.disconnect();
    }
  }
}
