package acceptance

import com.couchbase.client.core.error.CasMismatchException
import com.couchbase.client.core.error.CouchbaseException
import com.couchbase.client.core.error.DocumentExistsException
import com.couchbase.client.core.error.DocumentLockedException
import com.couchbase.client.core.error.DocumentNotFoundException
import com.couchbase.client.core.error.TimeoutException
import com.couchbase.client.core.error.subdoc.DocumentNotJsonException
import com.couchbase.client.core.error.subdoc.PathExistsException
import com.couchbase.client.core.error.subdoc.PathInvalidException
import com.couchbase.client.core.error.subdoc.PathMismatchException
import com.couchbase.client.core.error.subdoc.PathNotFoundException
import com.couchbase.client.kotlin.codec.Content
import com.couchbase.client.kotlin.kv.Expiry
import com.couchbase.client.kotlin.kv.LookupInSpec
import com.couchbase.client.kotlin.kv.MutateInResult
import com.couchbase.client.kotlin.kv.MutateInSpec
import com.couchbase.client.kotlin.kv.StoreSemantics
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds

private val DOCUMENT = mapOf(
    "name" to "Ann",
    "scores" to listOf(3, 5),
    "address" to mapOf("city" to "Ulm", "lines" to listOf(1, 2, 3)),
)

/** Cases: parts of documents. */
internal fun Cases.subDocuments() {
    add("paths-are-looked-up") { lookedUp() }
    add("paths-that-are-not-there") { notThere() }
    add("paths-are-changed") { changed() }
    add("arrays-are-changed") { arrays() }
    add("counters-in-documents") { counters() }
    add("parents-are-created") { parents() }
    add("documents-are-created-by-paths") { createdByPaths() }
    add("paths-change-together-or-not-at-all") {
        val stored = stored(mapOf("a" to 1))
        expectError<PathExistsException> {
            change(stored.key) {
                upsert("b", 2)
                insert("a", 2)
                upsert("c", 3)
            }
        }
        expectValue(stored.key, mapOf("a" to 1))
        expectEqual(collection.get(stored.key).cas, stored.cas, "CAS")
    }
    add("paths-need-json") {
        val key = stored(Content.binary(byteArrayOf(0, -1))).key
        expectError<DocumentNotJsonException> { part<String>(key, "a") }
        expectError<DocumentNotJsonException> { change(key) { upsert("a", 1) } }
    }
    add("paths-with-cas-and-locks") { casAndLocks() }
    add("paths-and-expiry") { pathsAndExpiry() }
    add("parallel-changes-of-one-document") { changesInParallel() }
    attributes()
}

internal suspend fun Sdk.change(key: String, block: MutateInSpec.() -> Unit): MutateInResult =
    collection.mutateIn(key, block = block)

/** What is at a path. */
internal suspend inline fun <reified T> Sdk.part(
    key: String,
    path: String,
    isAttribute: Boolean = false,
): T {
    val spec = object : LookupInSpec() {
        val found = get(path, isAttribute)
    }
    return spec.found.contentAs(collection.lookupIn(key, spec))
}

private suspend fun Sdk.lookedUp() {
    val stored = stored(DOCUMENT)
    val spec = object : LookupInSpec() {
        val name = get("name")
        val line = get("address.lines[-1]")
        val scores = exists("scores")
        val count = count("scores")
        val whole = get("")
    }
    val found = collection.lookupIn(stored.key, spec)
    expectEqual(found.cas, stored.cas, "CAS")
    expectEqual(spec.name.contentAs<String>(found), "Ann", "text")
    expectEqual(spec.line.contentAs<Int>(found), 3, "last element")
    expect(spec.scores.get(found), "there is such a path")
    expectEqual(spec.count.get(found), 2, "count")
    expectEqual(spec.whole.contentAs<Any>(found), DOCUMENT, "the whole document")
    val projected = collection.get(stored.key, project = listOf("name", "address.city"))
    val wanted = mapOf("name" to "Ann", "address" to mapOf("city" to "Ulm"))
    expectEqual(projected.contentAs<Any>(), wanted, "part")
}

private suspend fun Sdk.notThere() {
    val spec = object : LookupInSpec() {
        val none = get("none")
        val mismatch = get("name.first")
        val name = get("name")
        val existence = exists("none")
        val invalid = get("a..b")
    }
    val found = collection.lookupIn(stored(DOCUMENT).key, spec)
    expectError<PathNotFoundException> { spec.none.contentAs<String>(found) }
    expectError<PathMismatchException> { spec.mismatch.contentAs<String>(found) }
    expectEqual(spec.name.contentAs<String>(found), "Ann", "another path is answered")
    expect(!spec.existence.get(found), "there is no such path")
    expectError<PathInvalidException> { spec.invalid.contentAs<String>(found) }
    expectError<DocumentNotFoundException> { part<Int>(key(), "a") }
}

private suspend fun Sdk.changed() {
    val stored = stored(DOCUMENT)
    val key = stored.key
    val changed = change(key) {
        upsert("name", "Eva")
        insert("born", 1980)
        replace("address.city", "Bonn")
        remove("scores")
    }
    expect(changed.cas > stored.cas, "the CAS grows")
    expect(changed.mutationToken != null, "there is a token")
    val address = mapOf("city" to "Bonn", "lines" to listOf(1, 2, 3))
    expectValue(key, mapOf("name" to "Eva", "born" to 1980, "address" to address))
    expectError<PathExistsException> { change(key) { insert("born", 1) } }
    expectError<PathNotFoundException> { change(key) { replace("none", 1) } }
    expectError<PathNotFoundException> { change(key) { remove("none") } }
    expectError<PathMismatchException> { change(key) { upsert("name.first", 1) } }
    expectError<DocumentNotFoundException> { change(key()) { upsert("a", 1) } }
}

private suspend fun Sdk.arrays() {
    val key = stored(mapOf("list" to listOf(2))).key
    change(key) {
        arrayAppend("list", listOf(3, 4))
        arrayPrepend("list", listOf(1))
        arrayInsert("list[1]", listOf(1.5))
        arrayAddUnique("list", 5L)
    }
    expectValue(key, mapOf("list" to listOf(1, 1.5, 2, 3, 4, 5)))
    expectError<PathExistsException> { change(key) { arrayAddUnique("list", 5L) } }
    expectError<PathNotFoundException> { change(key) { arrayInsert("list[9]", listOf(5)) } }
}

private suspend fun Sdk.counters() {
    val key = stored(mapOf("n" to 5, "text" to "a")).key
    val spec = MutateInSpec()
    val old = spec.addAndGet("n", 3)
    val new = spec.addAndGet("m", -2)
    val counted = collection.mutateIn(key, spec)
    expectEqual(old.get(counted), 8L, "counter")
    expectEqual(new.get(counted), -2L, "new counter")
    expectError<PathMismatchException> { change(key) { incrementAndGet("text") } }
    expectError<CouchbaseException> { change(key) { addAndGet("n", Long.MAX_VALUE) } }
    expectValue(key, mapOf("n" to 8, "text" to "a", "m" to -2))
}

private suspend fun Sdk.parents() {
    val key = stored(mapOf<String, Any>()).key
    val alone = StoreSemantics.replace(createParent = false)
    expectError<PathNotFoundException> {
        collection.mutateIn(key, storeSemantics = alone) { upsert("a.b.c", 1) }
    }
    change(key) { upsert("a.b.c", 1) }
    expectValue(key, mapOf("a" to mapOf("b" to mapOf("c" to 1))))
    val deep = (('a'..'z') + ('0'..'9')).joinToString(".")
    expectError<CouchbaseException> { change(key) { upsert(deep, 1) } }
}

private suspend fun Sdk.createdByPaths() {
    val key = key()
    val other = key()
    collection.mutateIn(key, storeSemantics = StoreSemantics.upsert()) { upsert("a", 1) }
    collection.mutateIn(key, storeSemantics = StoreSemantics.upsert()) { upsert("b", 2) }
    expectValue(key, mapOf("a" to 1, "b" to 2))
    collection.mutateIn(other, storeSemantics = StoreSemantics.insert()) { insert("a", 1) }
    expectError<DocumentExistsException> {
        collection.mutateIn(other, storeSemantics = StoreSemantics.insert()) { insert("b", 1) }
    }
    expectValue(other, mapOf("a" to 1))
}

private suspend fun Sdk.changeWithCas(key: String, cas: Long, value: Int) {
    collection.mutateIn(key, storeSemantics = StoreSemantics.replace(cas)) { upsert("a", value) }
}

private suspend fun Sdk.casAndLocks() {
    val stored = stored(mapOf("a" to 1))
    val key = stored.key
    expectError<CasMismatchException> { changeWithCas(key, stored.cas + 1, 2) }
    changeWithCas(key, stored.cas, 2)
    val lock = collection.getAndLock(key, 15.seconds).cas
    expectError(DocumentLockedException::class.java, TimeoutException::class.java) {
        collection.mutateIn(key, BRIEF) { upsert("a", 3) }
    }
    changeWithCas(key, lock, 4)
    expectValue(key, mapOf("a" to 4))
}

private suspend fun Sdk.pathsAndExpiry() {
    val key = stored(mapOf<String, Any>(), Expiry.of(1.minutes)).key
    collection.mutateIn(key, preserveExpiry = true) { upsert("a", 1) }
    expect(expires(key), "the expiry is kept")
    change(key) { upsert("a", 2) }
    expect(!expires(key), "without an expiry it lasts")
    collection.mutateIn(key, expiry = Expiry.of(1.seconds)) { upsert("a", 3) }
    within(LIFETIME_MAX, "it expires") { isGone(key) }
}

private suspend fun Sdk.expires(key: String) =
    collection.get(key, withExpiry = true).expiry != Expiry.none()

private suspend fun Sdk.changesInParallel() {
    val key = stored(mapOf("n" to 0)).key
    inParallel(16) { writer ->
        repeat(25) {
            change(key) {
                incrementAndGet("n")
                incrementAndGet("of$writer")
            }
        }
    }
    expectValue(key, mapOf("n" to 400) + (0 until 16).associate { "of$it" to 25 })
}
