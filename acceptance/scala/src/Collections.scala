package acceptance

import scala.concurrent.duration._
import scala.util.Try

import com.couchbase.client.core.error._
import com.couchbase.client.scala.Collection
import com.couchbase.client.scala.kv.{MutateInSpec, ScanType, StoreSemantics}
import com.couchbase.client.scala.manager.collection._

/** Cases: scopes and collections, and documents in them. */
object Collections {
  private val Brief = 1.second
  private val Limit = 10.seconds

  def declare(cases: Cases): Unit = {
    cases.add("collections-come-and-go")(sdk => comeAndGo(sdk.bucket.collections))
    cases.add("documents-in-collections")(documents)
    cases.add("dropped-collection")(dropped)
    cases.add("collection-expiry") { sdk =>
      val fresh = created(sdk, "fresh", CreateCollectionSettings().maxExpiry(2.seconds))
      val started = Deadline.now
      fresh.upsert("k", 1).get
      Expect.within(Limit, "it is over by itself")(!fresh.exists("k").get.exists)
      Expect.that(Deadline.now - started > 900.milliseconds, "not at once")
    }
    cases.add("collection-expiry-changes") { sdk =>
      val changing = created(sdk, "changing")
      val manager = sdk.bucket.collections
      val brief = UpdateCollectionSettings(maxExpiry = Some(Brief))
      manager.updateCollection("shop", "changing", brief).get
      changing.upsert("k", 1).get
      Expect.within(Limit, "it is over")(!changing.exists("k").get.exists)
      Expect.error[CollectionNotFoundException](manager.updateCollection("shop", "none", brief))
    }
    cases.add("unknown-collection") { sdk =>
      expectGone(sdk.bucket.defaultScope.collection("unknown").get("k", Brief))
      expectGone(sdk.bucket.scope("unknown").collection("c").get("k", Brief))
    }
  }

  def expectGone(attempt: => Try[Any]): Unit =
    Expect.error(
      attempt,
      classOf[CollectionNotFoundException],
      classOf[ScopeNotFoundException],
      classOf[TimeoutException]
    )

  /** The names of all collections by scope. */
  private def listed(manager: CollectionManager): Map[String, Set[String]] =
    manager.getAllScopes().get.map(scope => scope.name -> scope.collections.map(_.name).toSet).toMap

  /** A new collection, which can be used. */
  private def created(
      sdk: Sdk,
      name: String,
      settings: CreateCollectionSettings = CreateCollectionSettings()
  ): Collection = {
    val manager = sdk.bucket.collections
    if (!listed(manager).contains("shop")) manager.createScope("shop").get
    manager.createCollection("shop", name, settings).get
    sdk.bucket.scope("shop").collection(name)
  }

  private def comeAndGo(manager: CollectionManager): Unit = {
    def fruit(scope: String): Try[Unit] =
      manager.createCollection(scope, "fruit", CreateCollectionSettings())
    manager.createScope("market").get
    Expect.error[ScopeExistsException](manager.createScope("market"))
    fruit("market").get
    Expect.error[CollectionExistsException](fruit("market"))
    Expect.error[ScopeNotFoundException](fruit("nowhere"))
    Expect.error[CouchbaseException](manager.createScope("_mine"))
    Expect.equal(listed(manager)("market"), Set("fruit"), "collections")
    manager.dropCollection("market", "fruit").get
    Expect.error[CollectionNotFoundException](manager.dropCollection("market", "fruit"))
    manager.dropScope("market").get
    Expect.error[ScopeNotFoundException](manager.dropScope("market"))
    Expect.that(!listed(manager).contains("market"), "the scope is gone")
  }

  private def documents(sdk: Sdk): Unit = {
    val fruit = created(sdk, "fruit")
    val nuts = created(sdk, "nuts")
    val key = sdk.key()
    fruit.upsert(key, "fruit").get
    val stored = nuts.upsert(key, "nuts").get
    Expect.error[DocumentNotFoundException](sdk.collection.get(key))
    Expect.equal(Sdk.value(fruit, key), ujson.Str("fruit"), "value")
    fruit.remove(key).get
    Expect.error[DocumentNotFoundException](fruit.get(key))
    Expect.equal(Sdk.value(nuts, key), ujson.Str("nuts"), "value")
    val part = nuts.mutateIn(
      "parts",
      Seq(MutateInSpec.upsert("a", 1)),
      document = StoreSemantics.Upsert
    )
    val counted = nuts.binary.increment("count", 1, Some(7L))
    val state = Scans.sees(stored.mutationToken, part.get.mutationToken, counted.get.mutationToken)
    val found = Scans.keys(nuts, ScanType.RangeScan(None, None), state)
    Expect.equal(found, Seq("count", key, "parts"), "keys that a scan finds")
  }

  private def dropped(sdk: Sdk): Unit = {
    val short = created(sdk, "short")
    short.upsert("k", 1).get
    sdk.bucket.collections.dropCollection("shop", "short").get
    expectGone(short.get("k", Brief))
    expectGone(short.upsert("k", 2, timeout = Brief))
    val again = created(sdk, "short")
    Expect.error[DocumentNotFoundException](again.get("k"))
    again.upsert("k", 3).get
    Expect.equal(Sdk.value(again, "k"), ujson.Num(3), "value")
  }
}
