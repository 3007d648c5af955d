"""Cases: named facts about the node, each with one line of outcome."""

import fnmatch
import os
import re
import sys
import time
import traceback


class Skip(Exception):
    """Raised by a case that cannot run here; says why."""


class Cases:
    """The cases of a suite, run in the order in which they were declared."""

    def __init__(self):
        self._cases = []
        self._failed = 0

    def case(self, function):
        """Declares a case; its name is the function's, with hyphens."""
        self.add(function.__name__.replace("_", "-"), function)
        return function

    def add(self, name, function):
        """Declares a case under a name without blanks."""
        if re.search(r"\s", name) or name in dict(self._cases):
            raise ValueError(f"not a new name without blanks: {name!r}")
        self._cases.append((name, function))

    def run(self, *arguments):
        """Runs the cases named on the command line, or else all, and returns the exit status.

        Each case is called with the same arguments.
        """
        chosen = sys.argv[1:]
        unknown = set(chosen) - {name for name, _ in self._cases}
        if unknown:
            raise SystemExit(f"no such case: {', '.join(sorted(unknown))}")
        for name, function in self._cases:
            if not chosen or name in chosen:
                self._run_one(name, function, arguments)
        if not chosen and not report_listed(name for name, _ in self._cases):
            self._failed += 1
        return 1 if self._failed else 0

    def _run_one(self, name, function, arguments):
        started = time.monotonic()
        try:
            function(*arguments)
        except Skip as why:
            report(name, f"SKIP {one_line(why)}")
        except Exception as error:  # whatever a case raises is its outcome
            self._failed += 1
            traceback.print_exc()
            kind = type(error).__name__
            report(name, f"FAIL {kind}: {one_line(error)}")
        else:
            report(name, "ok", time.monotonic() - started)


def report(name, outcome, seconds=0.0):
    """Prints the line that the runner counts; how long it took when that is noteworthy."""
    took = f" ({seconds:.1f} s)" if seconds >= 1 else ""
    # In one piece, with its end: others print lines, too.
    print(f"CASE {name} {outcome}{took}\n", end="", flush=True)


def report_listed(names):
    """The last case: those of this suite are the ones that `cases.md` lists; whether they are."""
    names = set(names)
    patterns = listed_patterns()
    unlisted = {name for name in names if not any(
        fnmatch.fnmatchcase(name, pattern) for pattern in patterns)}
    absent = {pattern for pattern in patterns if not fnmatch.filter(names, pattern)}
    wrong = sorted(unlisted | absent)
    report("cases-are-listed", f"FAIL {', '.join(wrong)}" if wrong else "ok")
    return not wrong


def listed_patterns():
    """Names of this suite's cases in the tables of `cases.md`: `| name | suites | fact |`."""
    directory = os.path.dirname(os.path.abspath(sys.argv[0]))
    with open(os.path.join(directory, "..", "cases.md"), encoding="utf-8") as file:
        rows = [[cell.strip(" `") for cell in line.split("|")] for line in file]
    suite = os.path.basename(directory)
    return {row[1] for row in rows if len(row) == 5 and suite in row[2].split()}


def one_line(error):
    """A message without line ends, cut to a readable length."""
    return " ".join(str(error).split())[:400]


def expect(condition, sentence):
    """Fails the case, saying what should have held."""
    if not condition:
        raise AssertionError(sentence)


def expect_equal(got, wanted, what):
    """Fails the case when the two differ, showing both."""
    if got != wanted:
        raise AssertionError(f"{what}: expected {wanted!r:.200}, got {got!r:.200}")


def expect_error(kinds, function, *arguments, **options):
    """Calls the function, which must raise one of these kinds of errors, and returns the error."""
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    wanted = " or ".join(kind.__name__ for kind in kinds)
    try:
        result = function(*arguments, **options)
    except kinds as error:
        return error
    except Exception as error:
        kind = type(error).__name__
        raise AssertionError(f"expected {wanted}, got {kind}: {one_line(error)}") from error
    raise AssertionError(f"expected {wanted}, got the result {result!r:.200}")


def wait_until(question, seconds, what):
    """Asks until the answer is true; fails the case when it is not, although it was asked for
    behind the end of the time. An answer that comes late says nothing.
    """
    deadline = time.monotonic() + seconds
    asked = time.monotonic()
    while not question():
        if asked > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.02)
        asked = time.monotonic()


def work_directory():
    """The directory that belongs to this run of the suite."""
    return os.environ["WORK_DIR"]
