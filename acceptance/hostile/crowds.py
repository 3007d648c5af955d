"""Many connections that say next to nothing."""

import os
import resource

from attack import Attack, crowd_size, keep_open, member, stranger
from mcbp import HEADER, SET

MIB = 1 << 20
VALUE_BYTES = 20 * MIB
HALF_REQUESTS = 600
IDLE = 3000
DESCRIPTORS = 1024
# What the node may open beyond what it has when its descriptors are taken away.
DESCRIPTORS_LEFT = 100


def half_requests(node, stop):
    """The beginning of a large SET, from members and on the port that needs no login."""
    key, extras = b"half", bytes(8)
    size = len(key) + len(extras) + VALUE_BYTES
    begin = HEADER.pack(0x80, SET, len(key), len(extras), 0, 0, size, 0, 0) + extras + key + b"few"

    def begun(opened):
        opened.send(begin)
        return opened

    openers = [lambda: begun(member(node)), lambda: begun(stranger(node.memcached_port))]
    return keep_open(openers, HALF_REQUESTS, stop, lambda opened: opened.send(b"x"))


def idle(node, stop):
    """Connections without a word."""
    openers = [lambda: stranger(node.port), lambda: stranger(node.memcached_port)]
    return keep_open(openers, crowd_size(IDLE), stop)


def idle_strangers(node, stop):
    """Connections without a word where everybody says who they are."""
    return keep_open([lambda: stranger(node.port)], crowd_size(IDLE), stop)


def idle_without_descriptors(node, stop):
    """The same when the node cannot accept them: its limit is lowered behind its back."""
    pid = node.process.pid
    used = max(map(int, os.listdir(f"/proc/{pid}/fd")))
    most = resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + DESCRIPTORS_LEFT, most))
    return idle(node, stop)


ATTACKS = [
    Attack("half-requests", half_requests, flags=("--memcached-port", "0")),
    Attack("idle-connections", idle, flags=("--memcached-port", "0"), descriptors=DESCRIPTORS),
    Attack("idle-strangers", idle_strangers, descriptors=DESCRIPTORS, lets_newcomers_in=True),
    Attack("idle-connections-beyond-all-descriptors", idle_without_descriptors,
           flags=("--memcached-port", "0"), administrator_seconds=None,
           log_lines=("too many open files",), stops_writes=True),
]
