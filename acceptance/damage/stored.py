"""A node with a few vBuckets whose documents are known, and what it answers about them."""

import contextlib
import os
import re
import struct
import time

from cases import expect, expect_equal, wait_until
from mcbp import GET, KEY_NOT_FOUND, SEQNO_PERSISTENCE, SET, SUCCESS, open_bucket, vbucket_of
from node import COLOUR, Node

VBUCKETS = 4
DOCUMENTS = 400
DAMAGED = 1
BLOCK_SIZE = 4096
HEADER_BLOCK = 1
# Files follow the journal within it, unless a case is about what only the journal has.
CYCLE_MILLISECONDS = 100
PATIENCE_SECONDS = 30


class Stored:
    """The node, and the newest value of each document."""

    def __init__(self, name, *flags, cycle_milliseconds=CYCLE_MILLISECONDS):
        self.node = Node(name, "--vbuckets", str(VBUCKETS), "--apply-cycle-ms",
                         str(cycle_milliseconds), *flags)
        self.values = {}
        self._log_position = 0

    def __enter__(self):
        self.node.start()
        return self

    def __exit__(self, *_):
        if self.node.is_running():
            self.node.kill()

    @property
    def bucket_directory(self):
        """Where the files are."""
        return os.path.join(self.node.data_directory, "buckets", "default")

    @property
    def journal_directory(self):
        """Where the journal is."""
        return os.path.join(self.bucket_directory, "journal")

    def file(self, vbucket=DAMAGED):
        """The path of a vBucket's file."""
        pattern = re.compile(rf"{vbucket}\.couch\.[0-9]+")
        names = sorted(filter(pattern.fullmatch, os.listdir(self.bucket_directory)))
        expect_equal(len(names), 1, f"files of vBucket {vbucket}")
        return os.path.join(self.bucket_directory, names[0])

    def write(self, value, numbers=range(DOCUMENTS)):
        """Gives documents a value, and waits until all are durable. What was there is old."""
        with open_bucket(self.node) as connection:
            newest = {}
            for number in numbers:
                key = b"document-%d" % number
                vbucket = vbucket_of(key, VBUCKETS)
                content = b"%s of %d" % (value, number)
                answer = connection.call_successfully(
                    SET, key=key, extras=bytes(8), value=content, vbucket=vbucket)
                newest[vbucket] = answer.mutation_token()[1]
                self.values[key] = content
            for vbucket, seqno in newest.items():
                connection.call_successfully(
                    SEQNO_PERSISTENCE, vbucket=vbucket, extras=struct.pack(">Q", seqno))

    def write_until_refused(self):
        """Writes to the damaged vBucket until that is refused; whether it was in time."""
        key = next(key for key in self.values if vbucket_of(key, VBUCKETS) == DAMAGED)
        deadline = time.monotonic() + PATIENCE_SECONDS
        with open_bucket(self.node) as connection:
            while time.monotonic() < deadline:
                answer = connection.call(
                    SET, key=key, extras=bytes(8), value=b"third value", vbucket=DAMAGED)
                if answer.status != SUCCESS:
                    return True
                self.values[key] = b"third value"
                time.sleep(0.02)
        return False

    def wait_for_files(self):
        """Waits until the files have what the journal has."""
        def are_applied():
            with open_bucket(self.node) as connection:
                journal = connection.statistics("journal")
            # Of these the one that is being written is one; items are not counted then.
            return int(journal["unapplied_vbuckets"]) == 0

        wait_until(are_applied, PATIENCE_SECONDS, "files have everything")

    def start_after_damage(self):
        """Starts the node; its log counts from here on."""
        self._log_position = os.path.getsize(self.node.log_path)
        self.node.start()

    def errors(self):
        """Lines of the log at ERROR since the damage."""
        with open(self.node.log_path, encoding="utf-8", errors="replace") as log:
            log.seek(self._log_position)
            lines = [COLOUR.sub("", line).strip() for line in log]
        return [line for line in lines if " ERROR " in line or line.startswith("settee:")]

    def expect_error(self, *words):
        """One line at ERROR has all these words."""
        found = self.errors()
        expect(any(all(word in line for word in words) for line in found),
               f"a line at ERROR with {words}: {found}")

    def answers(self):
        """(damaged vBucket's answers, others' answers): key to status and value."""
        answers = {}
        with open_bucket(self.node) as connection:
            for key in self.values:
                answer = connection.call(GET, key=key, vbucket=vbucket_of(key, VBUCKETS))
                answers[key] = (answer.status, answer.value)
        of_damaged = {key for key in answers if vbucket_of(key, VBUCKETS) == DAMAGED}
        return ({key: answers[key] for key in of_damaged},
                {key: answers[key] for key in answers.keys() - of_damaged})

    def expect_others_serve(self):
        """Every document of the other vBuckets is as it was written last."""
        _, others = self.answers()
        wrong = {key: answer for key, answer in others.items()
                 if answer != (SUCCESS, self.values[key])}
        expect_equal(wrong, {}, "wrong answers of undamaged vBuckets")

    def expect_nothing_wrong(self):
        """The damaged vBucket gives newest values or errors; old ones and "not found" are lies."""
        damaged, _ = self.answers()
        lies = {key: answer for key, answer in damaged.items()
                if answer[0] == KEY_NOT_FOUND
                or answer[0] == SUCCESS and answer[1] != self.values[key]}
        expect_equal(lies, {}, "old or missing documents that are served")

    def expect_out_of_service(self):
        """The damaged vBucket serves nothing and takes no writes; the file stays; others serve."""
        damaged, _ = self.answers()
        served = {key for key, (status, _) in damaged.items()
                  if status in (SUCCESS, KEY_NOT_FOUND)}
        expect_equal(served, set(), "keys that a vBucket out of service answers for")
        with open_bucket(self.node) as connection:
            key = next(iter(damaged))
            answer = connection.call(
                SET, key=key, extras=bytes(8), value=b"new", vbucket=DAMAGED)
            expect(answer.status != SUCCESS, "a write is refused")
            statistics = connection.statistics("")
        expect_equal(statistics["ep_vbuckets_damaged"], "1", "ep_vbuckets_damaged")
        self.expect_others_serve()


    def expect_begun_anew(self):
        """The vBucket takes writes, and has nothing of before; others serve."""
        damaged, _ = self.answers()
        key = next(iter(damaged))
        expect({answer[1] for answer in damaged.values()} <= {b"", b"anew"}, "nothing of before")
        with open_bucket(self.node) as connection:
            connection.call_successfully(
                SET, key=key, extras=bytes(8), value=b"anew", vbucket=DAMAGED)
        self.expect_others_serve()


def blocks(path):
    """The type byte of each block."""
    with open(path, "rb") as file:
        content = file.read()
    return [content[position] for position in range(0, len(content), BLOCK_SIZE)]


def newest_header(path):
    """Where the newest header of a file begins, in bytes."""
    types = blocks(path)
    return max(index for index, kind in enumerate(types) if kind == HEADER_BLOCK) * BLOCK_SIZE


def change_byte(path, position, change):
    """Replaces one byte by what `change` makes of it."""
    with open(path, "r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([change(byte)]))


@contextlib.contextmanager
def stopped(name, *flags, by_kill=False, **options):
    """A node that was stopped, whose files have everything and hold several commits."""
    with Stored(name, *flags, **options) as stored:
        for value in (b"first value", b"second value"):
            stored.write(value)
            stored.wait_for_files()
        if by_kill:
            stored.node.kill()
        else:
            stored.node.stop()
        yield stored
