"""Cases: clients that know nothing of buckets, with and without authentication."""

import bmemcached
import libmemcached
from bmemcached.exceptions import MemcachedException
from cases import expect, expect_equal, expect_error
from node import HOST


def declare(cases):
    """In the order of running."""
    for function in (bmemcached_without_authentication, bmemcached_with_plain,
                     bmemcached_with_wrong_password, pylibmc_documents, pylibmc_counters,
                     pylibmc_expiry, ports_share_the_bucket):
        cases.case(function)


def bmemcached_client(port, **options):
    """A client of python-binary-memcached."""
    return bmemcached.Client((f"{HOST}:{port}",), **options)


def bmemcached_without_authentication(node):
    bmemcached_round_trip(bmemcached_client(node.memcached_port))


def bmemcached_with_plain(node):
    bmemcached_round_trip(bmemcached_client(node.port, username=node.user, password=node.password))


def bmemcached_round_trip(client):
    """Stores, reads, compares and swaps, counts, removes."""
    client.delete("bm")
    expect(client.add("bm", "one"), "add of a new key")
    expect(not client.add("bm", "two"), "add of a present key")
    expect_equal(client.get("bm"), "one", "value after add")
    expect(client.replace("bm", "two"), "replace of a present key")
    value, cas = client.gets("bm")
    expect_equal(value, "two", "value after replace")
    expect(client.cas("bm", "three", cas), "cas with the right CAS")
    expect(not client.cas("bm", "four", cas), "cas with a stale CAS")
    client.set_multi({"bm-1": "x", "bm-2": "y"})
    expect_equal(client.get_multi(["bm-1", "bm-2", "bm-3"]), {"bm-1": "x", "bm-2": "y"},
                 "values of get_multi")
    expect(client.delete("bm"), "delete of a present key")
    expect_equal(client.get("bm"), None, "value after delete")
    client.delete("bm-count")
    expect_equal([client.incr("bm-count", 5), client.incr("bm-count", 5)], [0, 5], "counter")
    expect(client.stats(), "there are statistics")
    client.disconnect_all()


def bmemcached_with_wrong_password(node):
    client = bmemcached_client(node.port, username=node.user, password="wrong")
    expect_error(MemcachedException, client.set, "k", "v")


def pylibmc_documents(node):
    libmemcached.documents(libmemcached.client_of(node, binary=True), "pl")


def pylibmc_counters(node):
    libmemcached.counters(libmemcached.client_of(node, binary=True), "pl-count")


def pylibmc_expiry(node):
    libmemcached.expiry(libmemcached.client_of(node, binary=True), "pl")


def ports_share_the_bucket(node):
    data = bmemcached_client(node.port, username=node.user, password=node.password)
    classic = bmemcached_client(node.memcached_port)
    data.set("shared", "by both")
    expect_equal(classic.get("shared"), "by both", "value read on the other port")
