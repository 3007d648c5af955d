package acceptance

import com.couchbase.client.core.error.CasMismatchException
import com.couchbase.client.core.error.DocumentExistsException
import com.couchbase.client.kotlin.kv.Durability
import com.couchbase.client.kotlin.kv.Expiry
import com.couchbase.client.kotlin.kv.MutationResult
import com.couchbase.client.kotlin.kv.PersistTo
import kotlin.time.Duration.Companion.seconds

internal val LEVELS = listOf(
    Durability.majority(),
    Durability.majorityAndPersistToActive(),
    Durability.persistToMajority(),
)
private const val COUNT = 200

/** Cases: durable writes, and what is there after a restart. */
internal fun Cases.durability() {
    add("durable-writes-are-committed") {
        for (level in LEVELS) {
            durableLife(level)
            durableCounter(level)
        }
    }
    add("persist-to-active") {
        val active = Durability.clientVerified(PersistTo.ACTIVE)
        val key = key()
        collection.upsert(key, 1, durability = active)
        collection.replace(key, 2, durability = active)
        expectValue(key, 2)
        collection.remove(key, durability = active)
    }
    add("restart-keeps-everything") { restartKeepsEverything() }
    add("restart-goes-on-in-the-same-branch") {
        val before = stored(1)
        order("NODE restart")
        val after = collection.upsert(before.key, 2, timeout(READY))
        val old = requireNotNull(before.result.mutationToken)
        expect(after.cas > before.cas, "the CAS grows")
        expectEqual(after.mutationToken?.partitionUUID(), old.partitionUUID(), "uuid")
        expect(seqno(after) > old.sequenceNumber(), "seqnos go on")
    }
}

/** Takes a document from its insertion to its removal. */
private suspend fun Sdk.durableLife(level: Durability) {
    val key = key()
    val first = collection.insert(key, 1, durability = level).cas
    val second = collection.upsert(key, 2, durability = level)
    expectError<CasMismatchException> {
        collection.replace(key, 3, durability = level, cas = first)
    }
    val third = collection.replace(key, 3, durability = level, cas = second.cas)
    expectError<DocumentExistsException> { collection.insert(key, 4, durability = level) }
    expectEqual(collection.get(key).cas, third.cas, "CAS")
    expectValue(key, 3)
    expect(seqno(third) > seqno(second), "seqnos of commits rise")
    collection.remove(key, durability = level)
    expect(isGone(key), "removed")
}

private suspend fun Sdk.durableCounter(level: Durability) {
    val key = key()
    val binary = collection.binary
    for (value in 41uL..42uL) {
        val counted = binary.increment(key, durability = level, initialValue = 41u)
        expectEqual(counted.content, value, "counter")
    }
    expectEqual(binary.decrement(key, durability = level, delta = 2u).content, 40uL, "counter")
    binary.append(key, "0".toByteArray(), durability = level)
    binary.prepend(key, "1".toByteArray(), durability = level)
    expectValue(key, 1400)
}

private fun seqno(result: MutationResult) =
    requireNotNull(result.mutationToken).sequenceNumber()

private suspend fun Sdk.restartKeepsEverything() {
    val stored = List(COUNT) { stored(mapOf("n" to it)) }
    val removed = stored(1).key
    collection.remove(removed)
    val counter = stored(41).key
    val expiring = stored(1, Expiry.of(2.seconds)).key
    order("NODE restart")
    within(READY, "the same SDK object works") { succeeds { collection.exists(removed) } }
    stored.forEachIndexed { index, each ->
        expectValue(each.key, mapOf("n" to index))
        expectEqual(collection.get(each.key).cas, each.cas, "CAS")
    }
    expect(isGone(removed), "a removed document stays removed")
    expectEqual(collection.binary.increment(counter).content, 42uL, "counter")
    within(LIFETIME_MAX, "the expiry is kept") { isGone(expiring) }
}
