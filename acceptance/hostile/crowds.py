"""Many connections that say next to nothing."""

import os
import resource

from attack import Attack, crowd_size, keep_open, member, stranger
from cases import expect
from mcbp import HEADER, SET, open_bucket

MIB = 1 << 20
VALUE_BYTES = 20 * MIB
HALF_REQUESTS = 600
IDLE = 3000
DESCRIPTORS = 1024
STRANGERS_OF_ADDRESS = 200
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


def strangers_of_one_address(node, stop):
    """The same where there are far fewer than there may be connections: the oldest go."""
    with open_bucket(node) as member_before:
        report = idle_strangers(node, stop)
        counted = member_before.statistics("connections")
    expect(int(counted["strangers"]) <= STRANGERS_OF_ADDRESS, f"{counted['strangers']} strangers")
    expect(int(counted["crowded_connections"]) > 0, "nobody went because of the address")
    return report


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
    Attack("idle-strangers-of-one-address", strangers_of_one_address,
           flags=("--strangers-of-address-max", str(STRANGERS_OF_ADDRESS)),
           lets_newcomers_in=True),
    Attack("idle-connections-beyond-all-descriptors", idle_without_descriptors,
           flags=("--memcached-port", "0"), administrator_seconds=None,
           log_lines=("too many open files",), stops_writes=True),
]
