package acceptance

import com.couchbase.client.core.error.CollectionExistsException
import com.couchbase.client.core.error.CollectionNotFoundException
import com.couchbase.client.core.error.CouchbaseException
import com.couchbase.client.core.error.DocumentNotFoundException
import com.couchbase.client.core.error.ScopeExistsException
import com.couchbase.client.core.error.ScopeNotFoundException
import com.couchbase.client.core.error.TimeoutException
import com.couchbase.client.kotlin.Collection
import com.couchbase.client.kotlin.kv.ScanType
import com.couchbase.client.kotlin.kv.StoreSemantics
import com.couchbase.client.kotlin.manager.collection.CollectionManager
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlin.time.TimeSource

private val SOON = timeout(1.seconds)
private val LIMIT = 10.seconds

/** Cases: scopes and collections, and documents in them. */
internal fun Cases.collections() {
    add("collections-come-and-go") { comeAndGo(bucket.collections) }
    add("documents-in-collections") { documentsInCollections() }
    add("dropped-collection") {
        val dropped = created("short")
        dropped.upsert("k", 1)
        bucket.collections.dropCollection("shop", "short")
        expectGone { dropped.get("k", SOON) }
        expectGone { dropped.upsert("k", 2, SOON) }
        val again = created("short")
        expectError<DocumentNotFoundException> { again.get("k") }
        again.upsert("k", 3)
        expectEqual(again.get("k").contentAs<Int>(), 3, "value")
    }
    add("collection-expiry") {
        val fresh = created("fresh", 2.seconds)
        val started = TimeSource.Monotonic.markNow()
        fresh.upsert("k", 1)
        within(LIMIT, "it is over by itself") { !fresh.exists("k").exists }
        expect(started.elapsedNow() > 900.milliseconds, "not at once")
    }
    add("collection-expiry-changes") {
        val changing = created("changing")
        val manager = bucket.collections
        manager.updateCollection("shop", "changing", maxExpiry = 1.seconds)
        changing.upsert("k", 1)
        within(LIMIT, "it is over") { !changing.exists("k").exists }
        expectError<CollectionNotFoundException> {
            manager.updateCollection("shop", "none", maxExpiry = 1.seconds)
        }
    }
    add("unknown-collection") {
        expectGone { bucket.defaultScope().collection("unknown").get("k", SOON) }
        expectGone { bucket.scope("unknown").collection("c").get("k", SOON) }
    }
}

internal suspend fun expectGone(attempt: suspend () -> Unit) {
    expectError(
        CollectionNotFoundException::class.java,
        ScopeNotFoundException::class.java,
        TimeoutException::class.java,
        attempt = attempt,
    )
}

/** The names of all collections by scope. */
private suspend fun listed(manager: CollectionManager): Map<String, Set<String>> =
    manager.getAllScopes().associate { scope ->
        scope.name to scope.collections.map { it.name }.toSet()
    }

/** A new collection, which can be used. */
private suspend fun Sdk.created(name: String, maxExpiry: Duration? = null): Collection {
    val manager = bucket.collections
    if ("shop" !in listed(manager)) {
        manager.createScope("shop")
    }
    manager.createCollection("shop", name, maxExpiry = maxExpiry)
    return bucket.scope("shop").collection(name)
}

private suspend fun comeAndGo(manager: CollectionManager) {
    manager.createScope("market")
    expectError<ScopeExistsException> { manager.createScope("market") }
    manager.createCollection("market", "fruit")
    expectError<CollectionExistsException> { manager.createCollection("market", "fruit") }
    expectError<ScopeNotFoundException> { manager.createCollection("nowhere", "fruit") }
    expectError<CouchbaseException> { manager.createScope("_mine") }
    expectEqual(listed(manager)["market"], setOf("fruit"), "collections")
    manager.dropCollection("market", "fruit")
    expectError<CollectionNotFoundException> { manager.dropCollection("market", "fruit") }
    manager.dropScope("market")
    expectError<ScopeNotFoundException> { manager.dropScope("market") }
    expect("market" !in listed(manager), "the scope is gone")
}

private suspend fun Sdk.documentsInCollections() {
    val fruit = created("fruit")
    val nuts = created("nuts")
    val key = key()
    fruit.upsert(key, "fruit")
    val stored = nuts.upsert(key, "nuts")
    expectError<DocumentNotFoundException> { collection.get(key) }
    expectEqual(fruit.get(key).contentAs<String>(), "fruit", "value")
    fruit.remove(key)
    expectError<DocumentNotFoundException> { fruit.get(key) }
    expectEqual(nuts.get(key).contentAs<String>(), "nuts", "value")
    val part = nuts.mutateIn("parts", storeSemantics = StoreSemantics.upsert()) { upsert("a", 1) }
    val counted = nuts.binary.increment("count", initialValue = 7u)
    val found = scanned(nuts, ScanType.range(), sees(listOf(stored, part, counted)))
    expectEqual(found, listOf("count", key, "parts"), "keys that a scan finds")
}
