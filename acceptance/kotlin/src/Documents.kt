package acceptance

import com.couchbase.client.core.error.CasMismatchException
import com.couchbase.client.core.error.DocumentExistsException
import com.couchbase.client.core.error.DocumentNotFoundException
import com.couchbase.client.core.error.TimeoutException

/** Cases: whole documents. */
internal fun Cases.documents() {
    stores()
    replacements()
    removals()
    keys()
}

private fun Cases.stores() {
    add("upsert-and-get") {
        val stored = stored(mapOf("n" to 1))
        val read = collection.get(stored.key)
        expect(stored.cas != 0L, "a store returns a CAS")
        expectEqual(read.cas, stored.cas, "CAS that is read")
        expectEqual(read.contentAs<Map<String, Int>>(), mapOf("n" to 1), "value")
    }
    add("upsert-overwrites") {
        val document = overwritten()
        expect(document.present > document.stale, "the CAS of a document grows")
        expectValue(document.key, 2)
    }
    add("insert-new") {
        val key = key()
        collection.insert(key, 1)
        expectValue(key, 1)
    }
    add("insert-existing") {
        val key = stored(1).key
        expectError<DocumentExistsException> { collection.insert(key, 2) }
        expectValue(key, 1)
    }
    add("get-missing") {
        expectError<DocumentNotFoundException> { collection.get(key()) }
        expectEqual(collection.getOrNull(key()), null, "null instead of an error")
    }
    add("exists") {
        val key = key()
        expect(isGone(key), "a key never stored does not exist")
        val cas = collection.upsert(key, 1).cas
        val found = collection.exists(key)
        expect(found.exists, "a stored document exists")
        expectEqual(found.cas, cas, "CAS of a document")
        collection.remove(key)
        expect(isGone(key), "a removed document does not exist")
    }
    add("mutation-tokens") {
        val stored = stored(1)
        val first = requireNotNull(stored.result.mutationToken)
        expect(first.partitionUUID() != 0L, "a mutation returns a token with a uuid")
        val later = listOf(collection.replace(stored.key, 2), collection.remove(stored.key))
        later.forEachIndexed { index, result ->
            val token = requireNotNull(result.mutationToken)
            expectEqual(token.bucketName(), BUCKET, "bucket")
            expectEqual(token.partitionID(), first.partitionID(), "vBucket")
            expectEqual(token.partitionUUID(), first.partitionUUID(), "uuid")
            expectEqual(token.sequenceNumber(), first.sequenceNumber() + index + 1, "seqno")
        }
    }
}

private fun Cases.replacements() {
    add("replace-existing") {
        val key = stored(1).key
        collection.replace(key, 2)
        expectValue(key, 2)
    }
    add("replace-missing") {
        val key = key()
        expectError<DocumentNotFoundException> { collection.replace(key, 1) }
        expect(isGone(key), "a refused replace creates nothing")
    }
    add("replace-with-cas") {
        val stored = stored(1)
        val replaced = collection.replace(stored.key, 2, cas = stored.cas)
        expect(replaced.cas != stored.cas, "a replace changes the CAS")
        expectValue(stored.key, 2)
    }
    add("replace-with-stale-cas") {
        val document = overwritten()
        expectError<CasMismatchException> {
            collection.replace(document.key, 3, cas = document.stale)
        }
        expectValue(document.key, 2)
    }
}

private fun Cases.removals() {
    add("remove") {
        val stored = stored(1)
        val removed = collection.remove(stored.key)
        expect(removed.cas > stored.cas, "a removal has a CAS of its own")
        expectError<DocumentNotFoundException> { collection.get(stored.key) }
    }
    add("remove-missing") {
        val key = stored(1).key
        collection.remove(key)
        for (missing in listOf(key, key())) {
            expectError<DocumentNotFoundException> { collection.remove(missing) }
            expectEqual(collection.removeOrNull(missing), null, "null instead of an error")
        }
    }
    add("remove-with-stale-cas") {
        val document = overwritten()
        expectError<CasMismatchException> {
            collection.remove(document.key, cas = document.stale)
        }
        expectValue(document.key, 2)
        collection.remove(document.key, cas = document.present)
        expect(isGone(document.key), "the right CAS removes")
    }
    add("insert-after-remove") {
        val key = stored(1).key
        val removed = collection.remove(key).cas
        expect(collection.insert(key, 2).cas > removed, "the CAS grows over a removal")
        expectValue(key, 2)
    }
}

private fun Cases.keys() {
    add("unicode-key") {
        val names = listOf("\u00e4\u00f6\u00fc", "\u65e5\u672c\u8a9e", "\ud83d\udecb", "a b/c\t%41")
        for (name in names) {
            val key = name + key()
            collection.upsert(key, name)
            expectValue(key, name)
        }
    }
    // The SDK counts the collection's byte, too.
    add("key-of-249-bytes") {
        val key = "k".repeat(249)
        collection.upsert(key, 249)
        expectValue(key, 249)
    }
    add("key-of-251-bytes") {
        val error = expectError<Exception> { collection.upsert("k".repeat(251), 251) }
        expect(error !is TimeoutException, "the refusal is no timeout")
    }
}

private class Overwritten(val key: String, val stale: Long, val present: Long)

/** A document with an old and a present CAS; it holds 2. */
private suspend fun Sdk.overwritten(): Overwritten {
    val stored = stored(1)
    return Overwritten(stored.key, stored.cas, collection.upsert(stored.key, 2).cas)
}
