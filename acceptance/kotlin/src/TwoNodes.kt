package acceptance

import com.couchbase.client.core.error.AmbiguousTimeoutException
import com.couchbase.client.core.error.CouchbaseException
import com.couchbase.client.core.error.DurabilityAmbiguousException
import com.couchbase.client.core.error.DurabilityImpossibleException
import com.couchbase.client.kotlin.kv.Durability
import com.couchbase.client.kotlin.kv.LookupInSpec
import com.couchbase.client.kotlin.kv.PersistTo
import com.couchbase.client.kotlin.kv.ReplicateTo
import com.couchbase.client.kotlin.kv.StoreSemantics
import java.util.zip.CRC32
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.flow.toList

private const val COUNT = 40
private val LIMIT = 20.seconds

/** Cases: two nodes, one replica. */
internal fun Cases.twoNodes() {
    add("tls-two-nodes") { exchange(byPassword(), "tls", List(COUNT) { it }) }
    add("sdk-durable-writes-at-every-level") {
        for (level in LEVELS) {
            durableWrites(level)
        }
        order("CLUSTER replicated")
    }
    add("sdk-replicas-can-be-read") { replicas() }
    add("sdk-observed-writes-reach-the-replica") {
        val observed = Durability.clientVerified(PersistTo.TWO, ReplicateTo.ONE)
        for (key in keys("observed").take(5)) {
            collection.upsert(key, mapOf("key" to key), durability = observed)
            expectCopies(key)
        }
    }
    add("sdk-parts-of-replicas-can-be-read") { partsOfReplicas() }
    add("sdk-scans-see-both-nodes") { expectScans(collection, 300) }
    add("sdk-transactions-on-two-nodes") { commitAndRollBack() }
    add("sdk-collections-on-two-nodes") { collectionsOnTwoNodes() }
    add("sdk-stopped-replica-makes-durable-writes-ambiguous") { stoppedReplica() }
    add("sdk-failover-keeps-the-sdk-working") { failover() }
}

private fun keys(name: String) = List(COUNT) { "$name-$it" }

private suspend fun Sdk.durableWrites(level: Durability) {
    for (key in keys("durable-${LEVELS.indexOf(level)}")) {
        collection.insert(key, 0, durability = level)
        val cas = collection.upsert(key, 1, durability = level).cas
        collection.replace(key, 2, durability = level, cas = cas)
        expectValue(key, 2)
        if (key.endsWith("1")) {
            collection.remove(key, durability = level)
            expect(isGone(key), "it is removed")
        }
    }
}

private suspend fun Sdk.expectCopies(key: String) {
    val copies = collection.getAllReplicas(key).toList()
    expectEqual(copies.size, 2, "copies")
    copies.forEach { expectEqual(it.contentAs<Any>(), mapOf("key" to key), "copy") }
    expectEqual(copies.count { it.replica }, 1, "replicas")
}

private suspend fun Sdk.replicas() {
    keys("replica").forEach { collection.upsert(it, mapOf("key" to it)) }
    order("CLUSTER replicated")
    for (key in keys("replica")) {
        expectCopies(key)
        val any = collection.getAnyReplica(key)
        expectEqual(any.contentAs<Any>(), mapOf("key" to key), "any copy")
    }
    expectError<CouchbaseException> { collection.getAnyReplica("absent") }
}

private suspend fun Sdk.partsOfReplicas() {
    for (key in keys("part")) {
        collection.mutateIn(key, storeSemantics = StoreSemantics.upsert()) {
            upsert("meta", mapOf("key" to key), xattr = true)
            upsert("n", 1)
        }
    }
    order("CLUSTER replicated")
    val spec = object : LookupInSpec() {
        val key = get("meta.key", xattr = true)
        val number = get("n")
        val none = exists("none")
    }
    for (key in keys("part")) {
        val copies = collection.lookupInAllReplicas(key, spec).toList()
        expectEqual(copies.map { it.replica }.sorted(), listOf(false, true), "copies")
        for (copy in copies) {
            expectEqual(spec.key.contentAs<String>(copy), key, "attribute")
            expectEqual(spec.number.contentAs<Int>(copy), 1, "part")
            expect(!spec.none.get(copy), "there is no such path")
        }
        val any = collection.lookupInAnyReplica(key, spec)
        expectEqual(spec.number.contentAs<Int>(any), 1, "any copy")
    }
}

private suspend fun Sdk.collectionsOnTwoNodes() {
    val manager = bucket.collections
    manager.createScope("shop")
    manager.createCollection("shop", "fruit")
    val fruit = bucket.scope("shop").collection("fruit")
    for (key in keys("fruit")) {
        fruit.upsert(key, key, durability = Durability.majority())
        expectEqual(fruit.get(key).contentAs<String>(), key, "value")
    }
    manager.dropScope("shop")
    expectGone { fruit.get("fruit-0", timeout(1.seconds)) }
}

/** Whether the active copy of a key is on the first node, as that of every even vBucket is. */
private fun isOnFirst(key: String): Boolean {
    val sum = CRC32().apply { update(key.toByteArray()) }
    return (sum.value shr 16 and 0x7fff) % variable("SETTEE_VBUCKETS").toInt() % 2 == 0L
}

private suspend fun Sdk.stoppedReplica() {
    val (first, second) = keys("stopped").filter(::isOnFirst)
    listOf(first, second).forEach { collection.upsert(it, 1) }
    order("CLUSTER pause 1")
    expectError(
        AmbiguousTimeoutException::class.java,
        DurabilityAmbiguousException::class.java,
    ) { collection.upsert(first, 2, timeout(3.seconds), durability = Durability.majority()) }
    expectValue(first, 1)
    collection.upsert(second, 3)
    expectValue(second, 3)
    order("CLUSTER resume 1")
    within(LIMIT, "durable writes go on") {
        succeeds { collection.upsert(first, 4, durability = Durability.majority()) }
    }
    expectValue(first, 4)
}

private suspend fun Sdk.failover() {
    val level = Durability.persistToMajority()
    keys("failover").forEach { collection.upsert(it, 1, durability = level) }
    order("CLUSTER kill 0")
    order("CLUSTER failover 0")
    for (key in keys("failover")) {
        within(LIMIT, "$key is read") { succeeds { expectValue(key, 1) } }
        collection.upsert(key, 2)
    }
    // One of two copies is missing: no majority can be reached.
    expectError<DurabilityImpossibleException> {
        collection.upsert("failover-0", 3, durability = level)
    }
    order("CLUSTER recover 0")
    order("CLUSTER replicated")
    within(LIMIT, "durable writes go on") {
        succeeds { collection.upsert("failover-0", 2, durability = level) }
    }
    keys("failover").forEach { expectValue(it, 2) }
}
