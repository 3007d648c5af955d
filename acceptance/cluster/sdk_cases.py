"""Cases: the Python SDK, unmodified, against two nodes."""

from datetime import timedelta

from cases import expect, expect_equal, expect_error, wait_until
from cluster_run import BUCKET, PASSWORD, USER, Cluster
from couchbase.auth import PasswordAuthenticator
from couchbase.cluster import Cluster as SdkCluster
from couchbase.durability import (ClientDurability, DurabilityLevel, PersistTo, ReplicateTo,
                                  ServerDurability)
from couchbase.exceptions import (AmbiguousTimeoutException, DurabilityImpossibleException,
                                  DurabilitySyncWriteAmbiguousException, TimeoutException,
                                  RequestCanceledException, UnAmbiguousTimeoutException)
from couchbase.kv_range_scan import PrefixScan, RangeScan, SamplingScan
from couchbase.mutation_state import MutationState
from couchbase.options import (ClusterOptions, ClusterTimeoutOptions, GetAllReplicasOptions,
                               InsertOptions, MutateInOptions, RemoveOptions, ReplaceOptions,
                               ScanOptions, UpsertOptions)
from couchbase.replica_reads import ReadPreference
from couchbase.subdocument import StoreSemantics, exists, get, upsert

from mcbp import Connection, vbucket_of

LEVELS = (DurabilityLevel.MAJORITY, DurabilityLevel.MAJORITY_AND_PERSIST_TO_ACTIVE,
          DurabilityLevel.PERSIST_TO_MAJORITY)
READY = timedelta(seconds=20)
COUNT = 40
SCANNED_COUNT = 300


def declare(cases):
    """One cluster for each case: they break theirs."""
    for function in (cluster_info_tells_of_both_nodes, durable_writes_at_every_level,
                     replicas_can_be_read, observed_writes_reach_the_replica,
                     scans_see_both_nodes, parts_of_documents_are_replicated,
                     stopped_replica_makes_durable_writes_ambiguous,
                     failover_keeps_the_sdk_working):
        name = "sdk-" + function.__name__.replace("_", "-")
        cases.add(name, lambda function=function, name=name: run(function, name))
    for threads, suffix in ((1, ""), (4, "-with-four-threads")):
        name = f"sdk-collections-on-two-nodes{suffix}"
        flags = [f"--node-argument=--threads={threads}"]
        cases.add(name, lambda name=name, flags=flags: run(collections_on_two_nodes, name, flags))


def run(function, name, flags=()):
    """Gives the case a cluster of two nodes and an SDK that is connected."""
    with Cluster(name, flags=flags) as cluster:
        sdk = connect(cluster)
        try:
            function(cluster, sdk.bucket(BUCKET).default_collection())
        finally:
            sdk.close()


def connect(cluster):
    """A cluster object that is ready."""
    timeouts = ClusterTimeoutOptions(
        kv_timeout=timedelta(seconds=5), kv_durable_timeout=timedelta(seconds=5),
        connect_timeout=READY, bootstrap_timeout=READY)
    options = ClusterOptions(
        PasswordAuthenticator(USER, PASSWORD), timeout_options=timeouts,
        enable_mutation_tokens=True, preferred_server_group="Group 1")
    sdk = SdkCluster.connect(cluster.connection_string, options)
    sdk.bucket(BUCKET)
    return sdk


def cluster_info_tells_of_both_nodes(cluster, _):
    sdk = connect(cluster)
    try:
        nodes = sdk.cluster_info().nodes
    finally:
        sdk.close()
    expect_equal(len(nodes), 2, "nodes")
    for field in ("hostname", "status", "version", "os"):
        values = [node[field] for node in nodes]
        expect(all(values), f"{field} of both nodes: {values}")


def scans_see_both_nodes(cluster, collection):
    state = MutationState()
    keys = [f"scan-{number:04}" for number in range(SCANNED_COUNT)]
    durability = ServerDurability(DurabilityLevel.MAJORITY)
    for key in keys:
        result = collection.upsert(key, {"key": key}, UpsertOptions(durability=durability))
        state.add_mutation_token(result.mutation_token())
    options = ScanOptions(consistent_with=state, timeout=READY, concurrency=4)
    found = {result.id: result.content_as[dict]["key"]
             for result in collection.scan(RangeScan(), options)}
    expect_equal(found, {key: key for key in keys}, "documents")
    ids = [result.id for result in collection.scan(
        PrefixScan("scan-00"), ScanOptions(ids_only=True, timeout=READY, concurrency=4))]
    expect_equal(sorted(ids), keys[:100], "keys with a prefix")
    sample = collection.scan(SamplingScan(20, seed=1), ScanOptions(ids_only=True, timeout=READY))
    expect_equal(len({result.id for result in sample} & set(keys)), 20, "samples")


def durable_writes_at_every_level(cluster, collection):
    for level in LEVELS:
        durability = ServerDurability(level)
        for number in range(COUNT):
            key = f"{level.value}-{number}"
            collection.insert(key, {"n": 0}, InsertOptions(durability=durability))
            collection.upsert(key, {"n": 1}, UpsertOptions(durability=durability))
            before = collection.get(key)
            expect_equal(before.content_as[dict], {"n": 1}, "value")
            collection.replace(
                key, {"n": 2}, ReplaceOptions(durability=durability, cas=before.cas))
            expect_equal(collection.get(key).content_as[dict], {"n": 2}, "value")
            if number % 2:
                collection.remove(key, RemoveOptions(durability=durability))
                expect(not collection.exists(key).exists, "it is removed")
    cluster.wait_until_replicated()
    expect_equal(cluster.unexpected_log_lines(), [], "lines in the nodes' logs")


def replicas_can_be_read(cluster, collection):
    keys = [f"replica-{number}" for number in range(COUNT)]
    for key in keys:
        collection.upsert(key, {"key": key})
    cluster.wait_until_replicated()
    for key in keys:
        results = list(collection.get_all_replicas(key))
        expect_equal([result.content_as[dict] for result in results], [{"key": key}] * 2, "copies")
        expect_equal(sum(result.is_replica for result in results), 1, "replicas")
        expect_equal(collection.get_any_replica(key).content_as[dict], {"key": key}, "any copy")
        in_group = GetAllReplicasOptions(read_preference=ReadPreference.SELECTED_SERVER_GROUP)
        results = list(collection.get_all_replicas(key, in_group))
        expect_equal(len(results), 2, "copies of the group that all nodes are in")


def observed_writes_reach_the_replica(_, collection):
    observed = UpsertOptions(durability=ClientDurability(ReplicateTo.ONE, PersistTo.ONE))
    for number in range(5):
        key = f"observed-{number}"
        collection.upsert(key, {"key": key}, observed)
        copies = [result.content_as[dict] for result in collection.get_all_replicas(key)]
        expect_equal(copies, [{"key": key}] * 2, "copies")


def parts_of_documents_are_replicated(cluster, collection):
    durable = MutateInOptions(durability=ServerDurability(DurabilityLevel.MAJORITY),
                              store_semantics=StoreSemantics.UPSERT)
    plain = MutateInOptions(store_semantics=StoreSemantics.UPSERT)
    keys = [f"part-{number}" for number in range(COUNT)]
    for number, key in enumerate(keys):
        changes = [upsert("meta", {"key": key}, xattr=True), upsert("n", number)]
        collection.mutate_in(key, changes, durable if number % 2 else plain)
    cluster.wait_until_replicated()
    paths = [get("meta.key", xattr=True), get("n"), exists("none")]
    for number, key in enumerate(keys):
        for found in collection.lookup_in_all_replicas(key, paths):
            parts = found.content_as[str](0), found.content_as[int](1), found.exists(2)
            expect_equal(parts, (key, number, False), "copy")
        any_copy = collection.lookup_in_any_replica(key, paths)
        expect_equal(any_copy.content_as[int](1), number, "any copy")
    stage_deleted(cluster, b"staged")
    cluster.wait_until_replicated()
    cluster.tell("--kill", 0)
    cluster.tell("--failover", 0)
    for number, key in enumerate(keys):
        wait_until(lambda key=key: succeeds(lambda: collection.get(key)), 20, f"{key} is there")
        found = collection.lookup_in(key, paths)
        expect_equal((found.content_as[str](0), found.content_as[int](1)), (key, number), "parts")
    expect_equal(staged(cluster, 1, b"staged"), (SUBDOC_SUCCESS_DELETED, b"1"), "a tombstone's")


SUBDOC_GET, SUBDOC_UPSERT, SUBDOC_SUCCESS_DELETED = 0xC5, 0xC8, 0xCD
XATTR, ACCESS_DELETED, CREATES_DELETED = 0x04, 0x04, 0x0E
FEATURES = (0x06,)


def path_extras(path, flags):
    """Those of a request about an attribute."""
    return len(path).to_bytes(2, "big") + bytes((XATTR, flags))


def stage_deleted(cluster, key):
    """Makes a tombstone with an attribute, as transactions do."""
    chains = cluster.chains()
    vbucket = vbucket_of(key, len(chains))
    with Connection("127.0.0.1", chains[vbucket][0]) as connection:
        connection.open_bucket(USER, PASSWORD, BUCKET, FEATURES)
        answer = connection.call(SUBDOC_UPSERT, key=key, vbucket=vbucket, value=b"txn1",
                                 extras=path_extras(b"txn", CREATES_DELETED))
        expect_equal(answer.status, SUBDOC_SUCCESS_DELETED, "status")


def staged(cluster, node, key):
    """What a node has of it."""
    with Connection("127.0.0.1", cluster.port(node)) as connection:
        connection.open_bucket(USER, PASSWORD, BUCKET, FEATURES)
        answer = connection.call(
            SUBDOC_GET, key=key, vbucket=vbucket_of(key, len(cluster.chains())), value=b"txn",
            extras=path_extras(b"txn", ACCESS_DELETED))
        return answer.status, answer.value


def stopped_replica_makes_durable_writes_ambiguous(cluster, collection):
    port = cluster.port(0)
    chains = cluster.chains()
    on_first = [key for key in (f"stopped-{number}" for number in range(COUNT))
                if chains[vbucket_of(key.encode(), len(chains))][0] == port]
    durable = UpsertOptions(
        durability=ServerDurability(DurabilityLevel.MAJORITY), timeout=timedelta(seconds=3))
    for key in on_first:
        collection.upsert(key, {"n": 1})
    cluster.tell("--pause", 1)
    ambiguous = (AmbiguousTimeoutException, DurabilitySyncWriteAmbiguousException)
    for key in on_first[:2]:
        expect_error(ambiguous, collection.upsert, key, {"n": 2}, durable)
        expect_equal(collection.get(key).content_as[dict], {"n": 1}, "not committed, not seen")
    collection.upsert(on_first[2], {"n": 3})
    expect_equal(collection.get(on_first[2]).content_as[dict], {"n": 3}, "an ordinary write")
    cluster.tell("--resume", 1)
    wait_until(lambda: succeeds(lambda: collection.upsert(on_first[0], {"n": 4}, durable)), 20,
               "durable writes go on")
    expect_equal(collection.get(on_first[0]).content_as[dict], {"n": 4}, "value")


def failover_keeps_the_sdk_working(cluster, collection):
    keys = [f"failover-{number}" for number in range(COUNT)]
    durable = UpsertOptions(durability=ServerDurability(DurabilityLevel.PERSIST_TO_MAJORITY))
    for key in keys:
        collection.upsert(key, {"key": key}, durable)
    cluster.tell("--kill", 0)
    cluster.tell("--failover", 0)
    for key in keys:
        wait_until(lambda key=key: reads(collection, key), 20, f"{key} can be read")
        collection.upsert(key, {"key": key, "again": True})
    # One of two copies is missing: no majority can be reached.
    expect_error(DurabilityImpossibleException, collection.upsert, keys[0], {}, durable)
    cluster.tell("--recover", 0)
    cluster.wait_until_replicated()
    wait_until(lambda: succeeds(lambda: collection.upsert(keys[0], {"n": 1}, durable)), 20,
               "durable writes go on")
    for key in keys[1:]:
        expect_equal(collection.get(key).content_as[dict], {"key": key, "again": True}, "value")


def collections_on_two_nodes(cluster, _):
    sdk = connect(cluster)
    try:
        use_collections(cluster, sdk.bucket(BUCKET))
    finally:
        sdk.close()


def use_collections(cluster, bucket):
    manager = bucket.collections()
    manager.create_scope("shop")
    for name in ("fruit", "short"):
        manager.create_collection("shop", name)
    fruit = bucket.scope("shop").collection("fruit")
    keys = [f"fruit-{number}" for number in range(COUNT)]
    durable = UpsertOptions(durability=ServerDurability(DurabilityLevel.MAJORITY))
    for key in keys:
        fruit.upsert(key, {"key": key}, durable)
        bucket.scope("shop").collection("short").upsert(key, {})
    manager.drop_collection("shop", "short")
    uids = {cluster.statistics(node, "collections")["manifest_uid"] for node in (0, 1)}
    expect_equal(uids, {"4"}, "uid of the manifest on both nodes")
    cluster.wait_until_replicated()
    cluster.tell("--kill", 0)
    cluster.tell("--failover", 0)
    for key in keys:
        wait_until(lambda key=key: reads(fruit, key), 20, f"{key} can be read")
        fruit.upsert(key, {"key": key, "again": True})
    cluster.tell("--recover", 0)
    cluster.wait_until_replicated()
    scopes = {scope.name: len(scope.collections) for scope in manager.get_all_scopes()}
    expect_equal(scopes, {"_default": 1, "shop": 1}, "collections by scope")
    for key in keys:
        expect_equal(fruit.get(key).content_as[dict], {"key": key, "again": True}, "value")


def succeeds(function):
    """Whether an operation ends well."""
    try:
        function()
    except (TimeoutException, AmbiguousTimeoutException, UnAmbiguousTimeoutException,
            RequestCanceledException, DurabilitySyncWriteAmbiguousException,
            DurabilityImpossibleException):
        return False
    return True


def reads(collection, key):
    """Whether a key is read with its value."""
    found = []
    return succeeds(lambda: found.append(collection.get(key))) and found[0].content_as[dict] == {
        "key": key}
