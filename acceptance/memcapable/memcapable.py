"""Cases: each test of memcapable's binary protocol, which checks every field of every answer."""

import functools
import subprocess

from cases import expect
from node import HOST

# All that memcapable 1.1.4 has. It says that all passed when a name is unknown, so that the line
# of the test itself must be looked for.
TESTS = (
    "noop", "quit", "quitq", "set", "setq", "flush", "flushq", "add", "addq", "replace",
    "replaceq", "delete", "deleteq", "get", "getq", "getk", "getkq", "incr", "incrq", "decr",
    "decrq", "version", "append", "appendq", "prepend", "prependq", "stat",
)
TIMEOUT_SECONDS = 5


def declare(cases):
    """In the order in which memcapable runs them."""
    for test in TESTS:
        cases.add(f"memcapable-{test}", functools.partial(run_test, f"binary {test}"))


def run_test(test, node):
    """One test, alone, on the port that needs no authentication."""
    command = ["memccapable", "-h", HOST, "-p", str(node.memcached_port), "-b", "-v",
               "-t", str(TIMEOUT_SECONDS), "-T", test]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=30, check=False)
    output = done.stdout.decode(errors="replace")
    lines = [line.split() for line in output.splitlines()]
    passed = [*test.split(), "[pass]"] in lines
    expect(passed and done.returncode == 0, output)
