package acceptance

import com.couchbase.client.core.diagnostics.PingState
import com.couchbase.client.core.endpoint.EndpointState
import com.couchbase.client.core.error.AuthenticationFailureException
import com.couchbase.client.core.error.BucketNotFoundException
import com.couchbase.client.core.error.UnambiguousTimeoutException
import com.couchbase.client.core.service.ServiceType
import kotlin.time.Duration.Companion.seconds

/** Cases: connecting, and what is told of connections. */
internal fun Cases.connecting() {
    add("connect") {
        val fresh = Sdk.connect(USER, PASSWORD)
        try {
            val read = fresh.bucket(BUCKET).waitUntilReady(READY).defaultCollection()
            expect(!read.exists("connect").exists, "a fresh cluster object reads")
        } finally {
            fresh.disconnect()
        }
    }
    add("wait-until-ready") {
        cluster.waitUntilReady(READY)
        bucket.waitUntilReady(READY)
    }
    add("ping") {
        val reports = bucket.ping(services = setOf(ServiceType.KV)).endpoints[ServiceType.KV]
        expect(!reports.isNullOrEmpty(), "the data service answers a ping")
        reports?.forEach { expectEqual(it.state, PingState.OK, "state") }
    }
    add("diagnostics") {
        val known = cluster.diagnostics().endpoints[ServiceType.KV].orEmpty()
        val ofBucket = known.filter { it.namespace == BUCKET }
        expect(ofBucket.isNotEmpty(), "connections of the data service are known")
        ofBucket.forEach { expectEqual(it.state, EndpointState.CONNECTED, "state") }
    }
    add("wrong-password-is-refused") { expectRefused(USER, "wrong") }
    add("unknown-user-is-refused") { expectRefused("nobody", PASSWORD) }
    add("unknown-bucket-is-refused") {
        expectError(
            UnambiguousTimeoutException::class.java,
            BucketNotFoundException::class.java,
        ) { cluster.bucket("absent").waitUntilReady(2.seconds) }
    }
}

internal suspend fun expectRefused(user: String, password: String) {
    val refused = Sdk.connect(user, password)
    try {
        // The SDK repeats a refused authentication until its time is over.
        val error = expectError(
            UnambiguousTimeoutException::class.java,
            AuthenticationFailureException::class.java,
        ) { refused.bucket(BUCKET).waitUntilReady(2.seconds) }
        expect(
            error is AuthenticationFailureException ||
                "User authentication failed" in error.toString(),
            "told: $error",
        )
    } finally {
        refused.disconnect()
    }
}
