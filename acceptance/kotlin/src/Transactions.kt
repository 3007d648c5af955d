package acceptance

import com.couchbase.client.kotlin.kv.LookupInSpec
import com.couchbase.client.kotlin.transactions.TransactionAttemptContext
import com.couchbase.client.kotlin.transactions.TransactionExpiredException
import com.couchbase.client.kotlin.transactions.TransactionFailedException
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.delay

/** Cases: transactions, which the SDK makes of attributes. */
internal fun Cases.transactions() {
    add("transactions-commit-and-roll-back") {
        commitAndRollBack()
        val kept = Changed.prepared(this)
        expectRolledBack { kept.change(this@add, this) }
        kept.expectNothingIsLeft(this, kept.first, kept.gone)
    }
    add("transactions-expire") {
        val kept = Changed.prepared(this)
        expectError<TransactionExpiredException> {
            cluster.transactions.run(timeout = 1.seconds) {
                kept.change(this@add, this)
                delay(1500.milliseconds)
                get(collection, kept.first)
            }
        }
        kept.expectUnchanged(this)
    }
    add("transactions-meet") {
        val key = stored(mapOf("n" to 0)).key
        inParallel(5) {
            cluster.transactions.run(timeout = READY) {
                val document = get(collection, key)
                val number = document.contentAs<Map<String, Int>>().getValue("n")
                replace(document, mapOf("n" to number + 1))
            }
        }
        expectValue(key, mapOf("n" to 5))
    }
    add("transactions-insert-what-was-rolled-back") {
        val key = key()
        expectRolledBack { insert(collection, key, mapOf("n" to 1)) }
        expect(isGone(key), "not inserted")
        cluster.transactions.run { insert(collection, key, mapOf("n" to 1)) }
        expectValue(key, mapOf("n" to 1))
    }
}

/** One transaction is rolled back, and the next one with the same documents is committed. */
internal suspend fun Sdk.commitAndRollBack() {
    val sdk = this
    val changed = Changed.prepared(sdk)
    expectRolledBack { changed.change(sdk, this) }
    changed.expectUnchanged(sdk)
    cluster.transactions.run { changed.change(sdk, this) }
    changed.expectCommitted(sdk)
}

private suspend fun Sdk.expectRolledBack(body: suspend TransactionAttemptContext.() -> Unit) {
    expectError<TransactionFailedException> {
        cluster.transactions.run {
            body()
            error("the application has changed its mind")
        }
    }
}

/** Keys that a transaction changes: one is replaced, one removed, one inserted. */
private class Changed(val first: String, val gone: String, val added: String) {
    suspend fun change(sdk: Sdk, context: TransactionAttemptContext) {
        context.replace(context.get(sdk.collection, first), mapOf("n" to 10))
        context.insert(sdk.collection, added, mapOf("n" to 3))
        context.remove(context.get(sdk.collection, gone))
    }

    suspend fun expectCommitted(sdk: Sdk) {
        sdk.expectValue(first, mapOf("n" to 10))
        sdk.expectValue(added, mapOf("n" to 3))
        expect(sdk.isGone(gone), "removed")
        expectNothingIsLeft(sdk, first, added)
    }

    suspend fun expectUnchanged(sdk: Sdk) {
        sdk.expectValue(first, mapOf("n" to 1))
        sdk.expectValue(gone, mapOf("n" to 2))
        expect(sdk.isGone(added), "not inserted")
    }

    suspend fun expectNothingIsLeft(sdk: Sdk, vararg keys: String) {
        val spec = object : LookupInSpec() {
            val staged = exists("txn", xattr = true)
        }
        for (key in keys) {
            val isStaged = spec.staged.get(sdk.collection.lookupIn(key, spec))
            expect(!isStaged, "nothing is left of a transaction")
        }
    }

    companion object {
        suspend fun prepared(sdk: Sdk) =
            Changed(sdk.stored(mapOf("n" to 1)).key, sdk.stored(mapOf("n" to 2)).key, sdk.key())
    }
}
