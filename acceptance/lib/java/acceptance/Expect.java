package acceptance;

import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Callable;

/** What cases ask of answers. */
final class Expect {
  /** Says what should have held when it does not. */
  static void that(boolean holds, String sentence) {
    if (!holds) {
      throw new AssertionError(sentence);
    }
  }

  static void equal(Object got, Object wanted, String what) {
    if (!Objects.equals(got, wanted)) {
      throw new AssertionError(what + ": expected " + wanted + ", got " + got);
    }
  }

  interface Attempt {
    void run() throws Exception;
  }

  /** The attempt must end with an error of one of these kinds. */
  @SafeVarargs
  @SuppressWarnings("varargs")
  static Throwable error(Attempt attempt, Class<? extends Throwable>... kinds) {
    List<Class<? extends Throwable>> expected = List.of(kinds);
    try {
      attempt.run();
    } catch (Throwable error) {
      if (expected.stream().anyMatch(kind -> kind.isInstance(error))) {
        return error;
      }
      throw new AssertionError("expected " + expected + ", got " + Cases.oneLine(error));
    }
    throw new AssertionError("expected " + expected + ", got a result");
  }

  /**
   * Asks until the answer is true; fails the case when it is not, although it was asked for behind
   * the end of the time. An answer that comes late says nothing.
   */
  static void within(Duration limit, Callable<Boolean> question, String what) throws Exception {
    long deadline = System.nanoTime() + limit.toNanos();
    for (long asked = System.nanoTime(); !question.call(); asked = System.nanoTime()) {
      if (asked > deadline) {
        throw new AssertionError("not within " + limit + ": " + what);
      }
      Thread.sleep(20);
    }
  }

  /** Whether an attempt ends well. */
  static boolean succeeds(Attempt attempt) {
    try {
      attempt.run();
      return true;
    } catch (Throwable error) {
      return false;
    }
  }
}
