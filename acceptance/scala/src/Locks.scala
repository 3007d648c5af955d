package acceptance

import scala.concurrent.duration._
import scala.util.Try

import com.couchbase.client.core.error._

/** Cases: locks. */
object Locks {
  private val LockTime = 15.seconds

  def declare(cases: Cases): Unit = {
    declareWhileLocked(cases)
    declareUnlocks(cases)
  }

  private def declareWhileLocked(cases: Cases): Unit = {
    cases.add("get-and-lock") { sdk =>
      locked(sdk)
      Expect.error[DocumentNotFoundException](sdk.collection.getAndLock(sdk.key(), LockTime))
    }
    cases.add("locked-write-is-refused") { sdk =>
      val key = locked(sdk).key
      expectLocked(sdk.collection.upsert(key, 2, timeout = Sdk.Brief))
      expectLocked(sdk.collection.remove(key, timeout = Sdk.Brief))
      sdk.expectValue(key, 1)
    }
    cases.add("locked-twice-is-refused") { sdk =>
      expectLocked(sdk.collection.getAndLock(locked(sdk).key, LockTime, Sdk.Brief))
    }
    cases.add("locked-is-readable") { sdk =>
      val document = locked(sdk)
      val read = sdk.collection.get(document.key).get
      Expect.that(read.cas != document.cas, "a read does not give away the lock")
      sdk.expectValue(document.key, 1)
    }
    cases.add("write-with-lock-cas-unlocks") { sdk =>
      val document = locked(sdk)
      sdk.collection.replace(document.key, 2, document.cas).get
      sdk.collection.upsert(document.key, 3).get
      sdk.expectValue(document.key, 3)
    }
  }

  private def declareUnlocks(cases: Cases): Unit = {
    cases.add("unlock") { sdk =>
      val document = locked(sdk)
      sdk.collection.unlock(document.key, document.cas).get
      sdk.collection.upsert(document.key, 2).get
      sdk.expectValue(document.key, 2)
    }
    cases.add("unlock-with-wrong-cas") { sdk =>
      val document = locked(sdk)
      Expect.error(
        sdk.collection.unlock(document.key, document.cas + 1, Sdk.Brief),
        classOf[CasMismatchException],
        classOf[DocumentLockedException],
        classOf[TimeoutException]
      )
      sdk.collection.unlock(document.key, document.cas).get
    }
    cases.add("unlock-not-locked") { sdk =>
      val stored = sdk.stored(1)
      Expect.error[DocumentNotLockedException](sdk.collection.unlock(stored.key, stored.cas))
    }
    cases.add("unlock-missing") { sdk =>
      Expect.error[DocumentNotFoundException](sdk.collection.unlock(sdk.key(), 1))
    }
    cases.add("lock-ends") { sdk =>
      val stored = sdk.stored(1)
      sdk.collection.getAndLock(stored.key, 1.second).get
      Expect.within(Expiry.LifetimeMax, "the lock ends by itself") {
        sdk.collection.get(stored.key).get.cas == stored.cas
      }
      sdk.collection.upsert(stored.key, 2).get
    }
  }

  private final case class Locked(key: String, cas: Long)

  /** A locked document and the CAS of the lock; it holds 1. */
  private def locked(sdk: Sdk): Locked = {
    val stored = sdk.stored(1)
    val lock = sdk.collection.getAndLock(stored.key, LockTime).get
    Expect.equal(lock.contentAs[Int].get, 1, "value")
    Expect.that(lock.cas != stored.cas, "a lock has a CAS of its own")
    Locked(stored.key, lock.cas)
  }

  /** The SDK repeats what met a lock until its time is over. */
  private def expectLocked(attempt: => Try[Any]): Unit =
    Expect.error(attempt, classOf[DocumentLockedException], classOf[TimeoutException])
}
