package acceptance

import com.couchbase.client.core.error.BucketExistsException
import com.couchbase.client.core.error.BucketNotFlushableException
import com.couchbase.client.core.error.BucketNotFoundException
import com.couchbase.client.core.error.CouchbaseException
import com.couchbase.client.core.error.DocumentNotFoundException
import com.couchbase.client.kotlin.Collection
import com.couchbase.client.kotlin.kv.Expiry
import com.couchbase.client.kotlin.manager.bucket.BucketManager
import com.couchbase.client.kotlin.manager.bucket.BucketType
import com.couchbase.client.kotlin.manager.bucket.CompressionMode
import com.couchbase.client.kotlin.util.StorageSize.Companion.gibibytes
import com.couchbase.client.kotlin.util.StorageSize.Companion.mebibytes
import kotlin.time.Duration.Companion.seconds

private const val NAME = "orders"
private val QUOTA = 100.mebibytes
private val SOON = timeout(1.seconds)

/** Cases: buckets that are made, changed, emptied and deleted while the node runs. */
internal fun Cases.buckets() {
    add("buckets-are-made-listed-and-dropped") {
        val key = stored(mapOf("of" to BUCKET)).key
        for (type in listOf(BucketType.COUCHBASE, BucketType.EPHEMERAL)) {
            withBucket(type) { expectMade(this, type, it) }
            expectError<BucketNotFoundException> { cluster.buckets.getBucket(NAME) }
            expectError<BucketNotFoundException> { cluster.buckets.dropBucket(NAME) }
        }
        expect(!isGone(key), "the other bucket has its document")
    }
    add("buckets-are-changed") { withBucket { expectChanged(this, it) } }
    add("a-bucket-is-flushed-where-that-is-enabled") {
        withBucket {
            it.upsert("k", 1)
            expectError<BucketNotFlushableException> { flushBucket(NAME) }
            expect(it.exists("k").exists, "nothing is gone")
            updateBucket(NAME, flushEnabled = true)
            flushBucket(NAME)
            expect(!it.exists("k").exists, "the bucket is empty")
            it.upsert("k", 2)
            expectError<BucketNotFoundException> { flushBucket("none") }
        }
    }
    add("buckets-that-cannot-be-are-refused") {
        val manager = cluster.buckets
        expectError<CouchbaseException> { manager.createBucket(NAME, ramQuota = 16384.gibibytes) }
        expectError<CouchbaseException> { manager.createBucket(NAME, ramQuota = 99.mebibytes) }
        expectError<CouchbaseException> { manager.createBucket("a/b") }
        expectError<CouchbaseException> {
            manager.createBucket(NAME, maximumExpiry = Expiry.of((1L shl 31).seconds))
        }
        expectEqual(names(manager), setOf(BUCKET), "all buckets")
    }
    add("a-dropped-bucket-is-gone-for-its-clients") {
        withBucket {
            it.upsert("k", 1)
            dropBucket(NAME)
            expectError<CouchbaseException> { it.get("k", SOON) }
            createBucket(NAME, replicas = 0)
            val again = cluster.bucket(NAME).defaultCollection()
            within(READY, "the new bucket is empty") {
                succeeds { expect(!again.exists("k", SOON).exists, "it is empty") }
            }
            again.upsert("k", 2)
        }
    }
}

/** Runs a body with a new bucket, which is dropped in the end. */
private suspend fun Sdk.withBucket(
    type: BucketType = BucketType.COUCHBASE,
    body: suspend BucketManager.(Collection) -> Unit,
) {
    val manager = cluster.buckets
    manager.createBucket(NAME, ramQuota = QUOTA, bucketType = type, replicas = 0)
    try {
        manager.body(cluster.bucket(NAME).defaultCollection())
    } finally {
        manager.dropBucket(NAME)
    }
}

private suspend fun names(manager: BucketManager) = manager.getAllBuckets().map { it.name }.toSet()

private suspend fun expectMade(manager: BucketManager, type: BucketType, documents: Collection) {
    expectError<BucketExistsException> { manager.createBucket(NAME, bucketType = type) }
    val found = manager.getBucket(NAME)
    expectEqual(found.name, NAME, "name")
    expectEqual(found.ramQuota, QUOTA, "quota")
    expectEqual(found.bucketType, type, "type")
    expectEqual(names(manager), setOf(BUCKET, NAME), "all buckets")
    expectError<DocumentNotFoundException> { documents.get("k") }
    documents.upsert("k", NAME)
    expectEqual(documents.get("k").contentAs<String>(), NAME, "the document")
}

private suspend fun expectChanged(manager: BucketManager, documents: Collection) {
    documents.upsert("k", 1)
    manager.updateBucket(
        NAME, ramQuota = 150.mebibytes, replicas = 1, flushEnabled = true,
        compressionMode = CompressionMode.ACTIVE,
    )
    val found = manager.getBucket(NAME)
    expectEqual(found.ramQuota, 150.mebibytes, "quota")
    expectEqual(found.replicas, 1, "replicas")
    expect(found.flushEnabled, "it may be flushed")
    expectEqual(found.compressionMode, CompressionMode.ACTIVE, "compression")
    expectEqual(documents.get("k").contentAs<Int>(), 1, "the document")
    expectError<BucketNotFoundException> { manager.updateBucket("none", ramQuota = QUOTA) }
}
