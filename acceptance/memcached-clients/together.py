"""Cases: text and binary clients on one port, and what stays of what they store."""

from contextlib import closing

import bmemcached
from pymemcache import Client

from cases import expect, expect_equal
from node import HOST

KEY_COUNT = 1000


def declare(cases):
    """In the order of running."""
    for function in (text_and_binary_share_a_port, values_survive_a_restart):
        cases.case(function)


def client_of(node):
    """A client that speaks lines."""
    return Client((HOST, node.memcached_port), default_noreply=False, timeout=20)


def text_and_binary_share_a_port(node):
    binary = bmemcached.Client((f"{HOST}:{node.memcached_port}",))
    with closing(client_of(node)) as text:
        for number in range(100):
            binary.set(f"both-{number}", "by frames")
            expect_equal(text.get(f"both-{number}"), b"by frames", "what the one stores")
            text.set(f"both-{number}", b"17")
            expect(binary.incr(f"both-{number}", 3), "what the other has stored is counted")
            expect_equal(text.get(f"both-{number}"), b"20", "and read again")
    binary.disconnect_all()


def values_survive_a_restart(node):
    values = {f"kept-{number}": str(number).encode() for number in range(KEY_COUNT)}
    with closing(client_of(node)) as client:
        expect_equal(client.set_many(values), [], "keys that failed")
        client.set("kept-brief", b"x", expire=100)
        client.delete("kept-0")
    del values["kept-0"]
    node.restart()
    with closing(client_of(node)) as client:
        expect_equal(client.get_many(["kept-0", *values]), values, "values after the restart")
        expect_equal(client.raw_command(b"mg kept-brief t").split(b" ")[0], b"HD", "expiry is kept")
        expect_equal(client.incr("kept-1", 1), 2, "a counter goes on")
