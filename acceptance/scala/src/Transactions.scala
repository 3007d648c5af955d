package acceptance

import scala.concurrent.duration._
import scala.concurrent.{ExecutionContext, Future, blocking}
import scala.util.Try

import com.couchbase.client.scala.kv.LookupInSpec
import com.couchbase.client.scala.transactions.TransactionAttemptContext
import com.couchbase.client.scala.transactions.config.TransactionOptions
import com.couchbase.client.scala.transactions.error._

/** Cases: transactions, which the SDK makes of attributes. */
object Transactions {
  def declare(cases: Cases): Unit = {
    cases.add("transactions-commit-and-roll-back") { sdk =>
      commitAndRollBack(sdk)
      val kept = Changed.prepared(sdk)
      expectRolledBack(sdk)(kept.change(sdk, _))
      kept.expectNothingIsLeft(sdk, kept.first, kept.gone)
    }
    cases.add("transactions-expire")(expire)
    cases.add("transactions-meet")(meet)
    cases.add("transactions-insert-what-was-rolled-back") { sdk =>
      val key = sdk.key()
      def insert(context: TransactionAttemptContext): Unit =
        context.insert(sdk.collection, key, ujson.Obj("n" -> 1)).get
      expectRolledBack(sdk)(insert)
      Expect.that(sdk.isGone(key), "not inserted")
      run(sdk)(insert).get
      sdk.expectValue(key, ujson.Obj("n" -> 1))
    }
  }

  /** One transaction is rolled back, and the next one with the same documents is committed. */
  def commitAndRollBack(sdk: Sdk): Unit = {
    val changed = Changed.prepared(sdk)
    expectRolledBack(sdk)(changed.change(sdk, _))
    changed.expectUnchanged(sdk)
    run(sdk)(changed.change(sdk, _)).get
    changed.expectCommitted(sdk)
  }

  private def run(sdk: Sdk, timeout: Duration = Sdk.Ready)(
      body: TransactionAttemptContext => Unit
  ): Try[Any] =
    sdk.cluster.transactions
      .run(context => Try(body(context)), TransactionOptions().timeout(timeout))

  private def expectRolledBack(sdk: Sdk)(body: TransactionAttemptContext => Unit): Unit =
    Expect.error[TransactionFailedException](run(sdk) { context =>
      body(context)
      throw new IllegalStateException("the application has changed its mind")
    })

  private def expire(sdk: Sdk): Unit = {
    val kept = Changed.prepared(sdk)
    Expect.error[TransactionExpiredException](run(sdk, 1.second) { context =>
      kept.change(sdk, context)
      Thread.sleep(1500)
      context.get(sdk.collection, kept.first).get
    })
    kept.expectUnchanged(sdk)
  }

  private def meet(sdk: Sdk): Unit = {
    val key = sdk.stored(ujson.Obj("n" -> 0)).key
    def add(context: TransactionAttemptContext): Unit = {
      val document = context.get(sdk.collection, key).get
      val number = document.contentAs[ujson.Obj].get("n").num
      context.replace(document, ujson.Obj("n" -> (number + 1))).get
    }
    implicit val threads: ExecutionContext = ExecutionContext.global
    Bulk.inParallel(5)(_ => Future(blocking(run(sdk)(add).get)))
    sdk.expectValue(key, ujson.Obj("n" -> 5))
  }
}

/** Keys that a transaction changes: one is replaced, one removed, one inserted. */
final case class Changed(first: String, gone: String, added: String) {
  def change(sdk: Sdk, context: TransactionAttemptContext): Unit = {
    context.replace(context.get(sdk.collection, first).get, ujson.Obj("n" -> 10)).get
    context.insert(sdk.collection, added, ujson.Obj("n" -> 3)).get
    context.remove(context.get(sdk.collection, gone).get).get
  }

  def expectCommitted(sdk: Sdk): Unit = {
    sdk.expectValue(first, ujson.Obj("n" -> 10))
    sdk.expectValue(added, ujson.Obj("n" -> 3))
    Expect.that(sdk.isGone(gone), "removed")
    expectNothingIsLeft(sdk, first, added)
  }

  def expectUnchanged(sdk: Sdk): Unit = {
    sdk.expectValue(first, ujson.Obj("n" -> 1))
    sdk.expectValue(gone, ujson.Obj("n" -> 2))
    Expect.that(sdk.isGone(added), "not inserted")
  }

  def expectNothingIsLeft(sdk: Sdk, keys: String*): Unit =
    for (key <- keys) {
      val found = sdk.collection.lookupIn(key, Seq(LookupInSpec.exists("txn").xattr)).get
      Expect.that(!found.exists(0), "nothing is left of a transaction")
    }
}

object Changed {
  def prepared(sdk: Sdk): Changed =
    Changed(sdk.stored(ujson.Obj("n" -> 1)).key, sdk.stored(ujson.Obj("n" -> 2)).key, sdk.key())
}
