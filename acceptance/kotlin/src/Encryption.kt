package acceptance

import com.couchbase.client.core.env.Authenticator
import com.couchbase.client.core.env.CertificateAuthenticator
import com.couchbase.client.core.env.PasswordAuthenticator
import com.couchbase.client.core.error.CouchbaseException
import com.couchbase.client.kotlin.Cluster
import com.couchbase.client.kotlin.env.dsl.TrustSource
import java.io.File
import java.security.KeyFactory
import java.security.cert.CertificateFactory
import java.security.cert.X509Certificate
import java.security.spec.PKCS8EncodedKeySpec
import java.util.Base64
import kotlin.time.Duration.Companion.seconds

private val SIZES = listOf(1, 5000, 20_000, 1 shl 20, 15 shl 20)

/** Cases: TLS. Its files are named by variables. */
internal fun Cases.encryption() {
    add("tls-exchanges-documents") { exchange(byPassword(), "tls", SIZES) }
    add("tls-of-another-authority-is-refused") {
        expectNoConnection(byPassword(), "SETTEE_OTHER_AUTHORITY")
    }
    add("tls-client-certificate") {
        val own = byCertificate("SETTEE_CERTIFICATE", "SETTEE_KEY")
        exchange(own, "tls-certificate", listOf(100))
    }
    add("tls-certificate-of-nobody") {
        val stranger = byCertificate("SETTEE_STRANGERS_CERTIFICATE", "SETTEE_STRANGERS_KEY")
        expectNoConnection(stranger, "SETTEE_AUTHORITY")
        exchange(byPassword(), "tls-after-nobody", listOf(100))
    }
}

internal fun byPassword(): Authenticator = PasswordAuthenticator.create(USER, PASSWORD)

/** Stores and reads documents of these sizes in bytes behind TLS. */
internal suspend fun exchange(authenticator: Authenticator, name: String, sizes: List<Int>) {
    val cluster = connect(authenticator, "SETTEE_AUTHORITY")
    try {
        val collection = cluster.bucket(BUCKET).waitUntilReady(READY).defaultCollection()
        sizes.forEachIndexed { number, size ->
            val value = "x".repeat(size)
            collection.upsert("$name-$number", value)
            val read = collection.get("$name-$number").contentAs<String>()
            expect(read == value, "$size bytes come back")
        }
    } finally {
        cluster.disconnect()
    }
}

private suspend fun expectNoConnection(authenticator: Authenticator, authority: String) {
    val cluster = connect(authenticator, authority)
    try {
        expectError<CouchbaseException> { cluster.bucket(BUCKET).waitUntilReady(3.seconds) }
    } finally {
        cluster.disconnect()
    }
}

/** A cluster object behind TLS that trusts the authorities of a file. */
private fun connect(authenticator: Authenticator, authority: String): Cluster =
    Cluster.connect(variable("SETTEE_TLS_CONNECT"), authenticator) {
        security { trust = TrustSource.certificates(certificates(authority)) }
        timeout {
            connectTimeout = READY
            kvTimeout = READY
        }
    }

/** The user whom a certificate names. */
private fun byCertificate(certificate: String, key: String): Authenticator {
    val text = File(variable(key)).readText().replace(Regex("-----.*-----"), "")
    val secret = PKCS8EncodedKeySpec(Base64.getMimeDecoder().decode(text))
    val factory = KeyFactory.getInstance("EC")
    return CertificateAuthenticator.fromKey(
        factory.generatePrivate(secret), null, certificates(certificate),
    )
}

private fun certificates(name: String): List<X509Certificate> =
    File(variable(name)).inputStream().use { file ->
        val factory = CertificateFactory.getInstance("X.509")
        factory.generateCertificates(file).map { it as X509Certificate }
    }
