package acceptance;

import com.couchbase.client.dcp.CertificateAuthenticator;
import com.couchbase.client.dcp.Client;
import com.couchbase.client.dcp.StreamFrom;
import com.couchbase.client.dcp.StreamTo;
import com.couchbase.client.dcp.error.BootstrapException;
import com.couchbase.client.java.manager.user.Role;
import com.couchbase.client.java.manager.user.User;
import com.couchbase.client.java.manager.user.UserManager;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.PKCS8EncodedKeySpec;
import java.time.Duration;
import java.util.Base64;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Cases: who may connect, and how. */
final class Connecting {
  static void declare(Cases cases) {
    cases.add("connects-with-collections-noop-and-flow-control", Connecting::connects);
    cases.add("the-failover-log-is-told", Connecting::failoverLog);
    cases.add("wrong-password-is-refused", sdk -> expectRefused(builder -> builder
        .credentials(System.getenv("SETTEE_USER"), "wrong")));
    cases.add("unknown-bucket-is-refused", sdk -> expectRefused(builder -> builder
        .bucket("absent")));
    cases.add("streams-need-a-role", Connecting::role);
    cases.add("tls-streams-documents", sdk -> streams(sdk, byPassword("SETTEE_AUTHORITY")));
    cases.add("tls-of-another-authority-is-refused",
        sdk -> expectRefused(byPassword("SETTEE_OTHER_AUTHORITY")));
    cases.add("tls-client-certificate", sdk -> streams(sdk, byCertificate()));
  }

  private static void connects(Sdk sdk) {
    try (Consumer consumer = Consumer.connect()) {
      List<Integer> told = consumer.client.getSeqnos().map(each -> each.partition())
          .collect(Collectors.toList()).block(Consumer.LIMIT).stream().sorted().toList();
      Expect.equal(told, IntStream.range(0, consumer.client.numPartitions()).boxed().toList(),
          "vBuckets whose seqnos are told");
      Expect.equal(consumer.connections.get(), 1, "connections");
    }
  }

  private static void failoverLog(Sdk sdk) {
    try (Consumer consumer = Consumer.connect()) {
      consumer.client.initializeState(StreamFrom.BEGINNING, StreamTo.NOW).block(Consumer.LIMIT);
      consumer.client.sessionState().foreachPartition(state -> {
        int last = state.getFailoverLog().size() - 1;
        Expect.that(state.getFailoverLog().get(last).getUuid() != 0, "a branch has a UUID");
        Expect.equal(state.getFailoverLog().get(last).getSeqno(), 0L, "where the oldest begins");
      });
    }
  }

  static void expectRefused(Consumer.Settings settings) {
    Expect.error(() -> Consumer.connect(builder -> {
      settings.of(builder);
      builder.bootstrapTimeout(Duration.ZERO).configRefreshInterval(Consumer.BRIEF);
    }), BootstrapException.class);
  }

  /** Everything that was written comes. */
  static void streams(Sdk sdk, Consumer.Settings settings) throws Exception {
    sdk.writer.storeMany("connecting", 20, 5000);
    Consumer.toNow(settings).expectDocuments(sdk.writer);
  }

  private static void role(Sdk sdk) throws Exception {
    UserManager users = sdk.cluster.users();
    User user = new User("streamer").password("secret");
    Consumer.Settings login = builder -> builder.credentials("streamer", "secret");
    users.upsertUser(user.roles(new Role("data_reader", Sdk.BUCKET)));
    expectRefused(login);
    users.upsertUser(user.roles(new Role("data_dcp_reader", Sdk.BUCKET)));
    streams(sdk, login);
    users.dropUser("streamer");
  }

  static Consumer.Settings byPassword(String authority) {
    return builder -> behindTls(builder, authority);
  }

  private static void behindTls(Client.Builder builder, String authority) {
    Path path = Path.of(System.getenv(authority));
    builder.connectionString(System.getenv("SETTEE_TLS_CONNECT"))
        .securityConfig(security -> security.enableTls(true).trustCertificate(path));
  }

  /** The user whom a certificate names. */
  private static Consumer.Settings byCertificate() throws Exception {
    String text = Files.readString(Path.of(System.getenv("SETTEE_KEY")));
    byte[] bytes = Base64.getMimeDecoder().decode(text.replaceAll("-----.*-----", ""));
    PrivateKey key = KeyFactory.getInstance("EC").generatePrivate(new PKCS8EncodedKeySpec(bytes));
    try (InputStream file = Files.newInputStream(Path.of(System.getenv("SETTEE_CERTIFICATE")))) {
      List<X509Certificate> chain = CertificateFactory.getInstance("X.509")
          .generateCertificates(file).stream()
          .map((Certificate each) -> (X509Certificate) each).toList();
      return builder -> {
        behindTls(builder, "SETTEE_AUTHORITY");
        builder.authenticator(CertificateAuthenticator.fromKey(key, null, chain));
      };
    }
  }
}
