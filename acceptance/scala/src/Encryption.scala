package acceptance

import java.nio.file.{Files, Path}
import java.security.KeyFactory
import java.security.cert.{CertificateFactory, X509Certificate}
import java.security.spec.PKCS8EncodedKeySpec
import java.util.Base64

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._
import scala.util.Using

import com.couchbase.client.core.env.{Authenticator, CertificateAuthenticator}
import com.couchbase.client.core.error.CouchbaseException
import com.couchbase.client.scala.env.SecurityConfig

/** Cases: TLS. Its files are named by variables. */
object Encryption {
  private val Sizes = Seq(1, 5000, 20000, 1 << 20, 15 << 20)

  def declare(cases: Cases): Unit = {
    cases.add("tls-exchanges-documents")(_ => exchange(Sdk.byPassword, "tls", Sizes))
    cases.add("tls-of-another-authority-is-refused") { _ =>
      expectNoConnection(Sdk.byPassword, "SETTEE_OTHER_AUTHORITY")
    }
    cases.add("tls-client-certificate") { _ =>
      val own = byCertificate("SETTEE_CERTIFICATE", "SETTEE_KEY")
      exchange(own, "tls-certificate", Seq(100))
    }
    cases.add("tls-certificate-of-nobody") { _ =>
      val stranger = byCertificate("SETTEE_STRANGERS_CERTIFICATE", "SETTEE_STRANGERS_KEY")
      expectNoConnection(stranger, "SETTEE_AUTHORITY")
      exchange(Sdk.byPassword, "tls-after-nobody", Seq(100))
    }
  }

  /** Stores and reads documents of these sizes in bytes behind TLS. */
  def exchange(authenticator: Authenticator, name: String, sizes: Seq[Int]): Unit = {
    val connection = connect(authenticator, "SETTEE_AUTHORITY")
    try {
      val collection = connection.ready.defaultCollection
      for ((size, number) <- sizes.zipWithIndex) {
        val value = "x" * size
        collection.upsert(s"$name-$number", value).get
        val read = collection.get(s"$name-$number").get.contentAs[String].get
        Expect.that(read == value, s"$size bytes come back")
      }
    } finally connection.close()
  }

  private def expectNoConnection(authenticator: Authenticator, authority: String): Unit = {
    val connection = connect(authenticator, authority)
    try
      Expect.error[CouchbaseException](
        connection.cluster.bucket(Sdk.Name).waitUntilReady(3.seconds)
      )
    finally connection.close()
  }

  /** A cluster object behind TLS that trusts the authorities of a file. */
  private def connect(authenticator: Authenticator, authority: String): Connection = {
    val security = SecurityConfig().enableTls(true).trustCertificates(certificates(authority))
    Sdk.connect(authenticator, "SETTEE_TLS_CONNECT", security)
  }

  /** The user whom a certificate names. */
  private def byCertificate(certificate: String, key: String): Authenticator = {
    val text = Files.readString(Path.of(Sdk.variable(key))).replaceAll("-----.*-----", "")
    val secret = new PKCS8EncodedKeySpec(Base64.getMimeDecoder.decode(text))
    CertificateAuthenticator.fromKey(
      KeyFactory.getInstance("EC").generatePrivate(secret),
      null,
      certificates(certificate).asJava
    )
  }

  private def certificates(name: String): Seq[X509Certificate] =
    Using.resource(Files.newInputStream(Path.of(Sdk.variable(name)))) { file =>
      val factory = CertificateFactory.getInstance("X.509")
      factory.generateCertificates(file).asScala.map(_.asInstanceOf[X509Certificate]).toSeq
    }
}
