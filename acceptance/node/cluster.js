// Cases: two nodes, one replica.
"use strict";

const couchbase = require("couchbase");
const { expect, expectEqual, expectError, succeeds, waitUntil } = require("./expect");
const { expectScans } = require("./scans");
const { connectBehindTls, exchange } = require("./tls");
const { vbucketOf } = require("./vbuckets");

const COUNT = 40;
const WAIT_MS = 20000;
const LEVELS = [couchbase.DurabilityLevel.Majority,
  couchbase.DurabilityLevel.MajorityAndPersistOnMaster,
  couchbase.DurabilityLevel.PersistToMajority];
const MAJORITY = { durabilityLevel: couchbase.DurabilityLevel.Majority };
const keys = (name) => Array.from({ length: COUNT }, (_, index) => `${name}-${index}`);

async function durableWrites({ collection }, durabilityLevel) {
  for (const [index, key] of keys(`durable-${durabilityLevel}`).entries()) {
    await collection.insert(key, 0, { durabilityLevel });
    await collection.upsert(key, 1, { durabilityLevel });
    const { cas } = await collection.get(key);
    await collection.replace(key, 2, { durabilityLevel, cas });
    expectEqual((await collection.get(key)).content, 2, "value");
    if (index % 2) {
      await collection.remove(key, { durabilityLevel });
      expect(!(await collection.exists(key)).exists, "it is removed");
    }
  }
}

module.exports = {
  "tls-two-nodes": async () => {
    const cluster = await connectBehindTls({});
    for (const key of keys("tls")) await exchange(cluster, key);
    await cluster.close();
  },
  "sdk-durable-writes-at-every-level": async (sdk) => {
    for (const level of LEVELS) await durableWrites(sdk, level);
    await sdk.order("CLUSTER replicated");
  },
  "sdk-replicas-can-be-read": async (sdk) => {
    for (const key of keys("replica")) await sdk.collection.upsert(key, { key });
    await sdk.order("CLUSTER replicated");
    for (const key of keys("replica")) {
      const copies = await sdk.collection.getAllReplicas(key);
      expectEqual(copies.map(({ content }) => content), [{ key }, { key }], "copies");
      expectEqual(copies.filter(({ isReplica }) => isReplica).length, 1, "replicas");
      expectEqual((await sdk.collection.getAnyReplica(key)).content, { key }, "any copy");
    }
    await expectError(sdk.collection.getAnyReplica("absent"), couchbase.CouchbaseError);
  },
  "sdk-observed-writes-reach-the-replica": async (sdk) => {
    for (const key of keys("observed").slice(0, 5)) {
      const observed = { durabilityPersistTo: 2, durabilityReplicateTo: 1, timeout: 10000 };
      await sdk.collection.upsert(key, { key }, observed);
      const copies = await sdk.collection.getAllReplicas(key);
      expectEqual(copies.map(({ content }) => content), [{ key }, { key }], "copies");
    }
  },
  "sdk-parts-of-replicas-can-be-read": async (sdk) => {
    const { MutateInSpec: Change, LookupInSpec: Look, StoreSemantics } = couchbase;
    for (const key of keys("part")) {
      await sdk.collection.mutateIn(key, [Change.upsert("meta", { key }, { xattr: true }),
        Change.upsert("n", 1)], { storeSemantics: StoreSemantics.Upsert });
    }
    await sdk.order("CLUSTER replicated");
    const paths = [Look.get("meta.key", { xattr: true }), Look.get("n"), Look.exists("none")];
    const values = ({ content }) => content.map(({ value }) => value);
    for (const key of keys("part")) {
      const copies = await sdk.collection.lookupInAllReplicas(key, paths);
      expectEqual(copies.map(values), [[key, 1, false], [key, 1, false]], "copies");
      const any = await sdk.collection.lookupInAnyReplica(key, paths);
      expectEqual(values(any), [key, 1, false], "any copy");
    }
  },
  "sdk-scans-see-both-nodes": ({ collection }) => expectScans(collection, 300),
  "sdk-transactions-on-two-nodes": async (sdk) => {
    const [first, second, third] = ["txn-1", "txn-2", "txn-3"];
    await sdk.collection.upsert(first, { n: 1 });
    await sdk.collection.upsert(second, { n: 2 });
    const change = async (context) => {
      await context.replace(await context.get(sdk.collection, first), { n: 10 });
      await context.remove(await context.get(sdk.collection, second));
      await context.insert(sdk.collection, third, { n: 3 });
    };
    await expectError(sdk.cluster.transactions().run(async (context) => {
      await change(context);
      throw new Error("the application has changed its mind");
    }), couchbase.TransactionFailedError);
    await sdk.expectValue(first, { n: 1 });
    await sdk.cluster.transactions().run(change);
    await sdk.expectValue(first, { n: 10 });
    await sdk.expectValue(third, { n: 3 });
    expect(await sdk.isGone(second), "removed");
  },
  "sdk-collections-on-two-nodes": async (sdk) => {
    const manager = sdk.bucket.collections();
    await manager.createScope("shop");
    await manager.createCollection("fruit", "shop");
    const fruit = sdk.bucket.scope("shop").collection("fruit");
    for (const key of keys("fruit")) {
      await fruit.upsert(key, { key }, MAJORITY);
      expectEqual((await fruit.get(key)).content, { key }, "value");
    }
    await manager.dropScope("shop");
    await expectError(fruit.get("fruit-0", { timeout: 1000 }), couchbase.CollectionNotFoundError,
      couchbase.ScopeNotFoundError, couchbase.TimeoutError);
  },
  "sdk-stopped-replica-makes-durable-writes-ambiguous": async (sdk) => {
    const { collection } = sdk;
    const onFirst = keys("stopped").filter((key) => vbucketOf(key) % 2 === 0);
    for (const key of onFirst) await collection.upsert(key, 1);
    await sdk.order("CLUSTER pause 1");
    const write = collection.upsert(onFirst[0], 2, { ...MAJORITY, timeout: 3000 });
    await expectError(write, couchbase.AmbiguousTimeoutError, couchbase.DurabilityAmbiguousError);
    await sdk.expectValue(onFirst[0], 1);
    await collection.upsert(onFirst[1], 3);
    await sdk.expectValue(onFirst[1], 3);
    await sdk.order("CLUSTER resume 1");
    const goesOn = () => succeeds(collection.upsert(onFirst[0], 4, MAJORITY));
    await waitUntil(goesOn, WAIT_MS, "durable writes go on");
    await sdk.expectValue(onFirst[0], 4);
  },
  "sdk-failover-keeps-the-sdk-working": async (sdk) => {
    const { collection } = sdk;
    const durable = { durabilityLevel: couchbase.DurabilityLevel.PersistToMajority };
    for (const key of keys("failover")) await collection.upsert(key, { key }, durable);
    await sdk.order("CLUSTER kill 0");
    await sdk.order("CLUSTER failover 0");
    for (const key of keys("failover")) {
      await waitUntil(() => succeeds(sdk.expectValue(key, { key })), WAIT_MS, `${key} is read`);
      await collection.upsert(key, { key, again: true });
    }
    // One of two copies is missing: no majority can be reached.
    const impossible = collection.upsert("failover-0", {}, durable);
    await expectError(impossible, couchbase.DurabilityImpossibleError);
    await sdk.order("CLUSTER recover 0");
    await sdk.order("CLUSTER replicated");
    const goesOn = () => succeeds(collection.upsert("failover-0", { n: 1 }, durable));
    await waitUntil(goesOn, WAIT_MS, "durable writes go on");
    for (const key of keys("failover").slice(1)) {
      await sdk.expectValue(key, { key, again: true });
    }
  },
};
