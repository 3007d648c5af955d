"""Cases: parts of documents, their attributes, and transactions, which are made of those."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import couchbase.subdocument as SD
from bucket_kinds import node_of_its_own
from cases import expect, expect_equal, expect_error, wait_until
from couchbase.durability import DurabilityLevel, ServerDurability
from couchbase.exceptions import (CasMismatchException, CouchbaseException, DeltaInvalidException,
                                  DocumentExistsException, DocumentLockedException,
                                  DocumentNotFoundException, DocumentNotJsonException,
                                  PathExistsException, PathInvalidException,
                                  PathMismatchException, PathNotFoundException,
                                  PathTooDeepException, TransactionFailed)
from couchbase.options import GetOptions, MutateInOptions, UpsertOptions
from couchbase.transcoder import RawBinaryTranscoder

PARALLEL = 16
INCREMENTS = 25
DOCUMENT = {"name": "Ann", "scores": [3, 5], "address": {"city": "Ulm", "lines": [1, 2, 3]}}


def cases_of_paths():
    """In the order of running."""
    return (paths_are_looked_up, paths_that_are_not_there, paths_are_changed, arrays_are_changed,
            counters_in_documents, parents_are_created, documents_are_created_by_paths,
            paths_change_together_or_not_at_all, paths_need_json, paths_with_cas_and_locks,
            paths_and_expiry, attributes_are_beside_the_body, attributes_of_the_server,
            macros_name_the_change, paths_are_changed_durably, parallel_changes_of_one_document,
            transactions_commit_and_roll_back, transactions_insert_what_was_rolled_back)


def declare(cases):
    """Each on the suite's node, and all on nodes with one and with four front-end threads."""
    for function in cases_of_paths():
        cases.case(function)
    cases.case(attributes_survive_a_restart)
    for count, threads in (("one-thread", 1), ("four-threads", 4)):
        cases.add(f"sub-documents-with-{count}",
                  lambda _, count=count, threads=threads: all_with_threads(count, threads))


def all_with_threads(count, threads):
    """All cases on a node of their own."""
    with node_of_its_own(f"paths-{count}", f"--threads={threads}") as sdk:
        for function in cases_of_paths():
            function(sdk)


def mutate(sdk, key, *specs, **options):
    """Changes a document."""
    return sdk.collection.mutate_in(key, specs, MutateInOptions(**options))


def look(sdk, key, path, kind=dict, **options):
    """What is at one path."""
    return sdk.collection.lookup_in(key, [SD.get(path, **options)]).content_as[kind](0)


def paths_are_looked_up(sdk):
    key, stored = sdk.stored(DOCUMENT)
    found = sdk.collection.lookup_in(key, [
        SD.get("name"), SD.get("address.lines[-1]"), SD.exists("scores"), SD.count("scores"),
        SD.get_full()])
    expect_equal(found.cas, stored.cas, "CAS")
    expect_equal(found.content_as[str](0), "Ann", "text")
    expect_equal(found.content_as[int](1), 3, "last element")
    expect(found.exists(2), "there is such a path")
    expect_equal(found.content_as[int](3), 2, "count")
    expect_equal(found.content_as[dict](4), DOCUMENT, "the whole document")
    projected = sdk.collection.get(key, GetOptions(project=["name", "address.city"]))
    expect_equal(projected.content_as[dict], {"name": "Ann", "address": {"city": "Ulm"}}, "part")


def paths_that_are_not_there(sdk):
    key, _ = sdk.stored(DOCUMENT)
    found = sdk.collection.lookup_in(key, [
        SD.get("none"), SD.get("name.first"), SD.get("name"), SD.exists("none")])
    expect_error(PathNotFoundException, found.content_as[str], 0)
    expect_error(PathMismatchException, found.content_as[str], 1)
    expect_equal(found.content_as[str](2), "Ann", "another path is answered")
    expect(not found.exists(3), "there is no such path")
    expect_error(DocumentNotFoundException, sdk.collection.lookup_in, sdk.key(), [SD.get("a")])
    found = sdk.collection.lookup_in(key, [SD.get("a..b")])
    expect_error(PathInvalidException, found.content_as[str], 0)


def paths_are_changed(sdk):
    key, stored = sdk.stored(DOCUMENT)
    changed = mutate(sdk, key, SD.upsert("name", "Eva"), SD.insert("born", 1980),
                     SD.replace("address.city", "Bonn"), SD.remove("scores"))
    expect(changed.cas > stored.cas, "the CAS grows")
    expect(changed.mutation_token() is not None, "there is a token")
    lines = DOCUMENT["address"]["lines"]
    expected = {"name": "Eva", "born": 1980, "address": {"city": "Bonn", "lines": lines}}
    expect_equal(sdk.get_json(key), expected, "value")
    expect_error(PathExistsException, mutate, sdk, key, SD.insert("born", 1))
    expect_error(PathNotFoundException, mutate, sdk, key, SD.replace("none", 1))
    expect_error(PathNotFoundException, mutate, sdk, key, SD.remove("none"))
    expect_error(PathMismatchException, mutate, sdk, key, SD.upsert("name.first", 1))
    expect_error(DocumentNotFoundException, mutate, sdk, sdk.key(), SD.upsert("a", 1))


def arrays_are_changed(sdk):
    key, _ = sdk.stored({"list": [2]})
    mutate(sdk, key, SD.array_append("list", 3, 4), SD.array_prepend("list", 1),
           SD.array_insert("list.[1]", 1.5), SD.array_addunique("list", 5))
    expect_equal(sdk.get_json(key)["list"], [1, 1.5, 2, 3, 4, 5], "list")
    expect_error(PathExistsException, mutate, sdk, key, SD.array_addunique("list", 5))
    expect_error(PathNotFoundException, mutate, sdk, key, SD.array_insert("list[9]", 5))


def counters_in_documents(sdk):
    key, _ = sdk.stored({"n": 5, "text": "a"})
    counted = mutate(sdk, key, SD.increment("n", 3), SD.decrement("m", 2))
    expect_equal(counted.content_as[int](0), 8, "counter")
    expect_equal(counted.content_as[int](1), -2, "new counter")
    expect_error(PathMismatchException, mutate, sdk, key, SD.increment("text", 1))
    expect_error((DeltaInvalidException, CouchbaseException), mutate, sdk, key,
                 SD.increment("n", 2 ** 63 - 1))
    expect_equal(sdk.get_json(key)["n"], 8, "value")


def parents_are_created(sdk):
    key, _ = sdk.stored({})
    expect_error(PathNotFoundException, mutate, sdk, key, SD.upsert("a.b.c", 1))
    mutate(sdk, key, SD.upsert("a.b.c", 1, create_parents=True))
    expect_equal(sdk.get_json(key), {"a": {"b": {"c": 1}}}, "value")
    deep = ".".join("abcdefghijklmnopqrstuvwxyz0123456789")
    expect_error((PathTooDeepException, CouchbaseException), mutate, sdk, key,
                 SD.upsert(deep, 1, create_parents=True))


def documents_are_created_by_paths(sdk):
    key, other = sdk.key(), sdk.key()
    mutate(sdk, key, SD.upsert("a", 1), store_semantics=SD.StoreSemantics.UPSERT)
    mutate(sdk, key, SD.upsert("b", 2), store_semantics=SD.StoreSemantics.UPSERT)
    expect_equal(sdk.get_json(key), {"a": 1, "b": 2}, "value")
    mutate(sdk, other, SD.insert("a", 1), store_semantics=SD.StoreSemantics.INSERT)
    expect_error(DocumentExistsException, mutate, sdk, other, SD.insert("b", 1),
                 store_semantics=SD.StoreSemantics.INSERT)
    expect_equal(sdk.get_json(other), {"a": 1}, "value")


def paths_change_together_or_not_at_all(sdk):
    key, stored = sdk.stored({"a": 1})
    expect_error(PathExistsException, mutate, sdk, key, SD.upsert("b", 2), SD.insert("a", 2),
                 SD.upsert("c", 3))
    found = sdk.collection.get(key)
    expect_equal(found.content_as[dict], {"a": 1}, "value")
    expect_equal(found.cas, stored.cas, "CAS")


def paths_need_json(sdk):
    key = sdk.key()
    sdk.collection.upsert(key, b"\x00\xff", UpsertOptions(transcoder=RawBinaryTranscoder()))
    found = sdk.collection.lookup_in(key, [SD.get("a")])
    expect_error(DocumentNotJsonException, found.content_as[str], 0)
    expect_error(DocumentNotJsonException, mutate, sdk, key, SD.upsert("a", 1))


def paths_with_cas_and_locks(sdk):
    key, stored = sdk.stored({"a": 1})
    expect_error(CasMismatchException, mutate, sdk, key, SD.upsert("a", 2), cas=stored.cas + 1)
    changed = mutate(sdk, key, SD.upsert("a", 2), cas=stored.cas)
    expect(changed.cas > stored.cas, "the CAS grows")
    lock = sdk.collection.get_and_lock(key, timedelta(seconds=15))
    expect_error((DocumentLockedException, CouchbaseException), mutate, sdk, key,
                 SD.upsert("a", 3), timeout=timedelta(seconds=1))
    mutate(sdk, key, SD.upsert("a", 4), cas=lock.cas)
    expect_equal(sdk.get_json(key), {"a": 4}, "value")


def paths_and_expiry(sdk):
    key, _ = sdk.stored({}, expiry=timedelta(seconds=60))
    mutate(sdk, key, SD.upsert("a", 1), preserve_expiry=True)
    kept = sdk.collection.get(key, GetOptions(with_expiry=True))
    expect(kept.expiry_time is not None, "the expiry is kept")
    mutate(sdk, key, SD.upsert("a", 2))
    removed = sdk.collection.get(key, GetOptions(with_expiry=True))
    expect(removed.expiry_time is None, f"without an expiry it lasts: {removed.expiry_time}")
    mutate(sdk, key, SD.upsert("a", 3), expiry=timedelta(seconds=1))
    wait_until(lambda: sdk.is_gone(key), 4, "it expires")


def attributes_are_beside_the_body(sdk):
    key, _ = sdk.stored({"a": 1})
    mutate(sdk, key, SD.upsert("meta.by", "me", xattr=True, create_parents=True),
           SD.upsert("_system", [1], xattr=True), SD.upsert("b", 2))
    expect_equal(sdk.get_json(key), {"a": 1, "b": 2}, "nobody sees them who does not ask")
    expect_equal(look(sdk, key, "meta.by", str, xattr=True), "me", "attribute")
    sdk.collection.replace(key, {"c": 3})
    expect_equal(look(sdk, key, "meta", xattr=True), {"by": "me"}, "stores keep it")
    mutate(sdk, key, SD.remove("meta", xattr=True))
    found = sdk.collection.lookup_in(key, [SD.exists("meta", xattr=True)])
    expect(not found.exists(0), "it is removed")
    expect_equal(look(sdk, key, "_system", list, xattr=True), [1], "another stays")
    expect_equal(sdk.get_json(key), {"c": 3}, "body")


def attributes_of_the_server(sdk):
    key, stored = sdk.stored({"a": 1})
    document = look(sdk, key, SD.LookupInMacro.document(), xattr=True)
    expect_equal(int(document["CAS"], 16), stored.cas, "CAS")
    expect_equal((document["deleted"], document["exptime"], document["datatype"]),
                 (False, 0, ["json"]), "fields")
    expect_equal(int(document["seqno"], 16), stored.mutation_token().sequence_number, "seqno")
    expect_equal(int(document["vbucket_uuid"], 16), stored.mutation_token().partition_uuid, "uuid")
    clock = look(sdk, key, "$vbucket.HLC", xattr=True)
    expect(abs(int(clock["now"]) - time.time()) < 60, f"the time: {clock}")
    mutate(sdk, key, SD.upsert("x", 1, xattr=True))
    expect_equal(look(sdk, key, "$XTOC", list, xattr=True), ["x"], "keys")


def macros_name_the_change(sdk):
    key, _ = sdk.stored({"a": 1})
    changed = mutate(sdk, key,
                     SD.upsert("m.cas", SD.MutationMacro.cas(), xattr=True, create_parents=True),
                     SD.upsert("m.seqno", SD.MutationMacro.seq_no(), xattr=True),
                     SD.upsert("m.sum", SD.MutationMacro.value_crc32c(), xattr=True))
    macros = look(sdk, key, "m", xattr=True)
    expect_equal(SD.convert_macro_cas_to_cas(macros["cas"]), changed.cas, "CAS")
    expect_equal(int(macros["seqno"], 16), changed.mutation_token().sequence_number, "seqno")
    expect_equal(look(sdk, key, "$document.value_crc32c", str, xattr=True), macros["sum"], "sum")


def paths_are_changed_durably(sdk):
    key, _ = sdk.stored({"n": 1})
    for level in (DurabilityLevel.MAJORITY, DurabilityLevel.MAJORITY_AND_PERSIST_TO_ACTIVE,
                  DurabilityLevel.PERSIST_TO_MAJORITY):
        durability = ServerDurability(level)
        counted = mutate(sdk, key, SD.increment("n", 1),
                         SD.upsert("cas", SD.MutationMacro.cas(), xattr=True),
                         durability=durability)
        expect_equal(counted.content_as[int](0), sdk.get_json(key)["n"], "counter")
        cas = look(sdk, key, "cas", str, xattr=True)
        expect_equal(SD.convert_macro_cas_to_cas(cas), counted.cas, "CAS")
        expect_equal(sdk.collection.get(key).cas, counted.cas, "CAS")
    expect_equal(sdk.get_json(key), {"n": 4}, "value")


def parallel_changes_of_one_document(sdk):
    key, _ = sdk.stored({"n": 0})

    def count(number):
        for _ in range(INCREMENTS):
            mutate(sdk, key, SD.increment("n", 1), SD.increment(f"of{number}", 1))

    with ThreadPoolExecutor(PARALLEL) as threads:
        list(threads.map(count, range(PARALLEL)))
    expected = {f"of{number}": INCREMENTS for number in range(PARALLEL)}
    expect_equal(sdk.get_json(key), {"n": PARALLEL * INCREMENTS, **expected}, "value")


def transactions_commit_and_roll_back(sdk):
    first, _ = sdk.stored({"n": 1})
    gone, _ = sdk.stored({"n": 2})
    new = sdk.key()

    def change(context):
        document = context.get(sdk.collection, first)
        context.replace(document, {"n": 10})
        context.insert(sdk.collection, new, {"n": 3})
        context.remove(context.get(sdk.collection, gone))

    def fail(context):
        document = context.get(sdk.collection, first)
        context.replace(document, {"n": 11})
        context.insert(sdk.collection, gone, {"n": 12})
        raise RuntimeError("the application has changed its mind")

    sdk.cluster.transactions.run(change)
    expect_equal(sdk.get_json(first), {"n": 10}, "replaced")
    expect_equal(sdk.get_json(new), {"n": 3}, "inserted")
    expect(sdk.is_gone(gone), "removed")
    expect_error(TransactionFailed, sdk.cluster.transactions.run, fail)
    expect_equal(sdk.get_json(first), {"n": 10}, "not replaced")
    expect(sdk.is_gone(gone), "not inserted")
    found = sdk.collection.lookup_in(first, [SD.exists("txn", xattr=True)])
    expect(not found.exists(0), "nothing is left of it")


def transactions_insert_what_was_rolled_back(sdk):
    key = sdk.key()

    def insert(context):
        context.insert(sdk.collection, key, {"n": 1})

    def fail(context):
        insert(context)
        raise RuntimeError("the application has changed its mind")

    expect_error(TransactionFailed, sdk.cluster.transactions.run, fail)
    expect(sdk.is_gone(key), "not inserted")
    sdk.cluster.transactions.run(insert)
    expect_equal(sdk.get_json(key), {"n": 1}, "inserted")


def attributes_survive_a_restart(sdk):
    key, _ = sdk.stored({"a": 1})
    durability = ServerDurability(DurabilityLevel.PERSIST_TO_MAJORITY)
    changed = mutate(sdk, key, SD.upsert("meta", {"by": "me"}, xattr=True), durability=durability)

    def crash():
        sdk.node.kill()
        sdk.node.start()

    for end in (sdk.node.restart, crash):
        end()
        wait_until(lambda: sdk.answers(key), 15, "the same SDK object works again")
        expect_equal(look(sdk, key, "meta", xattr=True), {"by": "me"}, "attribute")
        found = sdk.collection.get(key)
        expect_equal((found.content_as[dict], found.cas), ({"a": 1}, changed.cas), "document")
