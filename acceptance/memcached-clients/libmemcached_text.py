"""Cases: pylibmc, a client of libmemcached, in its text mode."""

import libmemcached
from cases import expect, expect_equal, wait_until


def declare(cases):
    """In the order of running."""
    for function in (pylibmc_text_documents, pylibmc_text_cas, pylibmc_text_counters,
                     pylibmc_text_expiry, pylibmc_text_many_keys, pylibmc_text_buffered):
        cases.case(function)


def client_of(node, **behaviors):
    """A client that speaks lines."""
    return libmemcached.client_of(node, binary=False, **behaviors)


def pylibmc_text_documents(node):
    client = client_of(node)
    libmemcached.documents(client, "plt")
    large = b"x" * (5 << 20)
    expect(client.set("plt-large", large), "set of a large value")
    expect(client.get("plt-large") == large, "the large value")


def pylibmc_text_cas(node):
    client = client_of(node, cas=True)
    client.set("plt-cas", "one")
    value, cas = client.gets("plt-cas")
    expect_equal(value, "one", "value of gets")
    expect(client.cas("plt-cas", "two", cas), "cas with the right version")
    expect(not client.cas("plt-cas", "three", cas), "cas with an old version")
    expect_equal(client.get("plt-cas"), "two", "value after both")


def pylibmc_text_counters(node):
    libmemcached.counters(client_of(node), "plt-count")


def pylibmc_text_expiry(node):
    libmemcached.expiry(client_of(node), "plt")


def pylibmc_text_many_keys(node):
    client = client_of(node)
    values = {f"plt-{number}": number for number in range(5000)}
    expect_equal(client.set_multi(values), [], "keys that failed")
    expect_equal(client.get_multi([*values, "plt-none"]), values, "values of get_multi")
    expect(client.delete_multi(list(values)), "delete_multi")
    expect_equal(client.get_multi(list(values)), {}, "values after delete_multi")


def pylibmc_text_buffered(node):
    client = client_of(node, no_block=True, tcp_nodelay=True, _noreply=True)
    for number in range(1000):
        client.set(f"plt-buffered-{number}", number)
    reader = client_of(node)
    wait_until(lambda: reader.get("plt-buffered-999") == 999, 5, "the last one is stored")
    expect_equal([reader.get(f"plt-buffered-{number}") for number in range(1000)],
                 list(range(1000)), "values without replies")
