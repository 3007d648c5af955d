package acceptance

import com.couchbase.client.kotlin.Collection
import com.couchbase.client.kotlin.kv.KvScanConsistency
import com.couchbase.client.kotlin.kv.MutationResult
import com.couchbase.client.kotlin.kv.MutationState
import com.couchbase.client.kotlin.kv.ScanTerm.Companion.exclusive
import com.couchbase.client.kotlin.kv.ScanTerm.Companion.inclusive
import com.couchbase.client.kotlin.kv.ScanType
import kotlinx.coroutines.flow.toList

private const val COUNT = 1000

/** Cases: scans of many documents. */
internal fun Cases.scans() {
    add("scans-of-many-documents") { expectScans(collection, COUNT) }
}

/** What a scan has to see: these mutations. */
internal fun sees(results: List<MutationResult>): KvScanConsistency {
    val state = MutationState()
    results.forEach { state.add(it) }
    return KvScanConsistency.consistentWith(state)
}

/** The keys that a scan finds, in order. */
internal suspend fun scanned(
    collection: Collection,
    type: ScanType,
    consistency: KvScanConsistency,
): List<String> = collection.scanIds(type, consistency = consistency).toList().sorted()

/** Every kind of scan finds what it is to find among this many documents. */
internal suspend fun expectScans(collection: Collection, count: Int) {
    val state = sees(inParallel(count) { collection.upsert(name(it), mapOf("n" to it)) })
    suspend fun keys(type: ScanType) = scanned(collection, type, state)
    val range = ScanType.range(name(100).inclusive, name(200).exclusive)
    expectEqual(keys(range), names(100, 200), "keys of a range")
    collection.scanDocuments(range, consistency = state).collect {
        val number = it.contentAs<Map<String, Int>>().getValue("n")
        expectEqual(it.id, name(number), "value of a range")
        expect(it.cas != 0L, "a result has a CAS")
    }
    expectEqual(keys(ScanType.prefix("scanned-")), names(0, count), "all keys")
    expectEqual(keys(ScanType.prefix("scanned-01")), names(100, 200), "keys with a prefix")
    expectEqual(keys(ScanType.prefix("absent-")), listOf<String>(), "nothing")
    val sample = keys(ScanType.sample(20, seed = 5))
    expect(sample.size in 1..20 && sample.toSet().size == sample.size, "a sample is a part")
}

private fun name(index: Int) = "scanned-%04d".format(index)

private fun names(from: Int, to: Int) = (from until to).map(::name)
