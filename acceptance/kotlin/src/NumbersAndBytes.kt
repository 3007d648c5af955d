package acceptance

import com.couchbase.client.core.error.CasMismatchException
import com.couchbase.client.core.error.DocumentNotFoundException
import com.couchbase.client.core.error.TimeoutException
import com.couchbase.client.kotlin.codec.Content

/** Cases: counters, and bytes that are added. */
internal fun Cases.numbersAndBytes() {
    bytes()
    numbers()
}

private fun Cases.bytes() {
    add("append") {
        val key = storedBytes("hello")
        collection.binary.append(key, " world".toByteArray())
        expectBytes(key, "hello world")
    }
    add("prepend") {
        val key = storedBytes("world")
        collection.binary.prepend(key, "hello ".toByteArray())
        expectBytes(key, "hello world")
    }
    add("append-with-stale-cas") {
        val key = storedBytes("hello")
        val cas = collection.get(key).cas
        val more = " ".toByteArray()
        collection.binary.append(key, more, cas = cas)
        expectError<CasMismatchException> { collection.binary.append(key, more, cas = cas) }
        expectError<CasMismatchException> { collection.binary.prepend(key, more, cas = cas) }
        expectBytes(key, "hello ")
    }
    add("append-missing") {
        val more = "x".toByteArray()
        expectError<DocumentNotFoundException> { collection.binary.append(key(), more) }
        expectError<DocumentNotFoundException> { collection.binary.prepend(key(), more) }
    }
}

private fun Cases.numbers() {
    add("increment-creates") { expectValue(counter(100), 100) }
    add("increment") {
        val key = counter(1)
        val counted = collection.binary.increment(key)
        expect(counted.cas != 0L, "a counter returns a CAS")
        expectEqual(collection.binary.increment(key, delta = 40u).content, 42uL, "counter")
    }
    add("decrement") {
        val key = counter(42)
        expectEqual(collection.binary.decrement(key).content, 41uL, "counter")
        expectEqual(collection.binary.decrement(key, delta = 40u).content, 1uL, "counter")
    }
    add("decrement-stops-at-zero") {
        val key = counter(2)
        expectEqual(collection.binary.decrement(key, delta = 10u).content, 0uL, "counter")
    }
    add("increment-missing") {
        val key = key()
        expectError<DocumentNotFoundException> {
            collection.binary.increment(key, initialValue = null)
        }
        expect(isGone(key), "a counter without an initial value is not created")
    }
    add("increment-not-a-number") {
        val key = storedBytes("twelve")
        val error = expectError<Exception> { collection.binary.increment(key) }
        expect(error !is TimeoutException, "the refusal is no timeout")
        expectBytes(key, "twelve")
    }
    add("counter-is-a-document") {
        val key = stored(41).key
        expectEqual(collection.counter(key).incrementAndGet(), 42uL, "counter")
        expectValue(key, 42)
    }
}

private suspend fun Sdk.storedBytes(text: String) = stored(Content.binary(text.toByteArray())).key

private suspend fun Sdk.expectBytes(key: String, text: String) {
    expectEqual(String(collection.get(key).content.bytes), text, "value")
}

/** A counter with this value. */
internal suspend fun Sdk.counter(initial: Long): String {
    val key = key()
    val made = collection.binary.increment(key, initialValue = initial.toULong())
    expectEqual(made.content, initial.toULong(), "initial value")
    return key
}
