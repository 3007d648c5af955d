package acceptance;

import com.couchbase.client.core.message.internal.EndpointHealth;
import com.couchbase.client.core.message.internal.PingServiceHealth;
import com.couchbase.client.core.service.ServiceType;
import com.couchbase.client.core.state.LifecycleState;
import com.couchbase.client.java.auth.PasswordAuthenticator;
import com.couchbase.client.java.error.BucketDoesNotExistException;
import com.couchbase.client.java.error.InvalidPasswordException;
import java.util.List;

/** Cases: connecting, and what is told of connections. */
final class Connecting {
  static void declare(Cases cases) {
    cases.add("connect", sdk -> {
      try (Connection fresh = Connection.as(Connection.byPassword())) {
        Expect.that(!fresh.open().exists("connect"), "a fresh cluster object reads");
      }
    });
    cases.add("ping", sdk -> {
      List<PingServiceHealth> reports = sdk.bucket.ping(List.of(ServiceType.BINARY)).services();
      Expect.that(!reports.isEmpty(), "the data service answers a ping");
      reports.forEach(each ->
          Expect.equal(each.state(), PingServiceHealth.PingState.OK, "state"));
    });
    cases.add("diagnostics", sdk -> {
      List<EndpointHealth> known =
          sdk.connection.cluster.diagnostics().endpoints(ServiceType.BINARY);
      Expect.that(!known.isEmpty(), "connections of the data service are known");
      known.forEach(each -> Expect.equal(each.state(), LifecycleState.CONNECTED, "state"));
    });
    cases.add("wrong-password-is-refused",
        sdk -> expectRefused(System.getenv("SETTEE_USER"), "wrong"));
    cases.add("unknown-user-is-refused",
        sdk -> expectRefused("nobody", System.getenv("SETTEE_PASSWORD")));
    cases.add("unknown-bucket-is-refused", sdk -> {
      try (Connection fresh = Connection.as(Connection.byPassword())) {
        // The SDK cannot tell a bucket that is not there from one that is not for the user.
        Expect.error(() -> fresh.cluster.openBucket("absent"),
            BucketDoesNotExistException.class, InvalidPasswordException.class);
      }
    });
  }

  private static void expectRefused(String user, String password) {
    try (Connection refused = Connection.as(new PasswordAuthenticator(user, password))) {
      Expect.error(refused::open, InvalidPasswordException.class);
    }
  }
}
