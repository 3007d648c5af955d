package acceptance

import com.couchbase.client.core.error.ValueTooLargeException
import com.couchbase.client.kotlin.codec.Content
import com.couchbase.client.kotlin.codec.RawBinaryTranscoder
import com.couchbase.client.kotlin.codec.RawJsonTranscoder
import com.couchbase.client.kotlin.codec.RawStringTranscoder
import com.couchbase.client.kotlin.codec.Transcoder
import kotlin.random.Random
import kotlin.time.Duration.Companion.seconds

private const val BYTES_MAX = 20 shl 20
private val PATIENT = timeout(20.seconds)
private val JSON = listOf(
    mapOf<String, Any>(), listOf<Any>(), mapOf("a" to mapOf("b" to listOf(1, 2))),
    listOf(true, false, null), "text", "", 0, -1, 9007199254740992L, 1.5,
    mapOf("\u00e4" to null),
)

/** Cases: values of all kinds and sizes. */
internal fun Cases.values() {
    texts()
    add("binary-values") {
        val everything = ByteArray(25600) { it.toByte() }
        for (value in listOf(everything, byteArrayOf(0), "\r\n".toByteArray())) {
            expectBytesReturn(value)
        }
    }
    add("empty-value") { expectBytesReturn(ByteArray(0)) }
    add("value-of-1-mib") { expectBytesReturn(noise(1 shl 20)) }
    add("value-of-20-mib") {
        expectBytesReturn(noise(BYTES_MAX))
        expectBytesReturn(noise(BYTES_MAX - 1))
    }
    add("value-above-20-mib") {
        val key = key()
        expectError<ValueTooLargeException> {
            collection.upsert(key, Content.binary(noise(BYTES_MAX + 1)), PATIENT)
        }
        expect(isGone(key), "nothing is stored")
    }
}

private fun Cases.texts() {
    add("json-values") {
        for (value in JSON) {
            expectValue(stored(value).key, value)
        }
    }
    add("json-as-text") { expectTextReturns("{\"a\" : 1,  \"b\":[ 2 ] }", RawJsonTranscoder) }
    add("string-values") {
        for (text in listOf("plain", "\u00e4 \u65e5\u672c \ud83d\udecb", "{not json")) {
            expectTextReturns(text, RawStringTranscoder)
        }
    }
    add("compressible-value") {
        expectTextReturns("to be compressed ".repeat(1000), RawStringTranscoder)
    }
}

private suspend fun Sdk.expectTextReturns(text: String, transcoder: Transcoder) {
    val key = key()
    collection.upsert(key, text, transcoder = transcoder)
    expectEqual(collection.get(key).contentAs<String>(transcoder), text, "text")
}

private suspend fun Sdk.expectBytesReturn(value: ByteArray) {
    val key = key()
    collection.upsert(key, value, PATIENT, RawBinaryTranscoder)
    val read = collection.get(key, PATIENT).contentAs<ByteArray>(RawBinaryTranscoder)
    expect(read.contentEquals(value), "bytes come back unchanged")
}

/** Bytes that do not compress. */
private fun noise(size: Int) = Random(size).nextBytes(size)
