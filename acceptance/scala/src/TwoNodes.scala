package acceptance

import java.util.zip.CRC32

import scala.concurrent.duration._

import com.couchbase.client.core.error._
import com.couchbase.client.scala.durability.{Durability, PersistTo, ReplicateTo}
import com.couchbase.client.scala.kv.{LookupInSpec, MutateInSpec, StoreSemantics}
import com.couchbase.client.scala.manager.collection.CreateCollectionSettings

/** Cases: two nodes, one replica. */
object TwoNodes {
  private val Count = 40
  private val Limit = 20.seconds

  def declare(cases: Cases): Unit = {
    cases.add("tls-two-nodes")(_ => Encryption.exchange(Sdk.byPassword, "tls", 0 until Count))
    cases.add("sdk-durable-writes-at-every-level") { sdk =>
      Durable.Levels.foreach(durableWrites(sdk, _))
      sdk.order("CLUSTER replicated")
    }
    cases.add("sdk-replicas-can-be-read")(replicas)
    cases.add("sdk-observed-writes-reach-the-replica") { sdk =>
      val observed = Durability.ClientVerified(ReplicateTo.One, PersistTo.Two)
      for (key <- keys("observed").take(5)) {
        sdk.collection.upsert(key, ujson.Obj("key" -> key), observed).get
        expectCopies(sdk, key)
      }
    }
    cases.add("sdk-parts-of-replicas-can-be-read")(partsOfReplicas)
    cases.add("sdk-scans-see-both-nodes")(sdk => Scans.expectScans(sdk.collection, 300))
    cases.add("sdk-transactions-on-two-nodes")(Transactions.commitAndRollBack)
    cases.add("sdk-collections-on-two-nodes")(collections)
    cases.add("sdk-stopped-replica-makes-durable-writes-ambiguous")(stoppedReplica)
    cases.add("sdk-failover-keeps-the-sdk-working")(failover)
  }

  private def keys(name: String): Seq[String] = (0 until Count).map(index => s"$name-$index")

  private def durableWrites(sdk: Sdk, level: Durability): Unit =
    for (key <- keys(s"durable-$level")) {
      sdk.collection.insert(key, 0, level).get
      val cas = sdk.collection.upsert(key, 1, level).get.cas
      sdk.collection.replace(key, 2, cas, level).get
      sdk.expectValue(key, 2)
      if (key.endsWith("1")) {
        sdk.collection.remove(key, durability = level).get
        Expect.that(sdk.isGone(key), "it is removed")
      }
    }

  private def expectCopies(sdk: Sdk, key: String): Unit = {
    val copies = sdk.collection.getAllReplicas(key).toSeq
    Expect.equal(copies.map(_.isReplica).sorted, Seq(false, true), "copies")
    for (copy <- copies) {
      Expect.equal(copy.contentAs[ujson.Obj].get, ujson.Obj("key" -> key), "copy")
    }
  }

  private def replicas(sdk: Sdk): Unit = {
    keys("replica").foreach(key => sdk.collection.upsert(key, ujson.Obj("key" -> key)).get)
    sdk.order("CLUSTER replicated")
    for (key <- keys("replica")) {
      expectCopies(sdk, key)
      val any = sdk.collection.getAnyReplica(key).get
      Expect.equal(any.contentAs[ujson.Obj].get, ujson.Obj("key" -> key), "any copy")
    }
    // The SDK says with null that there is none.
    Expect.equal(sdk.collection.getAnyReplica("absent").get, null, "what is not there")
  }

  private def partsOfReplicas(sdk: Sdk): Unit = {
    for (key <- keys("part")) {
      val specs = Seq(
        MutateInSpec.upsert("meta", ujson.Obj("key" -> key)).xattr,
        MutateInSpec.upsert("n", 1)
      )
      sdk.collection.mutateIn(key, specs, document = StoreSemantics.Upsert).get
    }
    sdk.order("CLUSTER replicated")
    val paths = Seq(
      LookupInSpec.get("meta.key").xattr,
      LookupInSpec.get("n"),
      LookupInSpec.exists("none")
    )
    for (key <- keys("part")) {
      val copies = sdk.collection.lookupInAllReplicas(key, paths).get.toSeq
      Expect.equal(copies.map(_.isReplica).sorted, Seq(false, true), "copies")
      for (copy <- copies) {
        Expect.equal(copy.contentAs[String](0).get, key, "attribute")
        Expect.equal(copy.contentAs[Int](1).get, 1, "part")
        Expect.that(!copy.exists(2), "there is no such path")
      }
      val any = sdk.collection.lookupInAnyReplica(key, paths).get
      Expect.equal(any.contentAs[Int](1).get, 1, "any copy")
    }
  }

  private def collections(sdk: Sdk): Unit = {
    val manager = sdk.bucket.collections
    manager.createScope("shop").get
    manager.createCollection("shop", "fruit", CreateCollectionSettings()).get
    val fruit = sdk.bucket.scope("shop").collection("fruit")
    for (key <- keys("fruit")) {
      fruit.upsert(key, key, Durability.Majority).get
      Expect.equal(Sdk.value(fruit, key), ujson.Str(key), "value")
    }
    manager.dropScope("shop").get
    Collections.expectGone(fruit.get("fruit-0", 1.second))
  }

  /** Whether the active copy of a key is on the first node, as that of every even vBucket is. */
  private def isOnFirst(key: String): Boolean = {
    val sum = new CRC32
    sum.update(key.getBytes)
    (sum.getValue >>> 16 & 0x7fff) % Sdk.variable("SETTEE_VBUCKETS").toInt % 2 == 0
  }

  private def stoppedReplica(sdk: Sdk): Unit = {
    val onFirst = keys("stopped").filter(isOnFirst)
    val (first, second) = (onFirst.head, onFirst(1))
    Seq(first, second).foreach(sdk.collection.upsert(_, 1).get)
    sdk.order("CLUSTER pause 1")
    Expect.error(
      sdk.collection.upsert(first, 2, Durability.Majority, 3.seconds),
      classOf[AmbiguousTimeoutException],
      classOf[DurabilityAmbiguousException]
    )
    sdk.expectValue(first, 1)
    sdk.collection.upsert(second, 3).get
    sdk.expectValue(second, 3)
    sdk.order("CLUSTER resume 1")
    Expect.within(Limit, "durable writes go on") {
      sdk.collection.upsert(first, 4, Durability.Majority).isSuccess
    }
    sdk.expectValue(first, 4)
  }

  private def failover(sdk: Sdk): Unit = {
    val level = Durability.PersistToMajority
    keys("failover").foreach(sdk.collection.upsert(_, 1, level).get)
    sdk.order("CLUSTER kill 0")
    sdk.order("CLUSTER failover 0")
    for (key <- keys("failover")) {
      Expect.within(Limit, s"$key is read")(sdk.collection.get(key).isSuccess)
      sdk.expectValue(key, 1)
      sdk.collection.upsert(key, 2).get
    }
    // One of two copies is missing: no majority can be reached.
    Expect.error[DurabilityImpossibleException](sdk.collection.upsert("failover-0", 3, level))
    sdk.order("CLUSTER recover 0")
    sdk.order("CLUSTER replicated")
    Expect.within(Limit, "durable writes go on") {
      sdk.collection.upsert("failover-0", 2, level).isSuccess
    }
    keys("failover").foreach(sdk.expectValue(_, 2))
  }
}
