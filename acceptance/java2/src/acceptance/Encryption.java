package acceptance;

import com.couchbase.client.java.Bucket;
import com.couchbase.client.java.auth.CertAuthenticator;
import com.couchbase.client.java.document.JsonStringDocument;
import com.couchbase.client.java.env.DefaultCouchbaseEnvironment;
import java.io.InputStream;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;

/** Cases: TLS. Its files are named by variables. */
final class Encryption {
  private static final int[] SIZES = {1, 5000, 20_000, 1 << 20, 15 << 20};
  private static final String PASSWORD = "of-the-store";

  static void declare(Cases cases) {
    cases.add("tls-exchanges-documents", sdk -> exchange(byPassword("SETTEE_AUTHORITY"), SIZES));
    cases.add("tls-of-another-authority-is-refused",
        sdk -> expectRefused(byPassword("SETTEE_OTHER_AUTHORITY")));
    cases.add("tls-client-certificate",
        sdk -> exchange(byCertificate("SETTEE_CERTIFICATE", "SETTEE_KEY"), 100));
    cases.add("tls-certificate-of-nobody", sdk -> {
      expectRefused(byCertificate("SETTEE_STRANGERS_CERTIFICATE", "SETTEE_STRANGERS_KEY"));
      exchange(byPassword("SETTEE_AUTHORITY"), 100);
    });
  }

  /** Stores and reads documents of these sizes in bytes, and closes the connection. */
  private static void exchange(Connection opened, int... sizes) {
    try (Connection connection = opened) {
      Bucket bucket = connection.open();
      for (int size : sizes) {
        String value = "x".repeat(size);
        bucket.upsert(JsonStringDocument.create("tls-" + size, value));
        String read = bucket.get("tls-" + size, JsonStringDocument.class).content();
        Expect.that(read.equals(value), size + " bytes come back");
      }
    }
  }

  private static void expectRefused(Connection opened) {
    try (Connection connection = opened) {
      Expect.error(connection::open, RuntimeException.class);
    }
  }

  private static URI target() {
    return URI.create(System.getenv("SETTEE_TLS_CONNECT"));
  }

  /** An environment with TLS that trusts the authorities of a file. */
  private static DefaultCouchbaseEnvironment.Builder trusting(
      DefaultCouchbaseEnvironment.Builder builder, KeyStore authorities) {
    return builder.sslEnabled(true).sslTruststore(authorities)
        .bootstrapCarrierSslPort(target().getPort());
  }

  private static Connection byPassword(String authority) throws Exception {
    KeyStore authorities = authorities(authority);
    return Connection.as(Connection.byPassword(), target(),
        builder -> trusting(builder, authorities));
  }

  /** The user whom a certificate names. */
  private static Connection byCertificate(String certificate, String key) throws Exception {
    KeyStore authorities = authorities("SETTEE_AUTHORITY");
    KeyStore own = emptyStore();
    own.setKeyEntry("own", privateKey(key), PASSWORD.toCharArray(),
        new Certificate[] {certificate(certificate)});
    return Connection.as(CertAuthenticator.INSTANCE, target(), builder ->
        trusting(builder, authorities).certAuthEnabled(true).sslKeystore(own)
            .sslKeystorePassword(PASSWORD));
  }

  private static KeyStore emptyStore() throws Exception {
    KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
    store.load(null, null);
    return store;
  }

  private static KeyStore authorities(String variable) throws Exception {
    KeyStore store = emptyStore();
    store.setCertificateEntry("authority", certificate(variable));
    return store;
  }

  private static Certificate certificate(String variable) throws Exception {
    try (InputStream file = Files.newInputStream(Path.of(System.getenv(variable)))) {
      return CertificateFactory.getInstance("X.509").generateCertificate(file);
    }
  }

  private static PrivateKey privateKey(String variable) throws Exception {
    String text = Files.readString(Path.of(System.getenv(variable)))
        .replaceAll("-----.*-----", "");
    byte[] bytes = Base64.getMimeDecoder().decode(text);
    return KeyFactory.getInstance("EC").generatePrivate(new PKCS8EncodedKeySpec(bytes));
  }
}
