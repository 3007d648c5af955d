package acceptance

import com.couchbase.client.kotlin.Bucket
import com.couchbase.client.kotlin.Cluster
import com.couchbase.client.kotlin.Collection
import com.couchbase.client.kotlin.CommonOptions
import com.couchbase.client.kotlin.kv.Expiry
import com.couchbase.client.kotlin.kv.MutationResult
import java.util.concurrent.atomic.AtomicLong
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds

internal const val BUCKET = "default"
internal val READY = 15.seconds
internal val USER = variable("SETTEE_USER")
internal val PASSWORD = variable("SETTEE_PASSWORD")

/** For what is to end without an answer. */
internal val BRIEF = timeout(500.milliseconds)

internal fun variable(name: String): String =
    requireNotNull(System.getenv(name)) { "$name is not set" }

internal fun timeout(limit: Duration) = CommonOptions(timeout = limit)

/** A new document: its key, and the CAS and token of its store. */
internal class Stored(val key: String, val result: MutationResult) {
    val cas get() = result.cas
}

/** The SDK's objects that the cases share. */
internal class Sdk private constructor(val cluster: Cluster, val bucket: Bucket) {
    val collection: Collection = bucket.defaultCollection()
    private val names = AtomicLong()

    /** A key that no other case uses. */
    fun key() = "key-${names.incrementAndGet()}"

    suspend inline fun <reified T> stored(value: T, expiry: Expiry = Expiry.none()): Stored {
        val key = key()
        return Stored(key, collection.upsert(key, value, expiry = expiry))
    }

    suspend fun expectValue(key: String, wanted: Any?) {
        expectEqual(collection.get(key).contentAs<Any?>(), wanted, "value of $key")
    }

    /** Whether no document has this key. */
    suspend fun isGone(key: String) = !collection.exists(key).exists

    /** Asks whoever runs the nodes, and waits until it is done. */
    fun order(line: String) {
        println(line)
        expect(readln() in listOf("NODE ready", "CLUSTER done"), "$line was not done")
    }

    companion object {
        suspend fun ready(): Sdk {
            val cluster = connect(USER, PASSWORD)
            return Sdk(cluster, cluster.bucket(BUCKET).waitUntilReady(READY))
        }

        /** A cluster object; the SDK connects in the background. */
        fun connect(user: String, password: String): Cluster =
            Cluster.connect(variable("SETTEE_CONNECT"), user, password) {
                timeout {
                    connectTimeout = READY
                    kvTimeout = 10.seconds
                    kvDurableTimeout = READY
                    kvScanTimeout = 60.seconds
                }
            }
    }
}
