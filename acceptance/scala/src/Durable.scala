package acceptance

import scala.concurrent.duration._

import com.couchbase.client.core.error.{CasMismatchException, DocumentExistsException}
import com.couchbase.client.scala.durability.{Durability, PersistTo, ReplicateTo}
import com.couchbase.client.scala.kv.UpsertOptions

/** Cases: durable writes, and what is there after a restart. */
object Durable {
  val Levels: Seq[Durability] = Seq(
    Durability.Majority,
    Durability.MajorityAndPersistToActive,
    Durability.PersistToMajority
  )
  private val Count = 200

  def declare(cases: Cases): Unit = {
    cases.add("durable-writes-are-committed") { sdk =>
      for (level <- Levels) {
        durableLife(sdk, level)
        durableCounter(sdk, level)
      }
    }
    cases.add("persist-to-active") { sdk =>
      // The only node there is; the SDK fails at its own `PersistTo.Active`.
      val active = Durability.ClientVerified(ReplicateTo.None, PersistTo.One)
      val key = sdk.key()
      sdk.collection.upsert(key, 1, active).get
      sdk.collection.replace(key, 2, durability = active).get
      sdk.expectValue(key, 2)
      sdk.collection.remove(key, durability = active).get
    }
    cases.add("restart-keeps-everything")(restartKeepsEverything)
    cases.add("restart-goes-on-in-the-same-branch") { sdk =>
      val before = sdk.stored(1)
      sdk.order("NODE restart")
      val after =
        sdk.collection.upsert(before.key, 2, UpsertOptions().timeout(Sdk.Ready)).get
      val (old, young) = (before.result.mutationToken.get, after.mutationToken.get)
      Expect.that(after.cas > before.cas, "the CAS grows")
      Expect.equal(young.partitionUUID, old.partitionUUID, "uuid")
      Expect.that(young.sequenceNumber > old.sequenceNumber, "seqnos go on")
    }
  }

  /** Takes a document from its insertion to its removal. */
  private def durableLife(sdk: Sdk, level: Durability): Unit = {
    val key = sdk.key()
    val first = sdk.collection.insert(key, 1, level).get.cas
    val second = sdk.collection.upsert(key, 2, level).get
    Expect.error[CasMismatchException](sdk.collection.replace(key, 3, first, level))
    val third = sdk.collection.replace(key, 3, second.cas, level).get
    Expect.error[DocumentExistsException](sdk.collection.insert(key, 4, level))
    Expect.equal(sdk.collection.get(key).get.cas, third.cas, "CAS")
    sdk.expectValue(key, 3)
    Expect.that(Sdk.seqno(third) > Sdk.seqno(second), "seqnos of commits rise")
    sdk.collection.remove(key, durability = level).get
    Expect.that(sdk.isGone(key), "removed")
  }

  private def durableCounter(sdk: Sdk, level: Durability): Unit = {
    val key = sdk.key()
    val binary = sdk.collection.binary
    for (value <- 41L to 42L) {
      Expect.equal(binary.increment(key, 1, Some(41L), level).get.content, value, "counter")
    }
    Expect.equal(binary.decrement(key, 2, durability = level).get.content, 40L, "counter")
    binary.append(key, "0".getBytes, durability = level).get
    binary.prepend(key, "1".getBytes, durability = level).get
    sdk.expectValue(key, 1400)
  }

  private def restartKeepsEverything(sdk: Sdk): Unit = {
    val stored = (0 until Count).map(index => sdk.stored(ujson.Obj("n" -> index)))
    val removed = sdk.stored(1).key
    sdk.collection.remove(removed).get
    val counter = sdk.stored(41).key
    val expiring = sdk.stored(1, Expiry.passing(2.seconds)).key
    sdk.order("NODE restart")
    Expect.within(Sdk.Ready, "the same SDK object works")(sdk.collection.exists(removed).isSuccess)
    for ((each, index) <- stored.zipWithIndex) {
      sdk.expectValue(each.key, ujson.Obj("n" -> index))
      Expect.equal(sdk.collection.get(each.key).get.cas, each.cas, "CAS")
    }
    Expect.that(sdk.isGone(removed), "a removed document stays removed")
    Expect.equal(sdk.collection.binary.increment(counter, 1).get.content, 42L, "counter")
    Expect.within(Expiry.LifetimeMax, "the expiry is kept")(sdk.isGone(expiring))
  }
}
