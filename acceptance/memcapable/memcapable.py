"""Cases: each test of memcapable, which checks every field and every line of every answer."""

import functools
import subprocess

from cases import expect
from node import HOST

# All that memcapable 1.1.4 has. It says that all passed when a name is unknown, so that the line
# of the test itself must be looked for.
BINARY_TESTS = (
    "noop", "quit", "quitq", "set", "setq", "flush", "flushq", "add", "addq", "replace",
    "replaceq", "delete", "deleteq", "get", "getq", "getk", "getkq", "incr", "incrq", "decr",
    "decrq", "version", "append", "appendq", "prepend", "prependq", "stat",
)
ASCII_TESTS = (
    "version", "quit", "verbosity", "set", "set noreply", "get", "gets", "mget", "flush",
    "flush noreply", "add", "add noreply", "replace", "replace noreply", "cas", "cas noreply",
    "delete", "delete noreply", "incr", "incr noreply", "decr", "decr noreply", "append",
    "append noreply", "prepend", "prepend noreply", "stat",
)
TIMEOUT_SECONDS = 5


def declare(cases):
    """In the order in which memcapable runs them."""
    for test in BINARY_TESTS:
        cases.add(f"memcapable-{test}", functools.partial(run_test, "-b", f"binary {test}"))
    for test in ASCII_TESTS:
        name = test.replace(" ", "-")
        cases.add(f"memcapable-ascii-{name}", functools.partial(run_test, "-a", f"ascii {test}"))


def run_test(protocol, test, node):
    """One test, alone, on the port that needs no authentication."""
    command = ["memccapable", "-h", HOST, "-p", str(node.memcached_port), protocol, "-v",
               "-t", str(TIMEOUT_SECONDS), "-T", test]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=30, check=False)
    output = done.stdout.decode(errors="replace")
    lines = [line.split() for line in output.splitlines()]
    passed = [*test.split(), "[pass]"] in lines
    expect(passed and done.returncode == 0, output)
