"""The tool under test, and writers whose history is known."""

import json
import os
import struct
import subprocess
import threading

import mcbp
from mcbp import vbucket_of
from node import HOST, run_to_end

VBUCKETS = 16
PATIENCE_SECONDS = 120


def work(name):
    """A path in the suite's work directory."""
    return os.path.join(os.environ["WORK_DIR"], name)


def backup_arguments(node, target, *flags):
    """The command line of a backup."""
    return ["backup", "--target", target, "--spec", f"couchbase://{HOST}:{node.port}",
            "--username", node.user, "--password", node.password, "--json", *flags]


def succeed(arguments, environment=None):
    """Runs the tool, which must succeed; returns the JSON of its last line."""
    status, output = run_to_end(arguments, environment, PATIENCE_SECONDS)
    assert status == 0, f"{arguments[0]} ended with {status}: {output}"
    return json.loads(output.strip().splitlines()[-1])


def fail(arguments, *words, environment=None):
    """Runs the tool, which must fail and say these words."""
    status, output = run_to_end(arguments, environment, PATIENCE_SECONDS)
    assert status == 1, f"{arguments[0]} ended with {status}: {output}"
    for word in words:
        assert word in output, f"{word!r} is not in {output!r}"


def start_tool(arguments):
    """Starts the tool and does not wait for it."""
    return subprocess.Popen([os.environ["SETTEE_BINARY"], *arguments], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def keys_of(vbucket, count):
    """Names of documents of one vBucket."""
    names, number = [], 0
    while len(names) < count:
        name = f"key-{number}".encode()
        if vbucket_of(name, VBUCKETS) == vbucket:
            names.append(name)
        number += 1
    return names


class Writer(threading.Thread):
    """Overwrites the documents of one vBucket in turn with rising numbers, and knows the history."""

    def __init__(self, node, vbucket, keys=20, filler=400):
        super().__init__(daemon=True)
        self.vbucket, self.names = vbucket, keys_of(vbucket, keys)
        # The number at place n - 1 was written with seqno n.
        self.written = 0
        self._filler = b"x" * filler
        self._connection = mcbp.open_bucket(node)
        self._over = threading.Event()
        self._first_seqno = None

    def write(self, count):
        """Writes so many documents."""
        for _ in range(count):
            name = self.names[self.written % len(self.names)]
            answer = self._connection.call_successfully(
                mcbp.SET, key=name, extras=bytes(8), vbucket=self.vbucket,
                value=b"%d " % (self.written + 1) + self._filler)
            _, seqno = answer.mutation_token()
            assert seqno == self.written + 1, f"seqno {seqno} after {self.written} writes"
            self.written += 1

    def persist(self):
        """Returns the number of writes once they are durable."""
        count = self.written
        self._connection.call_successfully(
            mcbp.SEQNO_PERSISTENCE, extras=struct.pack(">Q", count), vbucket=self.vbucket)
        return count

    def run(self):
        while not self._over.is_set():
            self.write(10)

    def finish(self):
        """Ends the thread."""
        self._over.set()
        self.join()

    def check(self, node, at_least):
        """Fails unless the node has exactly a prefix of the history, at least so long."""
        with mcbp.open_bucket(node) as connection:
            found = {}
            for name in self.names:
                answer = connection.call(mcbp.GET, key=name, vbucket=self.vbucket)
                if answer.status == mcbp.SUCCESS:
                    found[name] = int(answer.value.split(b" ")[0])
        length = max(found.values(), default=0)
        assert at_least <= length <= self.written, (
            f"vBucket {self.vbucket}: {at_least} persisted, {length} restored, "
            f"{self.written} written")
        expected = {}
        for number in range(max(0, length - len(self.names)), length):
            expected[self.names[number % len(self.names)]] = number + 1
        assert found == expected, f"vBucket {self.vbucket} is no prefix of {length}"
        return length
