package acceptance;

import com.couchbase.client.core.env.Authenticator;
import com.couchbase.client.core.env.CertificateAuthenticator;
import com.couchbase.client.core.env.PasswordAuthenticator;
import com.couchbase.client.core.error.CouchbaseException;
import com.couchbase.client.java.Bucket;
import com.couchbase.client.java.Cluster;
import com.couchbase.client.java.ClusterOptions;
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

/** Cases: TLS. Its files are named by variables. */
final class Encryption {
  private static final int[] SIZES = {1, 5000, 20_000, 1 << 20, 15 << 20};
  private static final Duration BRIEF = Duration.ofSeconds(3);

  static void declare(Cases cases) {
    cases.add("tls-exchanges-documents", sdk -> exchange(byPassword(), "tls", SIZES));
    cases.add("tls-of-another-authority-is-refused",
        sdk -> expectRefused(byPassword(), "SETTEE_OTHER_AUTHORITY"));
    cases.add("tls-client-certificate", sdk -> exchange(
        byCertificate("SETTEE_CERTIFICATE", "SETTEE_KEY"), "tls-certificate", 100));
    cases.add("tls-certificate-of-nobody", sdk -> {
      expectRefused(byCertificate("SETTEE_STRANGERS_CERTIFICATE", "SETTEE_STRANGERS_KEY"),
          "SETTEE_AUTHORITY");
      exchange(byPassword(), "tls-after-nobody", 100);
    });
  }

  /** Stores and reads documents of these sizes in bytes behind TLS. */
  static void exchange(Authenticator authenticator, String name, int... sizes) throws Exception {
    Cluster cluster = connect(authenticator, "SETTEE_AUTHORITY");
    try {
      Bucket bucket = Sdk.ready(cluster);
      int number = 0;
      for (int size : sizes) {
        String key = name + "-" + number++;
        String value = "x".repeat(size);
        bucket.defaultCollection().upsert(key, value);
        String read = bucket.defaultCollection().get(key).contentAs(String.class);
        Expect.that(read.equals(value), size + " bytes come back");
      }
    } finally {
      cluster.disconnect();
    }
  }

  static Authenticator byPassword() {
    return PasswordAuthenticator.create(
        System.getenv("SETTEE_USER"), System.getenv("SETTEE_PASSWORD"));
  }

  private static void expectRefused(Authenticator authenticator, String authority)
      throws Exception {
    Cluster cluster = connect(authenticator, authority);
    try {
      Expect.error(() -> cluster.bucket(Sdk.BUCKET).waitUntilReady(BRIEF),
          CouchbaseException.class);
    } finally {
      cluster.disconnect();
    }
  }

  /** A cluster object behind TLS that trusts the authorities of a file. */
  private static Cluster connect(Authenticator authenticator, String authority) throws Exception {
    List<X509Certificate> trusted = certificates(authority);
    ClusterOptions options = ClusterOptions.clusterOptions(authenticator)
        .environment(environment -> environment
            .securityConfig(security -> security.trustCertificates(trusted))
            .timeoutConfig(timeouts -> timeouts.connectTimeout(Sdk.READY)
                .kvTimeout(Sdk.READY)));
    return Cluster.connect(System.getenv("SETTEE_TLS_CONNECT"), options);
  }

  /** The user whom a certificate names. */
  private static Authenticator byCertificate(String certificate, String key) throws Exception {
    String text = Files.readString(Path.of(System.getenv(key))).replaceAll("-----.*-----", "");
    byte[] bytes = Base64.getMimeDecoder().decode(text);
    PrivateKey secret =
        KeyFactory.getInstance("EC").generatePrivate(new PKCS8EncodedKeySpec(bytes));
    return CertificateAuthenticator.fromKey(secret, null, certificates(certificate));
  }

  private static List<X509Certificate> certificates(String variable) throws Exception {
    try (InputStream file = Files.newInputStream(Path.of(System.getenv(variable)))) {
      CertificateFactory factory = CertificateFactory.getInstance("X.509");
      return factory.generateCertificates(file).stream()
          .map((Certificate each) -> (X509Certificate) each).toList();
    }
  }
}
