package acceptance

import scala.concurrent.duration._

import com.couchbase.client.core.error._
import com.couchbase.client.scala.Collection
import com.couchbase.client.scala.manager.bucket._

/** Cases: buckets that are made, changed, emptied and deleted while the node runs. */
object Buckets {
  private val Name = "orders"
  private val QuotaMb = 100
  private val Brief = 1.second

  def declare(cases: Cases): Unit = {
    cases.add("buckets-are-made-listed-and-dropped")(madeListedAndDropped)
    cases.add("buckets-are-changed")(withBucket(_)(changed))
    cases.add("a-bucket-is-flushed-where-that-is-enabled")(withBucket(_)(flushed))
    cases.add("buckets-that-cannot-be-are-refused")(refused)
    cases.add("a-dropped-bucket-is-gone-for-its-clients")(dropped)
  }

  /** What a bucket is made with. */
  private def settings(
      name: String = Name,
      kind: BucketType = BucketType.Couchbase,
      quotaMb: Int = QuotaMb
  ): CreateBucketSettings = CreateBucketSettings(name, quotaMb).bucketType(kind).numReplicas(0)

  private def documents(sdk: Sdk): Collection = sdk.cluster.bucket(Name).defaultCollection

  /** Runs a body with a new bucket, which is dropped in the end. */
  private def withBucket(sdk: Sdk, kind: BucketType = BucketType.Couchbase)(
      body: (BucketManager, Collection) => Unit
  ): Unit = {
    val manager = sdk.cluster.buckets
    manager.create(settings(kind = kind)).get
    try body(manager, documents(sdk))
    finally manager.dropBucket(Name).get
  }

  private def names(manager: BucketManager): Set[String] =
    manager.getAllBuckets().get.map(_.name).toSet

  private def madeListedAndDropped(sdk: Sdk): Unit = {
    val key = sdk.stored(ujson.Obj("of" -> Sdk.Name)).key
    for (kind <- Seq(BucketType.Couchbase, BucketType.Ephemeral)) {
      withBucket(sdk, kind) { (manager, documents) =>
        Expect.error[BucketExistsException](manager.create(settings(kind = kind)))
        val found = manager.getBucket(Name).get
        Expect.equal(found.name, Name, "name")
        Expect.equal(found.ramQuotaMB, QuotaMb, "quota")
        Expect.equal(found.bucketType, kind, "type")
        Expect.equal(names(manager), Set(Sdk.Name, Name), "all buckets")
        Expect.error[DocumentNotFoundException](documents.get("k"))
        documents.upsert("k", Name).get
        Expect.equal(Sdk.value(documents, "k"), ujson.Str(Name), "the document")
      }
      Expect.error[BucketNotFoundException](sdk.cluster.buckets.getBucket(Name))
      Expect.error[BucketNotFoundException](sdk.cluster.buckets.dropBucket(Name))
    }
    Expect.that(!sdk.isGone(key), "the other bucket has its document")
  }

  private def changed(manager: BucketManager, documents: Collection): Unit = {
    documents.upsert("k", 1).get
    val wanted = settings(quotaMb = QuotaMb + 50)
      .numReplicas(1)
      .flushEnabled(true)
      .compressionMode(CompressionMode.Active)
    manager.updateBucket(wanted).get
    val found = manager.getBucket(Name).get
    Expect.equal(found.ramQuotaMB, QuotaMb + 50, "quota")
    Expect.equal(found.numReplicas, 1, "replicas")
    Expect.that(found.flushEnabled, "it may be flushed")
    Expect.equal(found.compressionMode, Some(CompressionMode.Active), "compression")
    Expect.equal(Sdk.value(documents, "k"), ujson.Num(1), "the document")
    Expect.error[BucketNotFoundException](manager.updateBucket(settings("none")))
  }

  private def flushed(manager: BucketManager, documents: Collection): Unit = {
    documents.upsert("k", 1).get
    Expect.error[BucketNotFlushableException](manager.flushBucket(Name))
    Expect.that(documents.exists("k").get.exists, "nothing is gone")
    manager.updateBucket(settings().flushEnabled(true)).get
    manager.flushBucket(Name).get
    Expect.that(!documents.exists("k").get.exists, "the bucket is empty")
    documents.upsert("k", 2).get
    Expect.error[BucketNotFoundException](manager.flushBucket("none"))
  }

  private def refused(sdk: Sdk): Unit = {
    val manager = sdk.cluster.buckets
    val wrong = Seq(
      settings(quotaMb = 1 << 24),
      settings(quotaMb = 99),
      settings("a/b"),
      settings().maxTTL(-1)
    )
    wrong.foreach(each => Expect.error[CouchbaseException](manager.create(each)))
    Expect.equal(names(manager), Set(Sdk.Name), "all buckets")
  }

  private def dropped(sdk: Sdk): Unit = withBucket(sdk) { (manager, documents) =>
    documents.upsert("k", 1).get
    manager.dropBucket(Name).get
    Expect.error[CouchbaseException](documents.get("k", Brief))
    manager.create(settings().ejectionMethod(EjectionMethod.FullEviction)).get
    val again = Buckets.documents(sdk)
    Expect.within(Sdk.Ready, "the new bucket is empty") {
      again.exists("k", Brief).toOption.exists(found => !found.exists)
    }
    again.upsert("k", 2).get
  }
}
