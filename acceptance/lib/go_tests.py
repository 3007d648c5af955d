"""Suites whose cases are the tests that a Go module brings, compiled from its published source.

The module is the version that `acceptance/go` names. Tests of a testify suite are cases by their
names; tests can be named as arguments.
"""

import os
import re
import shutil
import subprocess
import sys

from cases import report
from programs import kept_directory

# One line a test: its outcome, its name, and how long it took.
OUTCOME = re.compile(r"^\s+--- (PASS|FAIL|SKIP): \w+/([^/\s]+) \(([0-9.]+)s\)")


def build(module):
    """The test program, made once for each version of the module, and the directory of its data."""
    asked = ["go", "list", "-m", "-f", "{{.Version}} {{.Dir}}", module]
    here = os.path.dirname(os.path.abspath(__file__))
    suite = os.path.join(here, "..", "go")
    subprocess.run(["go", "mod", "download", module], cwd=suite, check=True)
    version, original = subprocess.run(
        asked, cwd=suite, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    name = os.path.basename(os.path.dirname(os.path.abspath(sys.argv[0])))
    copied = os.path.join(kept_directory(name), version)
    program = os.path.join(copied, "acceptance.test")
    if not os.path.exists(program):
        copy(original, copied)
        subprocess.run(["go", "test", "-c", "-o", program, "."], cwd=copied, check=True)
    return program, copied


def copy(original, directory):
    """Copies the module."""
    shutil.rmtree(directory, ignore_errors=True)
    # Nothing of the original can be written.
    shutil.copytree(original, directory, copy_function=shutil.copyfile)
    for path, _, _ in os.walk(directory):
        os.chmod(path, 0o755)


def run_tests(built, suite, skipped, environment, seconds):
    """Runs the chosen tests of a testify suite and reports them; the names of those that were not
    passed over, and whether the program ended well and something passed."""
    program, directory = built
    chosen = f"^({'|'.join(sys.argv[1:])})$" if len(sys.argv) > 1 else "."
    skipped = f"^({'|'.join(skipped)})$"
    done = subprocess.run(
        [program, "-test.v", "-test.run", f"^{suite}$/{chosen}",
         "-test.skip", f"^{suite}$/{skipped}", f"-test.timeout={seconds}s"],
        cwd=directory, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    output = f"{suite}.txt"
    with open(os.path.join(os.environ["WORK_DIR"], output), "w", encoding="utf-8") as file:
        file.write(done.stdout)
    names, passed = [], 0
    for found in filter(None, map(OUTCOME.match, done.stdout.splitlines())):
        outcome, name, taken = found.groups()
        # What the tests pass over wants a service or a feature that is not there.
        if outcome != "SKIP":
            report(name, "ok" if outcome == "PASS" else f"FAIL see {output}", float(taken))
            names.append(name)
            passed += outcome == "PASS"
    return names, done.returncode == 0 and passed > 0
