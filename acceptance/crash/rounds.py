"""Cases: twenty kills under load, and what must hold after each."""

import collections
import functools
import random
import time

from cases import expect_equal
from files import verify, vbucket_files
from history import DELETED, History
from node import Node
from recovered import observe_old_branches, read_branches, read_states
from workload import Workload, declare_keys

ROUNDS_PER_GROUP = 5
LOAD_SECONDS_MAX = 1.5
FILES_PER_ROUND = 40
EXAMPLES_MAX = 3

PROPERTIES = {
    "node-starts-without-help": "the node serves after the crash, whatever moment it was",
    "live-answers-are-right": "before the kill, no answer contradicts another",
    "persisted-seqnos-survive": "a vBucket recovers at least what was reported as persisted",
    "documents-are-a-prefix": "every key has the state that its vBucket's seqno demands",
    "new-branch-after-crash": "a crash begins a new branch, which says where it begins",
    "old-branch-is-answered": "OBSERVE_SEQNO with the old uuid tells what of it is left",
    "files-are-sound": "an independent reader accepts the vBucket files as they were left",
}

# How a round ends: killed under load; then again while it starts; or while it shuts down.
ENDINGS = ("load", "load", "start", "load", "shutdown")


class CrashRun:
    """Rounds on one data directory; a group of rounds runs when its first case asks.

    With many vBuckets most of the load is lost in a crash; with few of them, much is on disk.
    """

    def __init__(self, seed, vbuckets, numbers):
        self.seed = seed
        self.numbers = numbers
        self.vbuckets = range(vbuckets)
        self.node = Node(f"crash-{vbuckets}", "--vbuckets", str(vbuckets))
        self.history = History()
        declare_keys(self.history, vbuckets)
        self.broken = None
        self.file_times = {}
        self.newly_persisted = 0
        self._groups = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.node.is_running():
            self.node.kill()

    def group(self, first):
        """{property: complaints} of the rounds that begin with this one."""
        if first not in self._groups:
            complaints = collections.defaultdict(list)
            self.newly_persisted = 0
            for number in range(first, first + ROUNDS_PER_GROUP):
                self._run_round(number, complaints)
            if self.newly_persisted == 0:
                complaints["persisted-seqnos-survive"].append("nothing was reported persisted")
            self._groups[first] = complaints
        return self._groups[first]

    def _run_round(self, number, complaints):
        if self.broken is None:
            try:
                Round(self, number, complaints).run()
            except Exception as error:  # nothing more can be said about this directory
                self.broken = f"round {number}: {type(error).__name__}: {error}"
        if self.broken is not None:
            complaints["node-starts-without-help"].append(self.broken)


class Round:
    """Load, kill, inspection of the files, start, inspection of the node."""

    def __init__(self, crash_run, number, complaints):
        self.crash_run = crash_run
        self.node = crash_run.node
        self.history = crash_run.history
        self.number = number
        self.chance = random.Random(f"{crash_run.seed}-{number}")
        self.ending = ENDINGS[number % len(ENDINGS)]
        self.lost = 0
        self.newly_persisted = 0
        self._complaints = complaints

    def complain(self, about, sentence):
        """Notes that a property does not hold."""
        self._complaints[about].append(f"round {self.number}: {sentence}")

    def run(self):
        """The whole round."""
        started = time.monotonic()
        if not self.node.is_running():
            self.node.start()
        before = read_branches(self.node, self.crash_run.vbuckets)
        mutations = self._load_and_kill(before)
        files = self._check_files()
        self._start_again()
        self._check_node(before)
        self.crash_run.newly_persisted += self.newly_persisted
        print(f"round {self.number}: killed during {self.ending}, {mutations} mutations, "
              f"{self.lost} lost, {self.newly_persisted} reported persisted, "
              f"{files} files read, {time.monotonic() - started:.1f} s", flush=True)

    def _load_and_kill(self, before):
        uuids = {vbucket: branch.uuid for vbucket, branch in before.items()}
        seed = f"{self.crash_run.seed}-{self.number}"
        load = Workload(self.node, self.history, uuids, seed).start()
        time.sleep(self.chance.uniform(0.05, LOAD_SECONDS_MAX))
        if self.ending == "shutdown":
            self.node.terminate()
            time.sleep(self.chance.uniform(0, 0.5))
        self.node.kill()
        load.join()
        for complaint in load.complaints:
            self.complain("live-answers-are-right", complaint)
        return load.mutations

    def _check_files(self):
        """A sample of the changed files, all files in the last round; how many."""
        times = vbucket_files(self.node.data_directory)
        known = self.crash_run.file_times
        chosen = [path for path, changed in times.items() if known.get(path) != changed]
        if self.number != self.crash_run.numbers[-1]:
            chosen = self.chance.sample(sorted(chosen), min(len(chosen), FILES_PER_ROUND))
        else:
            chosen = sorted(times)
        self.crash_run.file_times = times
        for complaint in verify(chosen):
            self.complain("files-are-sound", complaint)
        return len(chosen)

    def _start_again(self):
        if self.ending == "start":
            self.node.spawn()
            time.sleep(self.chance.uniform(0, 0.4))
            self.node.kill()
        self.node.start()

    def _check_node(self, before):
        after = read_branches(self.node, self.crash_run.vbuckets)
        states = read_states(self.node, self.history.keys)
        self._check_seqnos(before, after)
        self._check_documents(states, after)
        self._check_branches(before, after)
        seqnos = {vbucket: branch.high_seqno for vbucket, branch in after.items()}
        self.history.rebase(states, seqnos)

    def _check_seqnos(self, before, after):
        for vbucket, seqno in self.history.acknowledged().items():
            self.lost += max(0, seqno - after[vbucket].high_seqno)
        for vbucket, seqno in self.history.persisted().items():
            self.newly_persisted += seqno - before[vbucket].high_seqno
            high = after[vbucket].high_seqno
            if high < seqno:
                self.complain("persisted-seqnos-survive",
                              f"vBucket {vbucket} had persisted {seqno}, recovered {high}")

    def _check_documents(self, states, after):
        for key, past in self.history.keys.items():
            high = after[past.vbucket].high_seqno
            if not past.may_be(states[key], high):
                found = "nothing" if states[key] is DELETED else states[key]
                self.complain("documents-are-a-prefix",
                              f"{key.decode()} in vBucket {past.vbucket}: found {found}, "
                              f"{past.describe(high)}")

    def _check_branches(self, before, after):
        persisted = self.history.persisted()
        advanced = {}
        for vbucket, seqno in self.history.acknowledged().items():
            self._check_branch(vbucket, before[vbucket], after[vbucket], seqno)
            begun = before[vbucket].log[0][1]
            if persisted.get(vbucket, 0) > begun and after[vbucket].uuid != before[vbucket].uuid:
                advanced[vbucket] = before[vbucket].uuid
        for vbucket, answer in observe_old_branches(self.node, advanced).items():
            wanted = (1, after[vbucket].uuid, before[vbucket].uuid)
            got = (answer.format, answer.new_uuid, answer.old_uuid)
            if got != wanted:
                self.complain("old-branch-is-answered",
                              f"vBucket {vbucket}: expected (format, new, old uuid) {wanted}, "
                              f"got {answer}")
            elif answer.last_seqno < persisted[vbucket]:
                self.complain("old-branch-is-answered",
                              f"vBucket {vbucket}: had persisted {persisted[vbucket]}, {answer}")

    def _check_branch(self, vbucket, before, after, acknowledged):
        if before.uuid == after.uuid:
            # A shutdown may have been complete when the kill came; then nothing may be missing.
            if self.ending != "shutdown" or after.high_seqno < acknowledged:
                self.complain("new-branch-after-crash",
                              f"vBucket {vbucket} is on the branch from before the crash, "
                              f"acknowledged {acknowledged}, recovered {after.high_seqno}")
            return
        begin = after.log[0][1]
        if begin > after.high_seqno:
            self.complain("new-branch-after-crash",
                          f"vBucket {vbucket}: begins at {begin}, recovered {after.high_seqno}")
        seqnos = [seqno for _, seqno in after.log]
        if seqnos != sorted(seqnos, reverse=True):
            self.complain("new-branch-after-crash", f"vBucket {vbucket}: log {after.log}")


def declare(cases, crash_run):
    """One case per property and group of rounds."""
    for first in crash_run.numbers[::ROUNDS_PER_GROUP]:
        for name in PROPERTIES:
            last = first + ROUNDS_PER_GROUP - 1
            cases.add(f"rounds-{first}-to-{last}-{name}",
                      functools.partial(check_property, crash_run, first, name))


def check_property(crash_run, first, name):
    """Fails with the first complaints, if there are any."""
    found = crash_run.group(first)[name]
    examples = "; ".join(found[:EXAMPLES_MAX])
    expect_equal(len(found), 0, f"violations of '{PROPERTIES[name]}' ({examples})")
    if crash_run.broken is not None:
        raise AssertionError(crash_run.broken)
