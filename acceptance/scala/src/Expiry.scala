package acceptance

import java.time.Instant

import scala.annotation.tailrec
import scala.concurrent.duration._

import com.couchbase.client.core.error.DocumentNotFoundException
import com.couchbase.client.scala.kv.{GetOptions, UpsertOptions}

/** Cases: documents that expire. */
object Expiry {
  // Expiry is counted in whole seconds of the clock, so a document may live a second less.
  private val Lifetime = 2.seconds
  private val LifetimeMin = 900.milliseconds
  val LifetimeMax: FiniteDuration = 4.seconds

  def declare(cases: Cases): Unit = {
    declareTouches(cases)
    cases.add("expiry") { sdk =>
      val started = Deadline.now
      val key = sdk.stored(1, passing(Lifetime)).key
      expectLifetime(sdk, key, started)
      Expect.error[DocumentNotFoundException](sdk.collection.get(key))
      Expect.error[DocumentNotFoundException](sdk.collection.replace(key, 2))
      Expect.error[DocumentNotFoundException](sdk.collection.remove(key))
    }
    cases.add("expiry-is-told")(isTold)
    cases.add("expiry-is-removed-by-upsert") { sdk =>
      val short = sdk.stored(1, passing(1.second)).key
      val lasting = sdk.stored(1, passing(1.second)).key
      sdk.collection.upsert(lasting, 2).get
      Expect.within(LifetimeMax, "the other document expires")(sdk.isGone(short))
      sdk.expectValue(lasting, 2)
    }
    cases.add("preserve-expiry") { sdk =>
      val started = Deadline.now
      val key = sdk.stored(1, passing(Lifetime)).key
      sdk.collection.upsert(key, 2, UpsertOptions().preserveExpiry(true)).get
      sdk.expectValue(key, 2)
      expectLifetime(sdk, key, started)
    }
    cases.add("expired-can-be-inserted") { sdk =>
      val key = sdk.stored(1, passing(1.second)).key
      Expect.within(LifetimeMax, "the document expires")(sdk.isGone(key))
      sdk.collection.insert(key, 2).get
      sdk.expectValue(key, 2)
    }
  }

  private def declareTouches(cases: Cases): Unit = {
    cases.add("touch") { sdk =>
      val stored = sdk.stored(1)
      val started = Deadline.now
      val cas = sdk.collection.touch(stored.key, Lifetime).get.cas
      Expect.that(cas > stored.cas, "a new expiry is a mutation")
      expectLifetime(sdk, stored.key, started)
    }
    cases.add("touch-missing") { sdk =>
      Expect.error[DocumentNotFoundException](sdk.collection.touch(sdk.key(), Lifetime))
    }
    cases.add("get-and-touch") { sdk =>
      val key = sdk.stored(1).key
      val started = Deadline.now
      val read = sdk.collection.getAndTouch(key, Lifetime).get
      Expect.equal(read.contentAs[Int].get, 1, "value")
      expectLifetime(sdk, key, started)
      Expect.error[DocumentNotFoundException](sdk.collection.getAndTouch(key, Lifetime))
    }
  }

  def passing(lifetime: Duration): UpsertOptions = UpsertOptions().expiry(lifetime)

  /** When a document is to expire, if ever. */
  def told(sdk: Sdk, key: String): Option[Instant] =
    sdk.collection.get(key, GetOptions().withExpiry(true)).get.expiryTime

  private def isTold(sdk: Sdk): Unit = {
    val hour = sdk.stored(1, passing(1.hour)).key
    val left = told(sdk, hour).get.getEpochSecond - Instant.now.getEpochSecond
    Expect.that(left > 3500 && left < 3610, s"an hour is left, or nearly so: $left")
    val far = Instant.now.plusSeconds(100.days.toSeconds)
    val absolute = sdk.stored(1, UpsertOptions().expiry(far)).key
    Expect.equal(told(sdk, absolute).get.getEpochSecond, far.getEpochSecond, "an absolute time")
    val lasting = sdk.stored(1).key
    Expect.that(told(sdk, lasting).isEmpty, "without an expiry it lasts")
  }

  /** Watches a document of that lifetime, which has just been stored, until it is gone. */
  private def expectLifetime(sdk: Sdk, key: String, started: Deadline): Unit = {
    val stored = Deadline.now
    @tailrec
    def watch(): Unit = {
      val isGone = sdk.isGone(key)
      if (Deadline.now - started < LifetimeMin) {
        Expect.that(!isGone, s"$key is not gone at once")
        Thread.sleep(50)
        watch()
      }
    }
    watch()
    Expect.within(LifetimeMax - (Deadline.now - stored), s"$key expires")(sdk.isGone(key))
  }
}
