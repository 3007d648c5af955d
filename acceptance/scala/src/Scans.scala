package acceptance

import com.couchbase.client.core.msg.kv.MutationToken
import com.couchbase.client.scala.Collection
import com.couchbase.client.scala.kv._

/** Cases: scans of many documents. */
object Scans {
  private val Count = 1000

  def declare(cases: Cases): Unit =
    cases.add("scans-of-many-documents")(sdk => expectScans(sdk.collection, Count))

  /** What a scan has to see: these mutations. */
  def sees(tokens: Option[MutationToken]*): MutationState = MutationState(tokens.flatten)

  /** The keys that a scan finds, in order. */
  def keys(collection: Collection, kind: ScanType, state: MutationState): Seq[String] = {
    val options = ScanOptions().idsOnly(true).consistentWith(state)
    collection.scan(kind, options).get.map(_.id).toSeq.sorted
  }

  /** Every kind of scan finds what it is to find among this many documents. */
  def expectScans(collection: Collection, count: Int): Unit = {
    val stored = Bulk.inParallel(count) { index =>
      collection.async.upsert(name(index), ujson.Obj("n" -> index))
    }
    val state = sees(stored.map(_.mutationToken): _*)
    val range = ScanType.RangeScan(
      Some(ScanTerm.inclusive(name(100))),
      Some(ScanTerm.exclusive(name(200)))
    )
    Expect.equal(keys(collection, range, state), names(100, 200), "keys of a range")
    for (found <- collection.scan(range, ScanOptions().consistentWith(state)).get) {
      val number = found.contentAs[ujson.Obj].get("n").num.toInt
      Expect.equal(found.id, name(number), "value of a range")
      Expect.that(found.cas.exists(_ != 0), "a result has a CAS")
    }
    def prefixed(prefix: String) = keys(collection, ScanType.PrefixScan(prefix), state)
    Expect.equal(prefixed("scanned-"), names(0, count), "all keys")
    Expect.equal(prefixed("scanned-01"), names(100, 200), "keys with a prefix")
    Expect.equal(prefixed("absent-"), Seq.empty[String], "nothing")
    val sample = keys(collection, ScanType.SamplingScan(20, 5), state)
    val isPart = sample.nonEmpty && sample.size <= 20 && sample.toSet.size == sample.size
    Expect.that(isPart, "a sample is a part")
  }

  private def name(index: Int): String = f"scanned-$index%04d"

  private def names(from: Int, to: Int): Seq[String] = (from until to).map(name)
}
