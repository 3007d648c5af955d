"""Cases: buckets that the Python SDK makes, empties and drops on two nodes."""

import base64
import json
import urllib.error
import urllib.request
from datetime import timedelta

from cases import expect, expect_equal, expect_error, wait_until
from cluster_run import BUCKET, PASSWORD, USER, Cluster
from couchbase.durability import DurabilityLevel, ServerDurability
from couchbase.exceptions import BucketDoesNotExistException
from couchbase.management.buckets import BucketSettings, BucketType, CreateBucketSettings
from couchbase.options import UpsertOptions
from sdk_cases import connect, reads, succeeds

NAME = "orders"
QUOTA_MB = 100
COUNT = 40
PATIENCE_SECONDS = 20
DURABLE = UpsertOptions(durability=ServerDurability(DurabilityLevel.MAJORITY),
                        timeout=timedelta(seconds=5))


def declare(cases):
    """With one front-end thread a node and with four."""
    for threads, suffix in ((1, ""), (4, "-with-four-threads")):
        name = f"sdk-buckets-on-two-nodes{suffix}"
        flags = ["--memory-quota", "512MiB", f"--node-argument=--threads={threads}",
                 "--node-argument=--journal-size=64MiB"]
        cases.add(name, lambda name=name, flags=flags: buckets_on_two_nodes(name, flags))


def buckets_on_two_nodes(name, flags):
    """One cluster for all of it."""
    with Cluster(name, flags=flags) as cluster:
        sdk = connect(cluster)
        try:
            use_buckets(cluster, sdk)
        finally:
            sdk.close()


def settings(**more):
    """What the bucket is made with."""
    defaults = {"bucket_type": BucketType.COUCHBASE, "ram_quota_mb": QUOTA_MB, "num_replicas": 1,
                "flush_enabled": False}
    return CreateBucketSettings(name=NAME, **{**defaults, **more})


def use_buckets(cluster, sdk):
    """A bucket is made, used, emptied and dropped; then a node is down."""
    manager = sdk.buckets()
    manager.create_bucket(settings())
    for node in (0, 1):
        expect_equal(bucket_names(cluster, node), [BUCKET, NAME], f"buckets of n_{node}")
    uuids = {rest(cluster, node, f"/pools/default/buckets/{NAME}")["uuid"] for node in (0, 1)}
    expect_equal(len(uuids), 1, "uuids")
    collection = sdk.bucket(NAME).default_collection()
    keys = [f"order-{number}" for number in range(COUNT)]
    for key in keys:
        wait_until(lambda key=key: succeeds(lambda: collection.upsert(key, {"key": key}, DURABLE)),
                   PATIENCE_SECONDS, f"{key} is written durably")
    manager.update_bucket(BucketSettings(name=NAME, ram_quota_mb=QUOTA_MB, flush_enabled=True))
    for node in (0, 1):
        found = rest(cluster, node, f"/pools/default/buckets/{NAME}")
        expect("flush" in found["controllers"], f"n_{node} can be flushed")
    manager.flush_bucket(NAME)
    for key in keys:
        wait_until(lambda key=key: is_missing(collection, key), PATIENCE_SECONDS,
                   f"{key} is gone")
    for key in keys:
        wait_until(lambda key=key: succeeds(lambda: collection.upsert(key, {"key": key}, DURABLE)),
                   PATIENCE_SECONDS, f"{key} is written durably again")
    fail_over(cluster, collection, keys)
    for _ in range(3):
        manager.drop_bucket(NAME)
        manager.create_bucket(settings())
    manager.drop_bucket(NAME)
    for node in (0, 1):
        wait_until(lambda node=node: bucket_names(cluster, node) == [BUCKET], PATIENCE_SECONDS,
                   f"n_{node} has no such bucket")
    expect_error(BucketDoesNotExistException, manager.get_bucket, NAME)
    miss_changes(cluster, manager)


def fail_over(cluster, collection, keys):
    """The bucket is one of the map, and takes part in what becomes of nodes."""
    for node in (0, 1):
        wait_until(lambda node=node: has_whole_copies(cluster, node), PATIENCE_SECONDS,
                   f"the copies of n_{node} are whole")
    cluster.tell("--kill", 1)
    cluster.tell("--failover", 1)
    for key in keys:
        wait_until(lambda key=key: reads(collection, key), PATIENCE_SECONDS, f"{key} can be read")
    cluster.tell("--recover", 1)
    wait_until(lambda: succeeds(lambda: collection.upsert(keys[0], {"key": keys[0]}, DURABLE)),
               PATIENCE_SECONDS, "durable writes go on")


def has_whole_copies(cluster, node):
    """Whether a node's copies of all buckets could be promoted."""
    return not any(rest(cluster, node, "/settee/clusterMap")["incomplete"].values())


def miss_changes(cluster, manager):
    """Nothing is made while a node is down, and what is dropped meanwhile goes from it, too."""
    manager.create_bucket(settings())
    cluster.tell("--kill", 1)
    status, reason = order(cluster, 0, "POST", "/pools/default/buckets",
                           "name=late&ramQuotaMB=100&replicaNumber=1")
    expect(status == 503 and "n_1@" in reason, f"refused with the name of the node: {reason}")
    expect_equal(bucket_names(cluster, 0), [BUCKET, NAME], "nothing is made")
    expect_equal(order(cluster, 0, "DELETE", f"/pools/default/buckets/{NAME}")[0], 200, "dropped")
    cluster.tell("--restart", 1)
    wait_until(lambda: bucket_names(cluster, 1) == [BUCKET], PATIENCE_SECONDS,
               "the node that was down has no such bucket")


def is_missing(collection, key):
    """Whether a document is read as missing."""
    found = []
    return succeeds(lambda: found.append(collection.exists(key).exists)) and not found[0]


def bucket_names(cluster, node):
    """The buckets of a node."""
    return sorted(bucket["name"] for bucket in rest(cluster, node, "/pools/default/buckets"))


def rest(cluster, node, path):
    """What a node answers over REST."""
    status, body = order(cluster, node, "GET", path)
    expect_equal(status, 200, path)
    return json.loads(body)


def order(cluster, node, method, path, form=None):
    """Status and text of a request to a node."""
    url = f"http://127.0.0.1:{cluster.management_port(node)}{path}"
    request = urllib.request.Request(url, data=form and form.encode(), method=method)
    login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    request.add_header("Authorization", f"Basic {login}")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
