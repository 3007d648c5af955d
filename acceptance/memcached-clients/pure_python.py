"""Cases: pymemcache."""

import time
from contextlib import closing

from pymemcache import Client, serde
from pymemcache.exceptions import (
    MemcacheClientError, MemcacheServerError, MemcacheUnknownCommandError)

from cases import expect, expect_equal, expect_error, wait_until
from node import HOST

MIB = 1 << 20


def declare(cases):
    """In the order of running."""
    for function in (pymemcache_documents, pymemcache_cas, pymemcache_counters, pymemcache_expiry,
                     pymemcache_touches, pymemcache_without_replies, pymemcache_many_keys,
                     pymemcache_large_values, pymemcache_python_values, pymemcache_statistics,
                     pymemcache_errors, pymemcache_flush):
        cases.case(function)


def client_of(node, **options):
    """A client that waits for each answer."""
    options.setdefault("default_noreply", False)
    return Client((HOST, node.memcached_port), timeout=20, **options)


def pymemcache_documents(node):
    with closing(client_of(node)) as client:
        client.delete("pm")
        expect(client.add("pm", b"one"), "add of a new key")
        expect(not client.add("pm", b"two"), "add of a present key")
        expect(client.replace("pm", b"two"), "replace of a present key")
        expect(not client.replace("pm-none", b"x"), "replace of a missing key")
        expect(client.append("pm", b"!"), "append")
        expect(client.prepend("pm", b"?"), "prepend")
        expect_equal(client.get("pm"), b"?two!", "value after append and prepend")
        expect(client.set("pm-empty", b""), "an empty value is stored")
        expect_equal(client.get("pm-empty"), b"", "the empty value")
        value = bytes(range(256)) * 8 + b"\r\nEND\r\n"
        expect(client.set("pm-bytes", value), "any bytes are stored")
        expect_equal(client.get("pm-bytes"), value, "any bytes")
        expect(client.delete("pm"), "delete of a present key")
        expect(not client.delete("pm"), "delete of a missing key")
        expect_equal(client.get("pm"), None, "value after delete")


def pymemcache_cas(node):
    with closing(client_of(node)) as client:
        client.delete("pm-cas")
        expect_equal(client.cas("pm-cas", b"x", b"1"), None, "cas of a missing key")
        client.set("pm-cas", b"one")
        value, cas = client.gets("pm-cas")
        expect_equal(value, b"one", "value of gets")
        expect(client.cas("pm-cas", b"two", cas), "cas with the right version")
        expect_equal(client.cas("pm-cas", b"three", cas), False, "cas with an old version")
        expect_equal(client.get("pm-cas"), b"two", "value after both")


def pymemcache_counters(node):
    with closing(client_of(node)) as client:
        client.delete("pm-count")
        expect_equal(client.incr("pm-count", 1), None, "incr of a missing key")
        client.set("pm-count", b"10")
        expect_equal(client.incr("pm-count", 5), 15, "after + 5")
        expect_equal(client.decr("pm-count", 20), 0, "floor")
        client.set("pm-count", str(2**64 - 1).encode())
        expect_equal(client.incr("pm-count", 2), 1, "wrapped at 64 bits")


def pymemcache_expiry(node):
    with closing(client_of(node)) as client:
        client.set("pm-brief", b"x", expire=1)
        client.set("pm-long", b"x", expire=100)
        client.set("pm-absolute", b"x", expire=int(time.time()) + 100)
        client.set("pm-over", b"x", expire=-1)
        expect_equal(client.get("pm-over"), None, "a value that was over at once")
        wait_until(lambda: client.get("pm-brief") is None, 4, "the value expires")
        expect_equal(client.get_many(["pm-long", "pm-absolute"]),
                     {"pm-long": b"x", "pm-absolute": b"x"}, "values that are not over")


def pymemcache_touches(node):
    with closing(client_of(node)) as client:
        client.set("pm-touched", b"x", expire=1)
        client.set("pm-got", b"y", expire=1)
        expect(client.touch("pm-touched", 100), "touch of a present key")
        expect(not client.touch("pm-none", 100), "touch of a missing key")
        expect_equal(client.raw_command(b"gat 100 pm-got pm-none", b"END\r\n").split(),
                     [b"VALUE", b"pm-got", b"0", b"1", b"y"], "gat")
        time.sleep(2.5)
        expect_equal(client.get_many(["pm-touched", "pm-got"]),
                     {"pm-touched": b"x", "pm-got": b"y"}, "values with more time")


def pymemcache_without_replies(node):
    with closing(client_of(node, default_noreply=True)) as client:
        for number in range(2000):
            client.set(f"pm-quiet-{number}", b"0")
            client.incr(f"pm-quiet-{number}", number, noreply=True)
        keys = [f"pm-quiet-{number}" for number in range(2000)]
        expect_equal(client.get_many(keys),
                     {key: str(number).encode() for number, key in enumerate(keys)}, "values")
        client.delete_many(keys)
        expect_equal(client.get_many(keys), {}, "values after delete_many")


def pymemcache_many_keys(node):
    with closing(client_of(node)) as client:
        values = {f"pm-many-{number}": str(number).encode() for number in range(20_000)}
        expect_equal(client.set_many(values), [], "keys that failed")
        keys = [*values, "pm-none"]
        expect_equal(client.get_many(keys), values, "values of one get")
        found = client.gets_many(keys)
        expect_equal({key: value for key, (value, _) in found.items()}, values, "values of gets")
        expect_equal(len({cas for _, cas in found.values()}), len(values), "versions")


def pymemcache_large_values(node):
    with closing(client_of(node)) as client:
        for size in (4095, 4096, 32 << 10, 64 << 10, MIB, 20 * MIB):
            value = bytes([size % 251]) * size
            expect(client.set("pm-large", value), f"{size} bytes are stored")
            expect(client.get("pm-large") == value, f"{size} bytes come back")
        error = expect_error(MemcacheServerError, client.set, "pm-larger", b"x" * (20 * MIB + 1))
        expect("too large" in str(error), f"the reason is told: {error}")
        expect(client.get("pm-larger") is None, "what is too large is not stored")


def pymemcache_python_values(node):
    with closing(client_of(node, serde=serde.pickle_serde)) as client:
        for value in ("text", 17, {"a": [1, 2]}, b"bytes"):
            expect(client.set("pm-python", value), "the value is stored")
            expect_equal(client.get("pm-python"), value, "flags tell the type")


def pymemcache_statistics(node):
    with closing(client_of(node)) as client:
        before = client.stats()
        client.set("pm-counted", b"x")
        client.get("pm-counted")
        after = client.stats()
        for name in (b"cmd_get", b"cmd_set", b"get_hits"):
            expect(int(after[name]) > int(before[name]), f"{name} rises")
        expect(client.stats("items"), "the group `items`")
        expect(client.stats("vbucket-details"), "a group of the bucket")
        expect(client.version(), "a version")


def pymemcache_errors(node):
    with closing(client_of(node)) as client:
        expect_error(MemcacheUnknownCommandError, client.cache_memlimit, 100)
        client.set("pm-word", b"two")
        expect_error(MemcacheClientError, client.incr, "pm-word", 1)
        expect_equal(client.get("pm-word"), b"two", "the connection goes on")


def pymemcache_flush(node):
    with closing(client_of(node)) as client:
        client.set("pm-flushed", b"x")
        expect(client.flush_all(), "flush_all")
        expect_equal(client.get("pm-flushed"), None, "value after flush_all")
