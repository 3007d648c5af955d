"""What pylibmc, a client of libmemcached, sees in either of its protocols. Keys begin with the name
of the case, so that cases do not meet."""

import pylibmc

from cases import expect, expect_equal, expect_error, wait_until
from node import HOST


def client_of(node, binary, **behaviors):
    """A client of the memcached port that speaks frames or lines."""
    return pylibmc.Client([f"{HOST}:{node.memcached_port}"], binary=binary, behaviors=behaviors)


def documents(client, name):
    """Each way to store, and deletions."""
    client.delete(name)
    expect(client.add(name, "one"), "add of a new key")
    expect(not client.add(name, "two"), "add of a present key")
    expect(client.replace(name, "two"), "replace of a present key")
    expect_equal(client.get(name), "two", "value after replace")
    expect(client.append(name, "!"), "append")
    expect(client.prepend(name, "?"), "prepend")
    expect_equal(client.get(name), "?two!", "value after append and prepend")
    values = {f"{name}-1": 1, f"{name}-2": {"a": 2}}
    expect_equal(client.set_multi(values), [], "keys that failed")
    expect_equal(client.get_multi([*values, f"{name}-3"]), values, "values of get_multi")
    expect(client.delete(name), "delete of a present key")
    expect(not client.delete(name), "delete of a missing key")
    expect_equal(client.get(name), None, "value after delete")


def counters(client, name):
    """A counter does not fall below 0, and is not made by counting."""
    client.set(name, 10)
    expect_equal(client.incr(name), 11, "after + 1")
    expect_equal(client.decr(name, 20), 0, "floor")
    client.delete(name)
    expect_error(pylibmc.NotFound, client.incr, name)


def expiry(client, name):
    """What is touched lives on."""
    brief, touched = f"{name}-brief", f"{name}-touched"
    client.set(brief, "x", time=1)
    client.set(touched, "x", time=1)
    expect(client.touch(touched, 100), "touch of a present key")
    wait_until(lambda: client.get(brief) is None, 4, "the document expires")
    expect_equal(client.get(touched), "x", "value of the touched document")
