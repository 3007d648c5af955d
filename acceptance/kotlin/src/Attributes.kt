package acceptance

import com.couchbase.client.core.error.DocumentNotFoundException
import com.couchbase.client.kotlin.kv.LookupInSpec
import com.couchbase.client.kotlin.kv.MutateInMacro
import com.couchbase.client.kotlin.kv.MutateInSpec
import kotlin.math.abs

private const val DOCUMENT = "\$document"

/** Cases: attributes of documents, and macros. */
internal fun Cases.attributes() {
    add("attributes-are-beside-the-body") { besideTheBody() }
    add("attributes-of-the-server") { ofTheServer() }
    add("macros-name-the-change") { macros() }
    add("paths-are-changed-durably") { changedDurably() }
    add("removed-documents-keep-system-attributes") { ofRemoved() }
}

private suspend inline fun <reified T> Sdk.attribute(key: String, path: String): T =
    part(key, path, isAttribute = true)

private suspend fun Sdk.besideTheBody() {
    val key = stored(mapOf("a" to 1)).key
    change(key) {
        upsert("meta.by", "me", xattr = true)
        upsert("_system", listOf(1), xattr = true)
        upsert("b", 2)
    }
    expectValue(key, mapOf("a" to 1, "b" to 2))
    expectEqual(attribute<String>(key, "meta.by"), "me", "attribute")
    collection.replace(key, mapOf("c" to 3))
    expectEqual(attribute<Any>(key, "meta"), mapOf("by" to "me"), "stores keep it")
    change(key) { remove("meta", xattr = true) }
    val spec = object : LookupInSpec() {
        val meta = exists("meta", xattr = true)
    }
    expect(!spec.meta.get(collection.lookupIn(key, spec)), "it is removed")
    expectEqual(attribute<Any>(key, "_system"), listOf(1), "another stays")
    expectValue(key, mapOf("c" to 3))
}

private suspend fun Sdk.ofTheServer() {
    val stored = stored(mapOf("a" to 1))
    val key = stored.key
    val document = attribute<Map<String, Any>>(key, DOCUMENT)
    expectEqual(number(document["CAS"]), stored.cas, "CAS")
    expectEqual(document["deleted"], false, "deleted")
    expectEqual(document["datatype"], listOf("json"), "datatype")
    val seqno = requireNotNull(stored.result.mutationToken).sequenceNumber()
    expectEqual(number(document["seqno"]), seqno, "seqno")
    for (name in listOf("exptime", "CAS", "seqno", "last_modified", "deleted", "value_bytes",
        "revid", "flags")) {
        attribute<Any>(key, "$DOCUMENT.$name")
    }
    val clock = attribute<Map<String, String>>(key, "\$vbucket.HLC")
    val now = clock.getValue("now").toLong()
    expect(abs(now - System.currentTimeMillis() / 1000) < 60, "the time: $clock")
    change(key) { upsert("x", 1, xattr = true) }
    expectEqual(attribute<Any>(key, "\$XTOC"), listOf("x"), "keys")
}

/** A number that the server tells as a text. */
private fun number(told: Any?) = java.lang.Long.decode(told as String).toLong()

private suspend fun Sdk.macros() {
    val key = stored(mapOf("a" to 1)).key
    val changed = change(key) {
        upsert("m.cas", MutateInMacro.Cas)
        upsert("m.seqno", MutateInMacro.SeqNo)
        upsert("m.sum", MutateInMacro.ValueCrc32c)
    }
    val macros = attribute<Map<String, String>>(key, "m")
    expectEqual(casOf(macros.getValue("cas")), changed.cas, "CAS")
    val seqno = requireNotNull(changed.mutationToken).sequenceNumber()
    expectEqual(number(macros["seqno"]), seqno, "seqno")
    expectEqual(attribute<String>(key, "$DOCUMENT.value_crc32c"), macros["sum"], "sum")
}

/** The CAS that a macro has written: a number whose bytes are in the other order. */
private fun casOf(macro: String): Long =
    java.lang.Long.reverseBytes(macro.removePrefix("0x").toULong(16).toLong())

private suspend fun Sdk.changedDurably() {
    val key = stored(mapOf("n" to 1)).key
    for (level in LEVELS) {
        val spec = MutateInSpec()
        val counter = spec.incrementAndGet("n")
        spec.upsert("cas", MutateInMacro.Cas)
        val counted = collection.mutateIn(key, spec, durability = level)
        val found = collection.get(key)
        val number = found.contentAs<Map<String, Long>>()["n"]
        expectEqual(counter.get(counted), number, "counter")
        expectEqual(found.cas, counted.cas, "CAS")
        expectEqual(casOf(attribute(key, "cas")), counted.cas, "CAS")
    }
    expectValue(key, mapOf("n" to 4))
}

private suspend fun Sdk.ofRemoved() {
    val key = stored(mapOf("a" to 1)).key
    change(key) {
        upsert("_system", mapOf("kept" to 1), xattr = true)
        upsert("meta", 1, xattr = true)
    }
    collection.remove(key)
    val spec = object : LookupInSpec() {
        val system = get("_system", xattr = true)
        val meta = exists("meta", xattr = true)
    }
    expectError<DocumentNotFoundException> { collection.lookupIn(key, spec) }
    val found = collection.lookupIn(key, spec, accessDeleted = true)
    expect(found.deleted, "it is deleted")
    expectEqual(spec.system.contentAs<Any>(found), mapOf("kept" to 1), "the system's attribute")
    expect(!spec.meta.get(found), "the user's attribute is gone")
}
