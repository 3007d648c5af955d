package acceptance

import scala.concurrent.ExecutionContext.Implicits.global
import scala.concurrent.duration._
import scala.concurrent.{Await, Future}

import reactor.core.scala.publisher.SFlux

/** Cases: many operations at once. */
object Bulk {
  private val Count = 500
  private val Thousands = 4000

  def declare(cases: Cases): Unit = {
    cases.add("parallel-operations") { sdk =>
      val read = inParallel(Count) { index =>
        val key = sdk.key()
        for {
          _ <- sdk.collection.async.upsert(key, index)
          found <- sdk.collection.async.get(key)
        } yield found.contentAs[Int].get
      }
      Expect.equal(read, 0 until Count, "all are read")
    }
    cases.add("reactive-operations") { sdk =>
      val reactive = sdk.collection.reactive
      val sum = SFlux
        .range(0, Count)
        .flatMap(index =>
          reactive.upsert(s"reactive-$index", index).flatMap(_ => reactive.get(s"reactive-$index"))
        )
        .map(_.contentAs[Int].get)
        .reduce((left: Int, right: Int) => left + right)
        .block()
      Expect.equal(sum, Count * (Count - 1) / 2, "all are read")
    }
    cases.add("parallel-increments") { sdk =>
      val key = sdk.key()
      val values = inParallel(Count) { _ =>
        sdk.collection.async.binary.increment(key, 1, Some(1L)).map(_.content)
      }
      Expect.equal(values.sorted, 1L to Count.toLong, "every number once")
    }
    cases.add("thousands-in-flight")(thousands)
  }

  private def thousands(sdk: Sdk): Unit = {
    val documents = sdk.collection.async
    inParallel(Thousands)(index => documents.upsert(s"thousands-$index", index))
    val read = inParallel(Thousands) { index =>
      documents.get(s"thousands-$index").map(_.contentAs[Int].get)
    }
    Expect.equal(read, 0 until Thousands, "all are read")
    inParallel(Thousands)(index => documents.remove(s"thousands-$index"))
    Expect.that(sdk.isGone("thousands-0"), "all are removed")
  }

  /** Results of a function of the numbers below the count, all at the same time. */
  def inParallel[T](count: Int)(body: Int => Future[T]): Seq[T] =
    Await.result(Future.traverse((0 until count).toList)(body), 1.minute)
}
