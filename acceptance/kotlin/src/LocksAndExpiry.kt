package acceptance

import com.couchbase.client.core.error.CasMismatchException
import com.couchbase.client.core.error.DocumentLockedException
import com.couchbase.client.core.error.DocumentNotFoundException
import com.couchbase.client.core.error.DocumentNotLockedException
import com.couchbase.client.core.error.TimeoutException
import com.couchbase.client.kotlin.kv.Expiry
import java.time.Instant
import kotlin.time.Duration.Companion.days
import kotlin.time.Duration.Companion.hours
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlin.time.TimeMark
import kotlin.time.TimeSource
import kotlinx.coroutines.delay

private val LOCK = 15.seconds

// Expiry is counted in whole seconds of the clock, so a document may live a second less.
private val LIFETIME = Expiry.of(2.seconds)
private val LIFETIME_MIN = 900.milliseconds
private val SECOND = Expiry.of(1.seconds)
internal val LIFETIME_MAX = 4.seconds

/** Cases: locks. */
internal fun Cases.locks() {
    add("get-and-lock") {
        locked()
        expectError<DocumentNotFoundException> { collection.getAndLock(key(), LOCK) }
    }
    add("locked-write-is-refused") {
        val key = locked().key
        expectLocked { collection.upsert(key, 2, BRIEF) }
        expectLocked { collection.remove(key, BRIEF) }
        expectValue(key, 1)
    }
    add("locked-twice-is-refused") {
        val key = locked().key
        expectLocked { collection.getAndLock(key, LOCK, BRIEF) }
    }
    add("locked-is-readable") {
        val locked = locked()
        val read = collection.get(locked.key)
        expect(read.cas != locked.cas, "a read does not give away the lock")
        expectValue(locked.key, 1)
    }
    add("write-with-lock-cas-unlocks") {
        val locked = locked()
        collection.replace(locked.key, 2, cas = locked.cas)
        collection.upsert(locked.key, 3)
        expectValue(locked.key, 3)
    }
    add("unlock") {
        val locked = locked()
        collection.unlock(locked.key, locked.cas)
        collection.upsert(locked.key, 2)
        expectValue(locked.key, 2)
    }
    add("unlock-with-wrong-cas") {
        val locked = locked()
        expectError(
            CasMismatchException::class.java,
            DocumentLockedException::class.java,
            TimeoutException::class.java,
        ) { collection.unlock(locked.key, locked.cas + 1, BRIEF) }
        collection.unlock(locked.key, locked.cas)
    }
    add("unlock-not-locked") {
        val stored = stored(1)
        expectError<DocumentNotLockedException> { collection.unlock(stored.key, stored.cas) }
    }
    add("unlock-missing") {
        expectError<DocumentNotFoundException> { collection.unlock(key(), 1) }
    }
    add("lock-ends") {
        val stored = stored(1)
        collection.getAndLock(stored.key, 1.seconds)
        within(LIFETIME_MAX, "the lock ends by itself") {
            collection.get(stored.key).cas == stored.cas
        }
        collection.upsert(stored.key, 2)
    }
}

private class Locked(val key: String, val cas: Long)

/** A locked document and the CAS of the lock; it holds 1. */
private suspend fun Sdk.locked(): Locked {
    val stored = stored(1)
    val lock = collection.getAndLock(stored.key, LOCK)
    expectEqual(lock.contentAs<Int>(), 1, "value")
    expect(lock.cas != stored.cas, "a lock has a CAS of its own")
    return Locked(stored.key, lock.cas)
}

/** The SDK repeats what met a lock until its time is over. */
private suspend fun expectLocked(attempt: suspend () -> Unit) {
    expectError(
        DocumentLockedException::class.java,
        TimeoutException::class.java,
        attempt = attempt,
    )
}

/** Cases: documents that expire. */
internal fun Cases.expiry() {
    touches()
    add("expiry") {
        val started = TimeSource.Monotonic.markNow()
        val key = stored(1, LIFETIME).key
        expectLifetime(key, started)
        expectError<DocumentNotFoundException> { collection.get(key) }
        expectError<DocumentNotFoundException> { collection.replace(key, 2) }
        expectError<DocumentNotFoundException> { collection.remove(key) }
    }
    add("expiry-is-told") {
        val key = stored(1, Expiry.of(1.hours)).key
        val left = told(key) - Instant.now().epochSecond
        expect(left in 3500..3610, "an hour is left, or nearly so: $left")
        val far = Instant.now().plusSeconds(100.days.inWholeSeconds)
        collection.touch(key, Expiry.of(far))
        expectEqual(told(key), far.epochSecond, "an absolute time")
        val lasting = collection.get(stored(1).key, withExpiry = true)
        expectEqual(lasting.expiry, Expiry.none(), "without an expiry it lasts")
    }
    add("expiry-is-removed-by-upsert") {
        val passing = stored(1, SECOND).key
        val lasting = stored(1, SECOND).key
        collection.upsert(lasting, 2)
        within(LIFETIME_MAX, "the other document expires") { isGone(passing) }
        expectValue(lasting, 2)
    }
    add("preserve-expiry") {
        val started = TimeSource.Monotonic.markNow()
        val key = stored(1, LIFETIME).key
        collection.upsert(key, 2, preserveExpiry = true)
        expectValue(key, 2)
        expectLifetime(key, started)
    }
    add("expired-can-be-inserted") {
        val key = stored(1, SECOND).key
        within(LIFETIME_MAX, "the document expires") { isGone(key) }
        collection.insert(key, 2)
        expectValue(key, 2)
    }
}

private fun Cases.touches() {
    add("touch") {
        val stored = stored(1)
        val started = TimeSource.Monotonic.markNow()
        val cas = collection.touch(stored.key, LIFETIME).cas
        expect(cas > stored.cas, "a new expiry is a mutation")
        expectLifetime(stored.key, started)
    }
    add("touch-missing") {
        expectError<DocumentNotFoundException> { collection.touch(key(), LIFETIME) }
    }
    add("get-and-touch") {
        val key = stored(1).key
        val started = TimeSource.Monotonic.markNow()
        expectEqual(collection.getAndTouch(key, LIFETIME).contentAs<Int>(), 1, "value")
        expectLifetime(key, started)
        expectError<DocumentNotFoundException> { collection.getAndTouch(key, LIFETIME) }
    }
}

/** The second in which a document is to expire. */
private suspend fun Sdk.told(key: String): Long {
    val expiry = collection.get(key, withExpiry = true).expiry
    return (expiry as Expiry.Absolute).instant.epochSecond
}

/** Watches a document of that lifetime, which has just been stored, until it is gone. */
private suspend fun Sdk.expectLifetime(key: String, started: TimeMark) {
    val stored = TimeSource.Monotonic.markNow()
    while (true) {
        val isGone = isGone(key)
        if (started.elapsedNow() >= LIFETIME_MIN) {
            break
        }
        expect(!isGone, "$key is not gone at once")
        delay(50.milliseconds)
    }
    within(LIFETIME_MAX - stored.elapsedNow(), "$key expires") { isGone(key) }
}
