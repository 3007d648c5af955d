"""Cases: scopes and collections, and documents in them."""

import json
import time
from datetime import timedelta

from cases import expect, expect_equal, expect_error, wait_until
from certificates import rest
from couchbase.exceptions import (CollectionAlreadyExistsException, CollectionNotFoundException,
                                  CouchbaseException, DocumentNotFoundException,
                                  ScopeAlreadyExistsException, ScopeNotFoundException,
                                  UnAmbiguousTimeoutException)
from couchbase.management.collections import CreateCollectionSettings
from sdk import BUCKET

GONE = (CollectionNotFoundException, ScopeNotFoundException, UnAmbiguousTimeoutException)
BRIEF = timedelta(seconds=1)


def declare(cases):
    """In the order of running."""
    for function in (collections_come_and_go, documents_in_collections, dropped_collection,
                     collection_expiry, unknown_collection, all_collections_at_once):
        cases.case(function)


def listed(manager):
    """The names of all collections by scope."""
    return {scope.name: sorted(collection.name for collection in scope.collections)
            for scope in manager.get_all_scopes()}


def created(sdk, scope, collection, settings=None):
    """A new collection, which can be used."""
    manager = sdk.bucket.collections()
    if scope not in listed(manager):
        manager.create_scope(scope)
    manager.create_collection(scope, collection, settings or CreateCollectionSettings())
    return sdk.bucket.scope(scope).collection(collection)


def collections_come_and_go(sdk):
    manager = sdk.bucket.collections()
    manager.create_scope("market")
    expect_error(ScopeAlreadyExistsException, manager.create_scope, "market")
    settings = CreateCollectionSettings()
    manager.create_collection("market", "fruit", settings)
    expect_error(CollectionAlreadyExistsException, manager.create_collection, "market", "fruit",
                 settings)
    expect_error(ScopeNotFoundException, manager.create_collection, "nowhere", "fruit", settings)
    expect_error(CouchbaseException, manager.create_scope, "_mine")
    expect_equal(listed(manager)["market"], ["fruit"], "collections")
    manager.drop_collection("market", "fruit")
    expect_error(CollectionNotFoundException, manager.drop_collection, "market", "fruit")
    manager.drop_scope("market")
    expect_error(ScopeNotFoundException, manager.drop_scope, "market")
    expect("market" not in listed(manager), "the scope is gone")


def documents_in_collections(sdk):
    fruit, nuts = created(sdk, "shop", "fruit"), created(sdk, "shop", "nuts")
    key = sdk.key()
    fruit.upsert(key, {"in": "fruit"})
    nuts.upsert(key, {"in": "nuts"})
    expect_error(DocumentNotFoundException, sdk.collection.get, key)
    expect_equal(fruit.get(key).content_as[dict], {"in": "fruit"}, "value")
    fruit.remove(key)
    expect_error(DocumentNotFoundException, fruit.get, key)
    expect_equal(nuts.get(key).content_as[dict], {"in": "nuts"}, "value")
    nuts.binary().increment(sdk.key("count"))
    results = nuts.upsert_multi({f"many-{number}": {"n": number} for number in range(200)})
    expect(results.all_ok, "200 documents at once")


def dropped_collection(sdk):
    collection = created(sdk, "shop", "short")
    collection.upsert("k", {"n": 1})
    manager = sdk.bucket.collections()
    manager.drop_collection("shop", "short")
    expect_error(GONE, collection.get, "k", timeout=BRIEF)
    expect_error(GONE, collection.upsert, "k", {"n": 2}, timeout=BRIEF)
    again = created(sdk, "shop", "short")
    expect_error(DocumentNotFoundException, again.get, "k")
    again.upsert("k", {"n": 3})
    expect_equal(again.get("k").content_as[dict], {"n": 3}, "value")


def collection_expiry(sdk):
    settings = CreateCollectionSettings(max_expiry=timedelta(seconds=2))
    collection = created(sdk, "shop", "fresh", settings)
    collection.upsert("k", {"n": 1})
    expect(collection.exists("k").exists, "it is there")
    began = time.monotonic()
    wait_until(lambda: not collection.exists("k").exists, 10, "it is over by itself")
    expect(time.monotonic() - began > 0.5, "not at once")


def unknown_collection(sdk):
    unknown = sdk.bucket.scope("_default").collection("unknown")
    expect_error(GONE, unknown.get, "k", timeout=BRIEF)
    expect_error(GONE, sdk.bucket.scope("unknown").collection("c").get, "k", timeout=BRIEF)


def all_collections_at_once(sdk):
    path = f"/pools/default/buckets/{BUCKET}/scopes"
    kept = created(sdk, "kept", "one")
    kept.upsert("k", {"n": 1})
    created(sdk, "gone", "one")
    manifest = json.loads(rest(sdk.node, "GET", path)[1])
    scopes = [scope for scope in manifest["scopes"] if scope["name"] != "gone"]
    next(scope for scope in scopes if scope["name"] == "kept")["collections"].append(
        {"name": "two", "maxTTL": 60})
    scopes.append({"name": "fresh", "collections": [{"name": "one"}]})
    body = json.dumps({"scopes": scopes}).encode()
    wanted = f"{path}?validOnUid={manifest['uid']}"
    expect_equal(rest(sdk.node, "PUT", wanted, body)[0], 200, "status")
    expect_equal(rest(sdk.node, "PUT", wanted, body)[0], 400, "status behind a change")
    names = listed(sdk.bucket.collections())
    expect("gone" not in names, "a scope that is not wanted goes")
    expect_equal((names["kept"], names["fresh"]), (["one", "two"], ["one"]), "collections")
    expect_equal(kept.get("k").content_as[dict], {"n": 1}, "a document of what stays")
    fresh = sdk.bucket.scope("fresh").collection("one")
    fresh.upsert("k", {"n": 2})
    expect_equal(fresh.get("k").content_as[dict], {"n": 2}, "a document of what came")
    before = json.loads(rest(sdk.node, "GET", path)[1])
    answer = rest(sdk.node, "PUT", path, body)
    expect_equal(json.loads(answer[1])["uid"], before["uid"], "nothing changes the second time")
