package acceptance

import scala.annotation.tailrec
import scala.concurrent.duration.{Deadline, Duration, FiniteDuration}
import scala.reflect.ClassTag
import scala.util.{Failure, Success, Try}

/** What cases ask of answers. */
object Expect {

  /** Says what should have held when it does not. */
  def that(holds: Boolean, sentence: => String): Unit =
    if (!holds) throw new AssertionError(sentence)

  def equal[T](got: T, wanted: T, what: String): Unit =
    that(got == wanted, s"$what: expected $wanted, got $got")

  /** The attempt must end with an error of this kind. */
  def error[E <: Throwable](attempt: => Try[Any])(implicit kind: ClassTag[E]): Throwable =
    error(attempt, kind.runtimeClass)

  /** The attempt must end with an error of one of these kinds. */
  def error(attempt: => Try[Any], kinds: Class[_]*): Throwable = {
    val expected = kinds.map(_.getSimpleName).mkString(" or ")
    attempt match {
      case Failure(error) if kinds.exists(_.isInstance(error)) => error
      case Failure(error) =>
        throw new AssertionError(s"expected $expected, got ${Cases.oneLine(error)}")
      case Success(_) => throw new AssertionError(s"expected $expected, got a result")
    }
  }

  /** Asks until the answer is true; fails the case when it is not, although it was asked for
    * behind the end of the time. An answer that comes late says nothing.
    */
  def within(limit: Duration, what: String)(question: => Boolean): Unit = {
    val deadline = Deadline.now + limit.asInstanceOf[FiniteDuration]
    @tailrec
    def ask(): Unit = {
      val isLate = deadline.isOverdue()
      if (!question) {
        that(!isLate, s"not within $limit: $what")
        Thread.sleep(20)
        ask()
      }
    }
    ask()
  }
}
