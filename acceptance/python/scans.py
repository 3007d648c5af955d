"""Cases: scans of many documents.

Those of more than one front-end thread start a node of their own."""

from datetime import timedelta

from bucket_kinds import node_of_its_own
from cases import expect, expect_equal, expect_error
from couchbase.durability import DurabilityLevel, ServerDurability
from couchbase.exceptions import FeatureUnavailableException
from couchbase.kv_range_scan import PrefixScan, RangeScan, SamplingScan, ScanTerm
from couchbase.mutation_state import MutationState
from couchbase.options import ScanOptions, UpsertOptions

COUNT = 2000
PERSISTED = ServerDurability(DurabilityLevel.PERSIST_TO_MAJORITY)
TIMEOUT = timedelta(seconds=60)
THREADS = (1, 4)


def declare(cases):
    """In the order of running."""
    for function in (scans_on_one_and_four_threads, scan_of_large_documents,
                     scan_after_restart, scan_of_an_ephemeral_bucket_is_refused):
        cases.case(function)


def fill(collection, count=COUNT):
    """Stores documents, and tells what a scan has to see of them."""
    state = MutationState()
    for number in range(count):
        result = collection.upsert(f"scan-{number:05}", {"n": number})
        state.add_mutation_token(result.mutation_token())
    return state


def options(state, **more):
    """What a scan has to see, and how long it may take."""
    return ScanOptions(consistent_with=state, timeout=TIMEOUT, concurrency=8, **more)


def names(numbers):
    """The keys of these documents."""
    return [f"scan-{number:05}" for number in numbers]


def expect_scans(collection, state, count=COUNT):
    """Every kind of scan finds what it is to find."""
    scan = RangeScan(ScanTerm("scan-00100"), ScanTerm("scan-00200", exclusive=True))
    found = {result.id: result for result in collection.scan(scan, options(state))}
    expect_equal(sorted(found), names(range(100, 200)), "keys of a range")
    values = {key: result.content_as[dict]["n"] for key, result in found.items()}
    expect_equal(values, {key: int(key[5:]) for key in found}, "values of a range")
    expect(all(result.cas for result in found.values()), "every result has a CAS")
    expect_equal(found["scan-00150"].cas, collection.get("scan-00150").cas, "CAS")
    ids = [result.id for result in collection.scan(RangeScan(), options(state, ids_only=True))]
    expect_equal(sorted(ids), names(range(count)), "all keys")
    prefix = PrefixScan("scan-001")
    ids = [result.id for result in collection.scan(prefix, options(state, ids_only=True))]
    expect_equal(sorted(ids), names(range(100, 200)), "keys with a prefix")
    nothing = collection.scan(PrefixScan("absent-"), options(state, ids_only=True))
    expect_equal(list(nothing), [], "keys that are not there")
    sample = collection.scan(SamplingScan(50, seed=7), options(state, ids_only=True))
    ids = [result.id for result in sample]
    expect_equal(len(set(ids)), 50, "samples")
    expect(set(ids) <= set(names(range(count))), "samples are documents")


def scans_on_one_and_four_threads(sdk_of_the_suite):
    del sdk_of_the_suite
    for threads in THREADS:
        with node_of_its_own(f"scans-{threads}", "--threads", str(threads)) as sdk:
            state = fill(sdk.collection)
            expect_scans(sdk.collection, state)
            sdk.collection.remove_multi(names(range(1000, COUNT)))
            removed = sdk.collection.remove("scan-00999")
            state = MutationState()
            state.add_mutation_token(removed.mutation_token())
            stored = sdk.collection.upsert("expires", {}, UpsertOptions(expiry=timedelta(hours=1)))
            state.add_mutation_token(stored.mutation_token())
            ids = [result.id for result in sdk.collection.scan(
                PrefixScan("expires"), options(state, ids_only=True))]
            expect_equal(ids, ["expires"], "a document that expires later")
            ids = [result.id for result in sdk.collection.scan(
                PrefixScan("scan-00999"), options(state, ids_only=True))]
            expect_equal(ids, [], "a removed document")


def scan_of_large_documents(sdk_of_the_suite):
    del sdk_of_the_suite
    with node_of_its_own("scans-large", "--threads", "1", "--memory-quota", "256MiB") as sdk:
        state = MutationState()
        for number in range(40):
            body = {"text": str(number) * 1_000_000}
            result = sdk.collection.upsert(f"large-{number:02}", body)
            state.add_mutation_token(result.mutation_token())
        sizes = [len(result.content_as[dict]["text"])
                 for result in sdk.collection.scan(PrefixScan("large-"), options(state))]
        expect_equal(sorted(sizes), [1_000_000] * 10 + [2_000_000] * 30, "sizes")


def scan_after_restart(sdk_of_the_suite):
    del sdk_of_the_suite
    with node_of_its_own("scans-restart", "--threads", "1") as sdk:
        fill(sdk.collection, 300)
        sdk.collection.upsert("scan-00001", {"n": 1}, UpsertOptions(durability=PERSISTED))
        sdk.node.kill()
        sdk.node.start()
        expect_equal(sdk.get_json("scan-00001"), {"n": 1}, "value")
        again = sdk.connect()
        try:
            collection = again.bucket("default").default_collection()
            # What was acknowledged without being durable may be lost.
            ids = [result.id for result in collection.scan(
                RangeScan(), ScanOptions(ids_only=True, timeout=TIMEOUT))]
            kept = [key for key in names(range(300)) if collection.exists(key).exists]
            expect_equal(sorted(ids), kept, "keys behind a restart")
        finally:
            again.close()


def scan_of_an_ephemeral_bucket_is_refused(sdk_of_the_suite):
    del sdk_of_the_suite
    with node_of_its_own("scans-ephemeral", "--bucket-type", "ephemeral") as sdk:
        sdk.stored({})
        expect_error(FeatureUnavailableException,
                     lambda: list(sdk.collection.scan(RangeScan(), ScanOptions(timeout=TIMEOUT))))
