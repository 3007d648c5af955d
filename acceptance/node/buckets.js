// Cases: buckets that are made, changed, emptied and deleted while the node runs.
"use strict";

const couchbase = require("couchbase");
const { expect, expectEqual, expectError, waitUntil } = require("./expect");
const { BUCKET } = require("./sdk");

const NAME = "orders";
const QUOTA_MB = 100;
const PATIENCE_MS = 20000;

/** What a bucket is made with. */
const settings = (more) => ({
  name: NAME, bucketType: couchbase.BucketType.Couchbase, ramQuotaMB: QUOTA_MB, numReplicas: 0,
  ...more,
});

/** The documents of a bucket that has just been made. */
const documents = (sdk) => sdk.cluster.bucket(NAME).defaultCollection();

/** Runs a body with a new bucket, which is dropped in the end. */
async function withBucket(sdk, more, body) {
  const manager = sdk.cluster.buckets();
  await manager.createBucket(settings(more));
  try {
    await body(manager, documents(sdk));
  } finally {
    await manager.dropBucket(NAME);
  }
}

/** The names of all buckets. */
const names = async (manager) => (await manager.getAllBuckets()).map(({ name }) => name).sort();

/** Whether the bucket answers that there is no such document. */
async function isMissing(sdk, key) {
  try {
    return !(await documents(sdk).exists(key, { timeout: 1000 })).exists;
  } catch (error) {
    if (error instanceof couchbase.CouchbaseError) return false;
    throw error;
  }
}

module.exports = {
  "buckets-are-made-listed-and-dropped": async (sdk) => {
    const manager = sdk.cluster.buckets();
    const { key } = await sdk.stored({ of: BUCKET });
    for (const bucketType of [couchbase.BucketType.Couchbase, couchbase.BucketType.Ephemeral]) {
      await withBucket(sdk, { bucketType }, async (_, collection) => {
        const again = manager.createBucket(settings({ bucketType }));
        await expectError(again, couchbase.BucketExistsError);
        const found = await manager.getBucket(NAME);
        expectEqual([found.name, found.ramQuotaMB, found.bucketType],
          [NAME, QUOTA_MB, bucketType], "the bucket");
        expectEqual(await names(manager), [BUCKET, NAME], "all buckets");
        await expectError(collection.get("k"), couchbase.DocumentNotFoundError);
        await collection.upsert("k", { of: NAME });
        expectEqual((await collection.get("k")).content, { of: NAME }, "the document");
      });
      await expectError(manager.getBucket(NAME), couchbase.BucketNotFoundError);
      await expectError(manager.dropBucket(NAME), couchbase.BucketNotFoundError);
    }
    await sdk.expectValue(key, { of: BUCKET });
  },
  "buckets-are-changed": async (sdk) => {
    await withBucket(sdk, {}, async (manager, collection) => {
      await collection.upsert("k", 1);
      await manager.updateBucket({ name: NAME, ramQuotaMB: QUOTA_MB + 50, numReplicas: 1,
        flushEnabled: true, compressionMode: couchbase.CompressionMode.Active });
      const found = await manager.getBucket(NAME);
      expectEqual([found.ramQuotaMB, found.numReplicas, found.flushEnabled, found.compressionMode],
        [QUOTA_MB + 50, 1, true, couchbase.CompressionMode.Active], "the settings");
      expectEqual((await collection.get("k")).content, 1, "the document");
      const unknown = manager.updateBucket({ name: "none", ramQuotaMB: QUOTA_MB });
      await expectError(unknown, couchbase.BucketNotFoundError);
    });
  },
  "a-bucket-is-flushed-where-that-is-enabled": async (sdk) => {
    await withBucket(sdk, { flushEnabled: false }, async (manager, collection) => {
      await collection.upsert("k", 1);
      await expectError(manager.flushBucket(NAME), couchbase.BucketNotFlushableError);
      expect((await collection.exists("k")).exists, "nothing is gone");
      await manager.updateBucket({ name: NAME, ramQuotaMB: QUOTA_MB, flushEnabled: true });
      await manager.flushBucket(NAME);
      expect(!(await collection.exists("k")).exists, "the bucket is empty");
      await collection.upsert("k", 2);
      await expectError(manager.flushBucket("none"), couchbase.BucketNotFoundError);
    });
  },
  "buckets-that-cannot-be-are-refused": async (sdk) => {
    const manager = sdk.cluster.buckets();
    const wrong = [{ ramQuotaMB: 1 << 24 }, { ramQuotaMB: 99 }, { name: "a/b" }, { maxExpiry: 2 ** 31 }];
    for (const more of wrong) {
      await expectError(manager.createBucket(settings(more)), couchbase.CouchbaseError);
    }
    expectEqual(await names(manager), [BUCKET], "all buckets");
  },
  "a-dropped-bucket-is-gone-for-its-clients": async (sdk) => {
    await withBucket(sdk, {}, async (manager, collection) => {
      await collection.upsert("k", 1);
      await manager.dropBucket(NAME);
      await expectError(collection.get("k", { timeout: 1000 }), couchbase.CouchbaseError);
      const evictionPolicy = couchbase.EvictionPolicy.FullEviction;
      await manager.createBucket(settings({ evictionPolicy }));
      await waitUntil(() => isMissing(sdk, "k"), PATIENCE_MS, "the new bucket is empty");
      await documents(sdk).upsert("k", 2);
    });
  },
};
