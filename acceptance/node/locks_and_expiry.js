// Cases: locks, and documents that expire.
"use strict";

const couchbase = require("couchbase");
const { expect, expectEqual, expectError, sleep, waitUntil } = require("./expect");
const { number } = require("./sdk");

const LOCK_SECONDS = 15;
// The SDK repeats what met a lock until this time is over.
const BRIEF = { timeout: 500 };
const LOCKED = [couchbase.DocumentLockedError, couchbase.TimeoutError];
// Expiry is counted in whole seconds of the clock, so a document may live a second less.
const LIFETIME_SECONDS = 2;
const LIFETIME_MS_MIN = 900;
const LIFETIME_MS_MAX = 4000;

/** A locked document and the CAS of the lock; it holds 1. */
async function locked(sdk) {
  const { key, cas } = await sdk.stored(1);
  const lock = await sdk.collection.getAndLock(key, LOCK_SECONDS);
  expectEqual(lock.content, 1, "value");
  expect(number(lock.cas) !== number(cas), "a lock has a CAS of its own");
  return { key, cas: lock.cas };
}

/** Watches a document of that lifetime, which has just been stored, until it is gone. */
async function expectLifetime(sdk, key, started) {
  const stored = Date.now();
  for (;;) {
    const isGone = await sdk.isGone(key);
    if (Date.now() - started >= LIFETIME_MS_MIN) break;
    expect(!isGone, `${key} is not gone at once`);
    await sleep(50);
  }
  const left = LIFETIME_MS_MAX - (Date.now() - stored);
  await waitUntil(() => sdk.isGone(key), left, `${key} expires`);
}

module.exports = {
  "get-and-lock": async (sdk) => {
    await locked(sdk);
    const missing = sdk.collection.getAndLock(sdk.key(), LOCK_SECONDS);
    await expectError(missing, couchbase.DocumentNotFoundError);
  },
  "locked-write-is-refused": async (sdk) => {
    const { key } = await locked(sdk);
    await expectError(sdk.collection.upsert(key, 2, BRIEF), ...LOCKED);
    await expectError(sdk.collection.remove(key, BRIEF), ...LOCKED);
    await sdk.expectValue(key, 1);
  },
  "locked-twice-is-refused": async (sdk) => {
    const { key } = await locked(sdk);
    await expectError(sdk.collection.getAndLock(key, LOCK_SECONDS, BRIEF), ...LOCKED);
  },
  "locked-is-readable": async (sdk) => {
    const { key, cas } = await locked(sdk);
    const read = await sdk.collection.get(key);
    expect(number(read.cas) !== number(cas), "a read does not give away the lock");
    expectEqual(read.content, 1, "value");
  },
  "write-with-lock-cas-unlocks": async (sdk) => {
    const { key, cas } = await locked(sdk);
    await sdk.collection.replace(key, 2, { cas });
    await sdk.collection.upsert(key, 3);
    await sdk.expectValue(key, 3);
  },
  "unlock": async (sdk) => {
    const { key, cas } = await locked(sdk);
    await sdk.collection.unlock(key, cas);
    await sdk.collection.upsert(key, 2);
    await sdk.expectValue(key, 2);
  },
  "unlock-with-wrong-cas": async (sdk) => {
    const { key, cas } = await locked(sdk);
    const wrong = sdk.collection.unlock(key, (number(cas) + 1n).toString(), BRIEF);
    await expectError(wrong, couchbase.CasMismatchError, ...LOCKED);
    await sdk.collection.unlock(key, cas);
  },
  "unlock-not-locked": async (sdk) => {
    const { key, cas } = await sdk.stored(1);
    await expectError(sdk.collection.unlock(key, cas), couchbase.DocumentNotLockedError);
  },
  "unlock-missing": (sdk) =>
    expectError(sdk.collection.unlock(sdk.key(), "1"), couchbase.DocumentNotFoundError),
  "lock-ends": async (sdk) => {
    const { key, cas } = await sdk.stored(1);
    await sdk.collection.getAndLock(key, 1);
    const hasOldCas = async () => number((await sdk.collection.get(key)).cas) === number(cas);
    await waitUntil(hasOldCas, LIFETIME_MS_MAX, "the lock ends by itself");
    await sdk.collection.upsert(key, 2);
  },
  "touch": async (sdk) => {
    const { key, cas } = await sdk.stored(1);
    const started = Date.now();
    const touched = await sdk.collection.touch(key, LIFETIME_SECONDS);
    expect(number(touched.cas) > number(cas), "a new expiry is a mutation");
    await expectLifetime(sdk, key, started);
  },
  "touch-missing": (sdk) => expectError(sdk.collection.touch(sdk.key(), LIFETIME_SECONDS),
    couchbase.DocumentNotFoundError),
  "get-and-touch": async (sdk) => {
    const { key } = await sdk.stored(1);
    const started = Date.now();
    const read = await sdk.collection.getAndTouch(key, LIFETIME_SECONDS);
    expectEqual(read.content, 1, "value");
    await expectLifetime(sdk, key, started);
    const again = sdk.collection.getAndTouch(key, LIFETIME_SECONDS);
    await expectError(again, couchbase.DocumentNotFoundError);
  },
  "expiry": async (sdk) => {
    const started = Date.now();
    const { key } = await sdk.stored(1, { expiry: LIFETIME_SECONDS });
    await expectLifetime(sdk, key, started);
    for (const attempt of [sdk.collection.get(key), sdk.collection.replace(key, 2),
      sdk.collection.remove(key)]) {
      await expectError(attempt, couchbase.DocumentNotFoundError);
    }
  },
  "expiry-is-told": async (sdk) => {
    const { key } = await sdk.stored(1, { expiry: 3600 });
    const { expiryTime } = await sdk.collection.get(key, { withExpiry: true });
    const left = expiryTime - Date.now() / 1000;
    expect(left > 3500 && left < 3610, `an hour is left, or nearly so: ${left}`);
    const { key: lasting } = await sdk.stored(1);
    const read = await sdk.collection.get(lasting, { withExpiry: true });
    expect(!read.expiryTime, "without an expiry it lasts");
  },
  "expiry-is-removed-by-upsert": async (sdk) => {
    const { key: passing } = await sdk.stored(1, { expiry: 1 });
    const { key: lasting } = await sdk.stored(1, { expiry: 1 });
    await sdk.collection.upsert(lasting, 2);
    await waitUntil(() => sdk.isGone(passing), LIFETIME_MS_MAX, "the other document expires");
    await sdk.expectValue(lasting, 2);
  },
  "preserve-expiry": async (sdk) => {
    const started = Date.now();
    const { key } = await sdk.stored(1, { expiry: LIFETIME_SECONDS });
    await sdk.collection.upsert(key, 2, { preserveExpiry: true });
    await sdk.expectValue(key, 2);
    await expectLifetime(sdk, key, started);
  },
  "expired-can-be-inserted": async (sdk) => {
    const { key } = await sdk.stored(1, { expiry: 1 });
    await waitUntil(() => sdk.isGone(key), LIFETIME_MS_MAX, "the document expires");
    await sdk.collection.insert(key, 2);
    await sdk.expectValue(key, 2);
  },
};
