"""Cases: buckets that are made, changed, emptied and deleted by the SDK while the node runs.

Each case runs against a node of its own with one front-end thread, and against one with four."""

from datetime import datetime, timedelta

from bucket_kinds import node_of_its_own
from cases import expect, expect_equal, expect_error, wait_until
from couchbase.exceptions import (BucketAlreadyExistsException, BucketDoesNotExistException,
                                  BucketNotFlushableException, CouchbaseException,
                                  DocumentNotFoundException, InvalidArgumentException)
from couchbase.management.buckets import (BucketSettings, BucketType, CompressionMode,
                                          CreateBucketSettings, EvictionPolicyType)
from couchbase.options import GetOptions, UpsertOptions
from mcbp import ConnectionLost, open_bucket
from sdk import BUCKET

NAME = "orders"
QUOTA_MB = 100
FLAGS = ("--memory-quota=1GiB", "--bucket-quota=128MiB", "--vbuckets=64", "--journal-size=64MiB")
PATIENCE_SECONDS = 20
NOOP = 0x0A


def declare(cases):
    """In the order of running."""
    for function in (buckets_are_made_listed_and_dropped, buckets_are_changed,
                     a_bucket_is_flushed_where_that_is_enabled, a_bucket_limits_lives,
                     buckets_that_cannot_be_are_refused,
                     a_dropped_bucket_is_gone_for_its_clients, buckets_are_there_after_a_restart):
        for threads, suffix in ((1, ""), (4, "-with-four-threads")):
            name = function.__name__.replace("_", "-") + suffix
            cases.add(name, lambda sdk, function=function, threads=threads, name=name:
                      run(function, threads, name))


def run(function, threads, name):
    """Gives the case a node of its own."""
    with node_of_its_own(name, f"--threads={threads}", *FLAGS) as sdk:
        function(sdk)


def settings(name=NAME, **more):
    """What a bucket is made with."""
    defaults = {"bucket_type": BucketType.COUCHBASE, "ram_quota_mb": QUOTA_MB, "num_replicas": 0}
    return CreateBucketSettings(name=name, **{**defaults, **more})


def collection_of(sdk, name=NAME):
    """The documents of a bucket that has just been made."""
    return sdk.cluster.bucket(name).default_collection()


def buckets_are_made_listed_and_dropped(sdk):
    """Both kinds: made, used, listed, dropped; the other bucket has its documents still."""
    manager = sdk.cluster.buckets()
    key, _ = sdk.stored({"of": BUCKET})
    for kind, storage in ((BucketType.COUCHBASE, "membase"), (BucketType.EPHEMERAL, "ephemeral")):
        manager.create_bucket(settings(bucket_type=kind))
        expect_error(BucketAlreadyExistsException, manager.create_bucket,
                     settings(bucket_type=kind))
        found = manager.get_bucket(NAME)
        expect_equal((found.name, found.ram_quota_mb), (NAME, QUOTA_MB), "the bucket")
        names = sorted(bucket.name for bucket in manager.get_all_buckets())
        expect_equal(names, [BUCKET, NAME], f"all buckets, one of them {storage}")
        collection = collection_of(sdk)
        expect_error(DocumentNotFoundException, collection.get, "k")
        collection.upsert("k", {"of": NAME})
        expect_equal(collection.get("k").content_as[dict], {"of": NAME}, "the document")
        manager.drop_bucket(NAME)
        expect_error(BucketDoesNotExistException, manager.get_bucket, NAME)
        expect_error(BucketDoesNotExistException, manager.drop_bucket, NAME)
    expect_equal(sdk.get_json(key), {"of": BUCKET}, "the other bucket's document")


def buckets_are_changed(sdk):
    """The quota, replicas, flush and compression of a bucket in use."""
    manager = sdk.cluster.buckets()
    manager.create_bucket(settings())
    collection = collection_of(sdk)
    collection.upsert("k", 1)
    manager.update_bucket(BucketSettings(name=NAME, ram_quota_mb=QUOTA_MB + 50, num_replicas=1,
                                         flush_enabled=True,
                                         compression_mode=CompressionMode.ACTIVE))
    found = manager.get_bucket(NAME)
    expect_equal((found.ram_quota_mb, found.num_replicas, found.flush_enabled),
                 (QUOTA_MB + 50, 1, True), "the settings")
    expect_equal(found.compression_mode, CompressionMode.ACTIVE, "the compression")
    expect_equal(collection.get("k").content_as[int], 1, "the document")
    expect_error(BucketDoesNotExistException, manager.update_bucket,
                 BucketSettings(name="none", ram_quota_mb=QUOTA_MB))


def a_bucket_is_flushed_where_that_is_enabled(sdk):
    """Otherwise it is refused, and everything stays."""
    manager = sdk.cluster.buckets()
    manager.create_bucket(settings(flush_enabled=False))
    collection = collection_of(sdk)
    collection.upsert("k", 1)
    expect_error(BucketNotFlushableException, manager.flush_bucket, NAME)
    expect(collection.exists("k").exists, "nothing is gone")
    manager.update_bucket(BucketSettings(name=NAME, ram_quota_mb=QUOTA_MB, flush_enabled=True))
    manager.flush_bucket(NAME)
    expect(not collection.exists("k").exists, "the bucket is empty")
    collection.upsert("k", 2)
    expect_error(BucketDoesNotExistException, manager.flush_bucket, "none")


def a_bucket_limits_lives(sdk):
    """What is to live longer, or forever, lives as long as the bucket says, until that is changed."""
    manager = sdk.cluster.buckets()
    manager.create_bucket(settings(max_expiry=timedelta(seconds=2)))
    expect_equal(manager.get_bucket(NAME).max_expiry, timedelta(seconds=2), "the limit")
    collection = collection_of(sdk)
    collection.upsert("forever", 1)
    collection.upsert("long", 1, UpsertOptions(expiry=timedelta(hours=1)))
    expect(collection.exists("long").exists, "it is there")
    for key in ("forever", "long"):
        wait_until(lambda key=key: not collection.exists(key).exists, 10, f"{key} is over")
    manager.update_bucket(BucketSettings(name=NAME, ram_quota_mb=QUOTA_MB,
                                         max_expiry=timedelta(days=1)))
    collection.upsert("forever", 1)
    left = collection.get("forever", GetOptions(with_expiry=True)).expiryTime
    day = timedelta(days=1)
    expect(timedelta(0) <= datetime.now() + day - left < timedelta(minutes=5), f"a day: {left}")


def buckets_that_cannot_be_are_refused(sdk):
    """Too much memory, too little, a name that is none."""
    manager = sdk.cluster.buckets()
    for wrong in (settings(ram_quota_mb=2000), settings(ram_quota_mb=99),
                  settings(name="a/b"), settings(max_expiry=timedelta(days=-1))):
        expect_error((InvalidArgumentException, CouchbaseException), manager.create_bucket, wrong)
    expect_equal([bucket.name for bucket in manager.get_all_buckets()], [BUCKET], "all buckets")


def a_dropped_bucket_is_gone_for_its_clients(sdk):
    """Connections that have it lose it; it can be made again, and is empty."""
    manager = sdk.cluster.buckets()
    manager.create_bucket(settings())
    collection = collection_of(sdk)
    collection.upsert("k", 1)
    with open_bucket(sdk.node, NAME) as connection:
        manager.drop_bucket(NAME)
        expect_error(ConnectionLost, connection.call, NOOP)
    manager.create_bucket(settings(eviction_policy=EvictionPolicyType.FULL))
    wait_until(lambda: is_missing(sdk, "k"), PATIENCE_SECONDS, "the new bucket is empty")
    collection_of(sdk).upsert("k", 2)


def is_missing(sdk, key):
    """Whether the bucket answers that there is no such document."""
    try:
        return not sdk.cluster.bucket(NAME).default_collection().exists(key).exists
    except CouchbaseException:
        return False


def buckets_are_there_after_a_restart(sdk):
    """With their documents and settings, also after a kill; those that were dropped are not."""
    manager = sdk.cluster.buckets()
    manager.create_bucket(settings(flush_enabled=True))
    manager.create_bucket(settings("travel"))
    collection_of(sdk).upsert("k", 1)
    manager.drop_bucket("travel")
    sdk.node.stop()
    sdk.node.start()
    cluster = sdk.connect()
    try:
        found = {bucket.name: bucket for bucket in cluster.buckets().get_all_buckets()}
        expect_equal(sorted(found), [BUCKET, NAME], "all buckets")
        expect_equal((found[NAME].ram_quota_mb, found[NAME].flush_enabled), (QUOTA_MB, True),
                     "the settings")
        value = cluster.bucket(NAME).default_collection().get("k").content_as[int]
        expect_equal(value, 1, "the document")
    finally:
        cluster.close()
