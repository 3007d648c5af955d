package acceptance

import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.TimeSource
import kotlinx.coroutines.delay

// What cases ask of answers.

/** Says what should have held when it does not. */
internal fun expect(holds: Boolean, sentence: String) {
    if (!holds) {
        throw AssertionError(sentence)
    }
}

internal fun expectEqual(got: Any?, wanted: Any?, what: String) {
    expect(got == wanted, "$what: expected $wanted, got $got")
}

/** The attempt must end with an error of one of these kinds. */
internal suspend fun expectError(
    vararg kinds: Class<out Throwable>,
    attempt: suspend () -> Unit,
): Throwable {
    val expected = kinds.joinToString { it.simpleName }
    try {
        attempt()
    } catch (error: Throwable) {
        if (kinds.any { it.isInstance(error) }) {
            return error
        }
        throw AssertionError("expected $expected, got ${oneLine(error)}")
    }
    throw AssertionError("expected $expected, got a result")
}

internal suspend inline fun <reified E : Throwable> expectError(
    noinline attempt: suspend () -> Unit,
): Throwable = expectError(E::class.java, attempt = attempt)

/**
 * Asks until the answer is true; fails the case when it is not, although it was asked for behind
 * the end of the time. An answer that comes late says nothing.
 */
internal suspend fun within(limit: Duration, what: String, question: suspend () -> Boolean) {
    val started = TimeSource.Monotonic.markNow()
    var asked = started.elapsedNow()
    while (!question()) {
        expect(asked <= limit, "not within $limit: $what")
        delay(20.milliseconds)
        asked = started.elapsedNow()
    }
}

/** Whether an attempt ends well. */
internal suspend fun succeeds(attempt: suspend () -> Unit): Boolean =
    try {
        attempt()
        true
    } catch (error: Throwable) {
        false
    }
