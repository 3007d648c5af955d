package acceptance

import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.coroutineScope

private const val COUNT = 500
private const val THOUSANDS = 4000

/** Cases: many operations at once. */
internal fun Cases.bulk() {
    add("parallel-operations") {
        inParallel(COUNT) { expectValue(stored(mapOf("n" to it)).key, mapOf("n" to it)) }
    }
    add("parallel-increments") {
        val key = key()
        val values = inParallel(COUNT) {
            collection.binary.increment(key, initialValue = 1u).content
        }
        expectEqual(values.sorted(), (1uL..COUNT.toULong()).toList(), "every number once")
    }
    add("thousands-in-flight") {
        inParallel(THOUSANDS) { collection.upsert("thousands-$it", it) }
        val read = inParallel(THOUSANDS) { collection.get("thousands-$it").contentAs<Int>() }
        expectEqual(read, (0 until THOUSANDS).toList(), "all are read")
        inParallel(THOUSANDS) { collection.remove("thousands-$it") }
        expect(isGone("thousands-0"), "all are removed")
    }
}

/** Results of a function of the numbers below the count, all at the same time. */
internal suspend fun <T> inParallel(count: Int, body: suspend (Int) -> T): List<T> =
    coroutineScope { List(count) { async { body(it) } }.awaitAll() }
