// Cases: scopes and collections, and documents in them.
"use strict";

const couchbase = require("couchbase");
const { expect, expectEqual, expectError, waitUntil } = require("./expect");
const { sees } = require("./scans");

const GONE = [couchbase.CollectionNotFoundError, couchbase.ScopeNotFoundError,
  couchbase.TimeoutError];
const BRIEF = { timeout: 1000 };

/** The names of all collections by scope. */
async function listed(manager) {
  const scopes = await manager.getAllScopes();
  return Object.fromEntries(scopes.map(({ name, collections }) =>
    [name, collections.map((collection) => collection.name).sort()]));
}

/** A new collection, which can be used. */
async function created(sdk, scope, collection, settings) {
  const manager = sdk.bucket.collections();
  if (!(scope in (await listed(manager)))) await manager.createScope(scope);
  await manager.createCollection(collection, scope, settings);
  return sdk.bucket.scope(scope).collection(collection);
}

module.exports = {
  "collections-come-and-go": async (sdk) => {
    const manager = sdk.bucket.collections();
    await manager.createScope("market");
    await expectError(manager.createScope("market"), couchbase.ScopeExistsError);
    await manager.createCollection("fruit", "market");
    const again = manager.createCollection("fruit", "market");
    await expectError(again, couchbase.CollectionExistsError);
    const nowhere = manager.createCollection("fruit", "nowhere");
    await expectError(nowhere, couchbase.ScopeNotFoundError);
    await expectError(manager.createScope("_mine"), couchbase.CouchbaseError);
    expectEqual((await listed(manager)).market, ["fruit"], "collections");
    await manager.dropCollection("fruit", "market");
    const dropped = manager.dropCollection("fruit", "market");
    await expectError(dropped, couchbase.CollectionNotFoundError);
    await manager.dropScope("market");
    await expectError(manager.dropScope("market"), couchbase.ScopeNotFoundError);
    expect(!("market" in (await listed(manager))), "the scope is gone");
  },
  "documents-in-collections": async (sdk) => {
    const fruit = await created(sdk, "shop", "fruit");
    const nuts = await created(sdk, "shop", "nuts");
    const key = sdk.key();
    await fruit.upsert(key, "fruit");
    const stored = await nuts.upsert(key, "nuts");
    await expectError(sdk.collection.get(key), couchbase.DocumentNotFoundError);
    expectEqual((await fruit.get(key)).content, "fruit", "value");
    await fruit.remove(key);
    await expectError(fruit.get(key), couchbase.DocumentNotFoundError);
    expectEqual((await nuts.get(key)).content, "nuts", "value");
    const part = await nuts.mutateIn("parts", [couchbase.MutateInSpec.upsert("a", 1)],
      { storeSemantics: couchbase.StoreSemantics.Upsert });
    const counted = await nuts.binary().increment("count", 1, { initial: 7 });
    expectEqual(counted.value, 7, "counter");
    const found = await nuts.scan(new couchbase.RangeScan(),
      { idsOnly: true, ...sees(stored.token, part.token, counted.token) });
    expectEqual(found.map(({ id }) => id).sort(), ["count", key, "parts"].sort(), "a scan's keys");
  },
  "dropped-collection": async (sdk) => {
    const collection = await created(sdk, "shop", "short");
    await collection.upsert("k", 1);
    await sdk.bucket.collections().dropCollection("short", "shop");
    await expectError(collection.get("k", BRIEF), ...GONE);
    await expectError(collection.upsert("k", 2, BRIEF), ...GONE);
    const again = await created(sdk, "shop", "short");
    await expectError(again.get("k"), couchbase.DocumentNotFoundError);
    await again.upsert("k", 3);
    expectEqual((await again.get("k")).content, 3, "value");
  },
  "collection-expiry": async (sdk) => {
    const collection = await created(sdk, "shop", "fresh", { maxExpiry: 2 });
    const exists = async () => (await collection.exists("k")).exists;
    const began = Date.now();
    await collection.upsert("k", 1);
    await waitUntil(async () => !(await exists()), 10000, "it is over by itself");
    expect(Date.now() - began > 900, "not at once");
  },
  "collection-expiry-changes": async (sdk) => {
    const collection = await created(sdk, "shop", "changing");
    const manager = sdk.bucket.collections();
    await manager.updateCollection("changing", "shop", { maxExpiry: 1 });
    await collection.upsert("k", 1);
    await waitUntil(async () => !(await collection.exists("k")).exists, 10000, "it is over");
    const unknown = manager.updateCollection("none", "shop", { maxExpiry: 1 });
    await expectError(unknown, couchbase.CollectionNotFoundError);
  },
  "unknown-collection": async (sdk) => {
    const unknown = sdk.bucket.scope("_default").collection("unknown");
    await expectError(unknown.get("k", BRIEF), ...GONE);
    await expectError(sdk.bucket.scope("unknown").collection("c").get("k", BRIEF), ...GONE);
  },
};
