// Cases: whole documents.
"use strict";

const couchbase = require("couchbase");
const { expect, expectEqual, expectError } = require("./expect");
const { BUCKET, number } = require("./sdk");

/** A document with an old and a present CAS; it holds 2. */
async function overwritten(sdk) {
  const { key, cas } = await sdk.stored(1);
  const { cas: present } = await sdk.collection.upsert(key, 2);
  return { key, stale: cas, present };
}

module.exports = {
  "upsert-and-get": async (sdk) => {
    const { key, cas } = await sdk.stored({ n: 1 });
    const read = await sdk.collection.get(key);
    expect(number(cas) !== 0n, "a store returns a CAS");
    expectEqual(number(read.cas), number(cas), "CAS that is read");
    expectEqual(read.content, { n: 1 }, "value");
  },
  "upsert-overwrites": async (sdk) => {
    const { key, stale, present } = await overwritten(sdk);
    expect(number(present) > number(stale), "the CAS of a document grows");
    await sdk.expectValue(key, 2);
  },
  "insert-new": async (sdk) => {
    const key = sdk.key();
    await sdk.collection.insert(key, 1);
    await sdk.expectValue(key, 1);
  },
  "insert-existing": async (sdk) => {
    const { key } = await sdk.stored(1);
    await expectError(sdk.collection.insert(key, 2), couchbase.DocumentExistsError);
    await sdk.expectValue(key, 1);
  },
  "get-missing": (sdk) =>
    expectError(sdk.collection.get(sdk.key()), couchbase.DocumentNotFoundError),
  "replace-existing": async (sdk) => {
    const { key } = await sdk.stored(1);
    await sdk.collection.replace(key, 2);
    await sdk.expectValue(key, 2);
  },
  "replace-missing": async (sdk) => {
    const key = sdk.key();
    await expectError(sdk.collection.replace(key, 1), couchbase.DocumentNotFoundError);
    expect(await sdk.isGone(key), "a refused replace creates nothing");
  },
  "replace-with-cas": async (sdk) => {
    const { key, cas } = await sdk.stored(1);
    const replaced = await sdk.collection.replace(key, 2, { cas });
    expect(number(replaced.cas) !== number(cas), "a replace changes the CAS");
    await sdk.expectValue(key, 2);
  },
  "replace-with-stale-cas": async (sdk) => {
    const { key, stale } = await overwritten(sdk);
    const replace = sdk.collection.replace(key, 3, { cas: stale });
    await expectError(replace, couchbase.CasMismatchError);
    await sdk.expectValue(key, 2);
  },
  "exists": async (sdk) => {
    const key = sdk.key();
    expect(await sdk.isGone(key), "a key never stored does not exist");
    const { cas } = await sdk.collection.upsert(key, 1);
    const found = await sdk.collection.exists(key);
    expect(found.exists, "a stored document exists");
    expectEqual(number(found.cas), number(cas), "CAS of a document");
    await sdk.collection.remove(key);
    expect(await sdk.isGone(key), "a removed document does not exist");
  },
  "remove": async (sdk) => {
    const { key, cas } = await sdk.stored(1);
    const removed = await sdk.collection.remove(key);
    expect(number(removed.cas) > number(cas), "a removal has a CAS of its own");
    await expectError(sdk.collection.get(key), couchbase.DocumentNotFoundError);
  },
  "remove-missing": async (sdk) => {
    const { key } = await sdk.stored(1);
    await sdk.collection.remove(key);
    for (const missing of [key, sdk.key()]) {
      await expectError(sdk.collection.remove(missing), couchbase.DocumentNotFoundError);
    }
  },
  "remove-with-stale-cas": async (sdk) => {
    const { key, stale, present } = await overwritten(sdk);
    const remove = sdk.collection.remove(key, { cas: stale });
    await expectError(remove, couchbase.CasMismatchError);
    await sdk.expectValue(key, 2);
    await sdk.collection.remove(key, { cas: present });
    expect(await sdk.isGone(key), "the right CAS removes");
  },
  "insert-after-remove": async (sdk) => {
    const { key } = await sdk.stored(1);
    const removed = await sdk.collection.remove(key);
    const inserted = await sdk.collection.insert(key, 2);
    expect(number(inserted.cas) > number(removed.cas), "the CAS grows over a removal");
    await sdk.expectValue(key, 2);
  },
  "mutation-tokens": async (sdk) => {
    const { key, token } = await sdk.stored(1);
    const replaced = await sdk.collection.replace(key, 2);
    const removed = await sdk.collection.remove(key);
    const first = token.toJSON();
    expect(BigInt(first.partition_uuid) !== 0n, "a mutation returns a token with a uuid");
    for (const [index, each] of [token, replaced.token, removed.token].entries()) {
      const { bucket_name, partition_id, partition_uuid, sequence_number } = each.toJSON();
      expectEqual([bucket_name, partition_id, partition_uuid], [BUCKET, first.partition_id,
        first.partition_uuid], "token");
      expectEqual(BigInt(sequence_number), BigInt(first.sequence_number) + BigInt(index), "seqno");
    }
  },
  "unicode-key": async (sdk) => {
    for (const name of ["\u00e4\u00f6\u00fc", "\u65e5\u672c\u8a9e", "\u{1f6cb}", "a b/c\t%41"]) {
      const key = name + sdk.key();
      await sdk.collection.upsert(key, name);
      await sdk.expectValue(key, name);
    }
  },
  "key-of-250-bytes": async (sdk) => {
    const key = "k".repeat(250);
    await sdk.collection.upsert(key, 250);
    await sdk.expectValue(key, 250);
  },
  "key-of-251-bytes": async (sdk) => {
    const store = sdk.collection.upsert("k".repeat(251), 251);
    const error = await expectError(store, couchbase.CouchbaseError);
    expect(!(error instanceof couchbase.TimeoutError), "the refusal is no timeout");
  },
};
