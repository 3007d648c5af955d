"""Cases: data structures, which the SDK makes of documents and their parts."""

from cases import expect, expect_equal


def declare(cases):
    """In the order of running."""
    for function in (lists, maps, queues, sets):
        cases.case(function)


def lists(sdk):
    elements = sdk.collection.couchbase_list(sdk.key())
    elements.append("b")
    elements.append("c")
    elements.prepend("a")
    expect_equal(list(elements.get_all()), ["a", "b", "c"], "elements")
    expect_equal((elements.get_at(1), elements.index_of("c"), elements.size()), ("b", 2, 3),
                 "element, index, size")
    elements.remove_at(0)
    elements.set_at(0, "x")
    expect_equal(list(elements.get_all()), ["x", "c"], "elements")


def maps(sdk):
    entries = sdk.collection.couchbase_map(sdk.key())
    entries.add("a", 1)
    entries.add("b", {"n": 2})
    expect_equal((entries.get("b"), entries.size(), entries.exists("c")), ({"n": 2}, 2, False),
                 "entry, size, existence")
    entries.remove("a")
    expect_equal(list(entries.keys()), ["b"], "keys")
    expect_equal(list(entries.values()), [{"n": 2}], "values")


def queues(sdk):
    queue = sdk.collection.couchbase_queue(sdk.key())
    for element in ("first", "second", "third"):
        queue.push(element)
    expect_equal((queue.pop(), queue.pop(), queue.size()), ("first", "second", 1), "in their order")


def sets(sdk):
    elements = sdk.collection.couchbase_set(sdk.key())
    elements.add("a")
    elements.add("a")
    elements.add("b")
    expect_equal(elements.size(), 2, "size")
    expect(elements.contains("b"), "contained")
    elements.remove("a")
    expect_equal(list(elements.values()), ["b"], "elements")
