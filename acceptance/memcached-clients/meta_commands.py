"""Cases: meta-memcache, a client of the meta commands alone; and what it has no words for.

It keeps versions in 32 bits, so a bucket's, of 64, are shown to pymemcache instead.
"""

from contextlib import closing

from meta_memcache import CacheClient, Key, ServerAddress, SetMode, connection_pool_factory_builder
from meta_memcache.configuration import LeasePolicy, RecachePolicy, StalePolicy
from meta_memcache.protocol import RequestFlags
from pymemcache import Client

from cases import expect, expect_equal
from node import HOST

LEASE = LeasePolicy(ttl=30, miss_retries=1, miss_retry_wait=0.01)
RECACHE = RecachePolicy(ttl=30)


def declare(cases):
    """In the order of running."""
    for function in (meta_documents, meta_modes, meta_cas, meta_counters, meta_times,
                     meta_binary_keys, meta_many_keys, meta_leases, meta_recaching, meta_stale,
                     meta_without_replies):
        cases.case(function)


def client_of(node):
    """A client of one server."""
    return CacheClient.cache_client_from_servers(
        servers=[ServerAddress(host=HOST, port=node.memcached_port)],
        connection_pool_factory_fn=connection_pool_factory_builder(recv_timeout=20))


def meta_documents(node):
    client = client_of(node)
    for value in (b"bytes", "text", 17, {"a": [1, 2]}, b"", b"x" * (5 << 20)):
        expect(client.set("meta", value, ttl=100), "the value is stored")
        expect(client.get("meta") == value, "the value comes back")
    expect(client.delete("meta"), "delete of a present key")
    expect(not client.delete("meta"), "delete of a missing key")
    expect_equal(client.get("meta"), None, "value after delete")


def meta_modes(node):
    client = client_of(node)
    client.delete("meta-mode")
    modes = [(SetMode.REPLACE, b"x", False), (SetMode.APPEND, b"x", False),
             (SetMode.ADD, b"b", True), (SetMode.ADD, b"x", False), (SetMode.APPEND, b"c", True),
             (SetMode.PREPEND, b"a", True)]
    for mode, value, is_stored in modes:
        expect_equal(client.set("meta-mode", value, ttl=0, set_mode=mode), is_stored, mode.name)
    expect_equal(client.get("meta-mode"), b"abc", "value after all modes")
    expect(client.set("meta-mode", b"z", ttl=0, set_mode=SetMode.REPLACE), "replace")


def meta_cas(node):
    with closing(Client((HOST, node.memcached_port), timeout=20)) as client:
        written = client.raw_command(b"ms meta-cas 3 c\r\none").split(b" c")[1]
        read = client.raw_command(b"mg meta-cas c").split(b" c")[1]
        expect_equal(read, written, "the version that was written")
        asked = [b"ms meta-cas 3 C%s\r\ntwo", b"ms meta-cas 5 C%s\r\nthree", b"md meta-cas C%s",
                 b"ma meta-cas C%s"]
        outcomes = [client.raw_command(command % read) for command in asked]
        expect_equal(outcomes, [b"HD", b"EX", b"EX", b"EX"], "with a version that gets old")
        read = client.raw_command(b"mg meta-cas c").split(b" c")[1]
        expect_equal(client.raw_command(b"md meta-cas C%s" % read), b"HD", "the right version")


def meta_counters(node):
    client = client_of(node)
    client.delete("meta-count")
    expect_equal(client.delta_and_get("meta-count", 5), None, "a missing counter")
    numbers = [client.delta_initialize_and_get("meta-count", 5, initial_value=10, initial_ttl=60)
               for _ in range(2)]
    expect_equal(numbers, [10, 15], "a counter that is made, and counted")
    expect_equal(client.delta_and_get("meta-count", -20), 0, "floor")
    expect(client.delta("meta-count", 7), "a change without a value")
    expect_equal(client.get("meta-count"), "7", "the number as a value")


def meta_times(node):
    client = client_of(node)
    client.set("meta-time", "x", ttl=1)
    expect(client.touch("meta-time", ttl=100), "touch")
    expect_equal(client.get("meta-time", touch_ttl=1000), "x", "get and touch")
    expect(not client.touch("meta-none", ttl=100), "touch of a missing key")


def meta_binary_keys(node):
    client = client_of(node)
    for key in (Key("a key with blanks"), Key("schlüssel"), Key("l" * 300)):
        expect(client.set(key, "value", ttl=100), "the value is stored")
        expect_equal(client.get(key), "value", "the value comes back")


def meta_many_keys(node):
    client = client_of(node)
    keys = [f"meta-many-{number}" for number in range(5000)]
    for key in keys:
        client.set(key, key, ttl=100, no_reply=True)
    wanted = {Key(key): key for key in keys}
    found = client.multi_get([Key(key) for key in keys] + [Key("meta-none")])
    expect_equal(found.pop(Key("meta-none")), None, "a missing key")
    expect_equal(found, wanted, "values of multi_get")


def meta_leases(node):
    winner, other = client_of(node), client_of(node)
    winner.delete("meta-lease")
    expect_equal(winner.get_or_lease("meta-lease", LEASE), None, "the first who misses")
    won = winner.meta_get(Key("meta-lease"), RequestFlags(vivify_on_miss_ttl=30)).flags.win
    expect_equal(won, False, "nobody else is to make the value")
    expect_equal(other.get_or_lease("meta-lease", LEASE), None, "it is not made yet")
    expect(winner.set("meta-lease", "made", ttl=100), "the winner stores")
    expect_equal(other.get_or_lease("meta-lease", LEASE), "made", "all read it")


def meta_recaching(node):
    first, second = client_of(node), client_of(node)
    first.set("meta-fresh", "old", ttl=20)
    won = [client.get("meta-fresh", recache_policy=RECACHE) for client in (first, second)]
    expect_equal(won, [None, "old"], "one client makes it anew, the other takes what is there")
    first.set("meta-fresh", "new", ttl=100)
    expect_equal(second.get("meta-fresh", recache_policy=RECACHE), "new", "the new value")


def meta_stale(node):
    client = client_of(node)
    client.set("meta-stale", "old", ttl=100)
    policy = StalePolicy(mark_stale_on_deletion_ttl=30)
    expect(client.invalidate("meta-stale", stale_policy=policy), "it is marked")
    read = [client.get("meta-stale") for _ in range(2)]
    expect_equal(read, [None, "old"], "one reader makes it anew, the next takes the stale value")
    client.set("meta-stale", "new", ttl=100)
    expect_equal(client.get("meta-stale"), "new", "the new value")


def meta_without_replies(node):
    client = client_of(node)
    for number in range(1000):
        client.set("meta-quiet", number, ttl=100, no_reply=True)
    expect_equal(client.get("meta-quiet"), 999, "the last value")
    client.delete("meta-quiet", no_reply=True)
    client.delete("meta-quiet", no_reply=True)
    expect_equal(client.get("meta-quiet"), None, "value after delete")
