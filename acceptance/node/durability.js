// Cases: durable writes, and what is there after a restart.
"use strict";

const couchbase = require("couchbase");
const { expect, expectEqual, expectError, succeeds, waitUntil } = require("./expect");
const { number } = require("./sdk");

const COUNT = 200;
const LEVELS = [couchbase.DurabilityLevel.Majority,
  couchbase.DurabilityLevel.MajorityAndPersistOnMaster,
  couchbase.DurabilityLevel.PersistToMajority];
const seqno = (token) => BigInt(token.toJSON().sequence_number);

/** Takes a document from its insertion to its removal. */
async function durableLife(sdk, durabilityLevel) {
  const { collection, binary } = sdk;
  const [key, count] = [sdk.key(), sdk.key()];
  const first = await collection.insert(key, 1, { durabilityLevel });
  const second = await collection.upsert(key, 2, { durabilityLevel });
  const stale = collection.replace(key, 3, { durabilityLevel, cas: first.cas });
  await expectError(stale, couchbase.CasMismatchError);
  const third = await collection.replace(key, 3, { durabilityLevel, cas: second.cas });
  const again = collection.insert(key, 4, { durabilityLevel });
  await expectError(again, couchbase.DocumentExistsError);
  const read = await collection.get(key);
  expectEqual([read.content, number(read.cas)], [3, number(third.cas)], "value and CAS");
  expect(seqno(third.token) > seqno(second.token), "seqnos of commits rise");
  for (const value of [41, 42]) {
    const counted = await binary.increment(count, 1, { initial: 41, durabilityLevel });
    expectEqual(counted.value, value, "counter");
  }
  expectEqual((await binary.decrement(count, 2, { durabilityLevel })).value, 40, "counter");
  await binary.append(count, "0", { durabilityLevel });
  await binary.prepend(count, "1", { durabilityLevel });
  await sdk.expectValue(count, 1400);
  await collection.remove(key, { durabilityLevel });
  expect(await sdk.isGone(key), "removed");
}

module.exports = {
  "durable-writes-are-committed": async (sdk) => {
    for (const level of LEVELS) await durableLife(sdk, level);
  },
  "persist-to-active": async (sdk) => {
    const observed = { durabilityPersistTo: 1, timeout: 10000 };
    const { key } = await sdk.stored(1, observed);
    await sdk.collection.replace(key, 2, observed);
    await sdk.expectValue(key, 2);
    await sdk.collection.remove(key, observed);
  },
  "restart-keeps-everything": async (sdk) => {
    const stored = await Promise.all(Array.from({ length: COUNT }, (_, n) => sdk.stored({ n })));
    const { key: removed } = await sdk.stored(1);
    await sdk.collection.remove(removed);
    const { key: counter } = await sdk.stored(41);
    const { key: expiring } = await sdk.stored(1, { expiry: 2 });
    await sdk.order("NODE restart");
    const answers = () => succeeds(sdk.collection.exists(removed, { timeout: 1000 }));
    await waitUntil(answers, 15000, "the same SDK object works");
    for (const [n, { key, cas }] of stored.entries()) {
      const read = await sdk.collection.get(key);
      expectEqual([read.content, number(read.cas)], [{ n }, number(cas)], `value of ${key}`);
    }
    expect(await sdk.isGone(removed), "a removed document stays removed");
    expectEqual((await sdk.binary.increment(counter, 1)).value, 42, "counter");
    await waitUntil(() => sdk.isGone(expiring), 4000, "the expiry is kept");
  },
  "restart-goes-on-in-the-same-branch": async (sdk) => {
    const before = await sdk.stored(1);
    await sdk.order("NODE restart");
    const after = await sdk.collection.upsert(before.key, 2, { timeout: 15000 });
    const uuid = ({ token }) => token.toJSON().partition_uuid;
    expect(number(after.cas) > number(before.cas), "the CAS grows");
    expectEqual(uuid(after), uuid(before), "uuid");
    expect(seqno(after.token) > seqno(before.token), "seqnos go on");
  },
};
