"""What was sent to the node and what it answered, and what may therefore be found after a crash."""

import threading
import zlib

DELETED = None


def state_of(value):
    """What identifies a value, as each carries a random number: its size and checksum."""
    return (len(value), zlib.crc32(value))


class Mutation:
    """One SET or DELETE that was sent; it has a seqno once it was acknowledged."""

    __slots__ = ("state", "seqno")

    def __init__(self, state, seqno=None):
        self.state = state
        self.seqno = seqno


class KeyHistory:
    """The mutations of one key since the node was last read, in the order of sending.

    The first one is what was read. One writer owns the key and its connection keeps the order, so
    the acknowledged ones come before the others.
    """

    __slots__ = ("vbucket", "mutations")

    def __init__(self, vbucket):
        self.vbucket = vbucket
        self.mutations = [Mutation(DELETED, 0)]

    def last_state(self):
        """The state after everything that was sent."""
        return self.mutations[-1].state

    def append(self, state):
        """Notes a mutation that is about to be sent."""
        mutation = Mutation(state)
        self.mutations.append(mutation)
        return mutation

    def may_be(self, state, high_seqno):
        """Whether the key may have this state in a vBucket that recovered up to `high_seqno`.

        That is the state at that seqno, or one of a mutation whose seqno nobody knows.
        """
        at_seqno = None
        for mutation in self.mutations:
            if mutation.seqno is None:
                if mutation.state == state:
                    return True
            elif mutation.seqno <= high_seqno:
                at_seqno = mutation
        return at_seqno is not None and at_seqno.state == state

    def describe(self, high_seqno):
        """The last mutations, for a message."""
        last = [(mutation.seqno, mutation.state) for mutation in self.mutations[-4:]]
        return f"recovered up to {high_seqno}, last (seqno, state) {last}"

    def rebase(self, state, high_seqno):
        """Begins anew with a state that was read."""
        self.mutations = [Mutation(state, high_seqno)]


class History:
    """All keys, and per vBucket what was acknowledged and what was reported as persisted."""

    def __init__(self):
        self.keys = {}
        self._lock = threading.Lock()
        self._acknowledged = {}
        self._persisted = {}

    def acknowledge(self, seqnos):
        """Notes {vbucket: seqno} of acknowledged mutations."""
        self._raise(self._acknowledged, seqnos)

    def report_persisted(self, seqnos):
        """Notes {vbucket: seqno} that the node reported as persisted."""
        self._raise(self._persisted, seqnos)

    def _raise(self, marks, seqnos):
        with self._lock:
            for vbucket, seqno in seqnos.items():
                if seqno > marks.get(vbucket, 0):
                    marks[vbucket] = seqno

    def acknowledged(self):
        """A copy of {vbucket: highest acknowledged seqno}."""
        with self._lock:
            return dict(self._acknowledged)

    def persisted(self):
        """A copy of {vbucket: highest seqno that was reported as persisted}."""
        with self._lock:
            return dict(self._persisted)

    def rebase(self, states, high_seqnos):
        """Begins anew with what a started node holds; all of that is on disk."""
        for key, state in states.items():
            self.keys[key].rebase(state, high_seqnos[self.keys[key].vbucket])
        with self._lock:
            self._acknowledged = {}
            self._persisted = {}
