"""What attacks share: their rows, and connections that behave as no client should."""

import collections
import resource
import socket
import struct
import time
from dataclasses import dataclass
from typing import Callable, Optional

from mcbp import Connection, open_bucket
from node import HOST

CONNECT_SECONDS = 5
# What the attacker needs beside its connections.
SPARE_DESCRIPTORS = 200
IDLE_SECONDS = 0.01


@dataclass(frozen=True)
class Attack:
    """A row of the table of attacks."""

    name: str
    # Gets the node and an event; returns what is printed of it.
    attacker: Callable
    # How long the administrator may wait meanwhile; nothing if nobody asks.
    administrator_seconds: Optional[float] = 5
    flags: tuple = ()
    # The node's limit on descriptors.
    descriptors: Optional[int] = None
    # Gets the node before anybody measures.
    prepare: Optional[Callable] = None
    # Lines of the node's log that it rightly causes.
    log_lines: tuple = ()
    # Whether it takes what writes need, descriptors or memory: the normal client reads only, and
    # writes are taken again when it is over.
    stops_writes: bool = False
    # What large documents that come and go leave with the allocator for up to ten seconds.
    resident_slack_bytes: int = 0
    # Whether everybody who comes meanwhile is let in.
    lets_newcomers_in: bool = False


def stranger(port):
    """A socket that never waits, of somebody who has not logged in. Nothing stays behind of it."""
    opened = socket.create_connection((HOST, port), timeout=CONNECT_SECONDS)
    return prepared(opened)


def member(node, features=()):
    """A socket that never waits, of somebody who has logged in."""
    return prepared(open_bucket(node, features=features).detach())


def prepared(opened):
    """The socket, with no delays and an end that takes no port for a minute."""
    opened.setblocking(False)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return opened


def crowd_size(wanted):
    """As many connections as are wanted, or as this process may have."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return min(wanted, most - SPARE_DESCRIPTORS)


class Endless:
    """A connection that sends the same bytes again and again and never reads."""

    def __init__(self, opened, frames):
        self._socket, self._frames, self._rest = opened, memoryview(frames), b""
        self.sent = 0

    def push(self):
        """Sends what the system takes at once; whether it took anything."""
        try:
            size = self._socket.send(self._rest or self._frames)
        except BlockingIOError:
            return False
        self._rest = (self._rest or self._frames)[size:]
        self.sent += not self._rest
        return True

    def close(self):
        """Closes the socket."""
        self._socket.close()


def push_all(openers, stop):
    """Connections that are made by these functions push until the event; who is thrown out comes
    again."""
    endless = [open_one() for open_one in openers]
    counts = collections.Counter(connections=len(endless))
    while not stop.is_set():
        moved = False
        for index, one in enumerate(endless):
            try:
                moved |= one.push()
            except OSError:
                counts["thrown out"] += 1
                counts["sent"] += one.sent
                one.close()
                again = try_to(openers[index])
                endless[index] = again or one
        if not moved:
            time.sleep(IDLE_SECONDS)
    counts["sent"] += sum(one.sent for one in endless)
    return dict(counts)


def try_to(open_one):
    """What the function opens, or nothing when the node does not want it."""
    try:
        return open_one()
    except Exception:  # refused, closed, or too late: all of it is the node's right
        return None


class Crowd:
    """Connections to ports in turn, of which the oldest is closed when there are too many."""

    def __init__(self, size):
        self._sockets = collections.deque()
        self._size = size
        self.counts = collections.Counter()

    def send(self, port, frames):
        """One more connection, which sends these bytes."""
        if len(self._sockets) == self._size:
            self._sockets.popleft().close()
        try:
            opened = stranger(port)
        except OSError:
            self.counts["refused"] += 1
            time.sleep(IDLE_SECONDS)
            return
        self.counts["connections"] += 1
        self._sockets.append(opened)
        try:
            opened.send(frames)
        except OSError:
            self.counts["closed early"] += 1


def keep_open(openers, size, stop, pulse=lambda opened: None, seconds=1.0):
    """Keeps so many connections open, made by these functions in turn, and has each send its pulse
    now and then; who is thrown out comes again."""
    kept, counts = [], collections.Counter()
    due = 0.0
    while not stop.is_set():
        if len(kept) < size:
            opened = try_to(openers[len(kept) % len(openers)])
            if opened is None:
                counts["refused"] += 1
                time.sleep(IDLE_SECONDS)
            else:
                counts["opened"] += 1
                kept.append(opened)
        else:
            time.sleep(IDLE_SECONDS)
        if time.monotonic() >= due:
            due = time.monotonic() + seconds
            stay = [opened for opened in kept if is_open(opened) and has_sent(opened, pulse)]
            counts["thrown out"] += len(kept) - len(stay)
            for gone in set(kept) - set(stay):
                gone.close()
            kept = stay
            counts["most at a time"] = max(counts["most at a time"], len(kept))
    return dict(counts)


def is_open(opened):
    """Whether the node has not closed the connection; what it said is read."""
    try:
        return bool(opened.recv(1 << 16))
    except BlockingIOError:
        return True
    except OSError:
        return False


def has_sent(opened, pulse):
    """Whether the connection could still send its pulse."""
    try:
        pulse(opened)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return True


def newcomer(node, seconds):
    """A connection of a normal client that has just come."""
    connection = Connection(HOST, node.port, seconds)
    return connection.open_bucket(node.user, node.password, "default")
