// Cases: counters, and bytes that are added.
"use strict";

const couchbase = require("couchbase");
const { expect, expectEqual, expectError } = require("./expect");
const { number } = require("./sdk");

const transcoder = new couchbase.RawBinaryTranscoder();
const MISSING = [couchbase.DocumentNotFoundError];

async function storedBytes(sdk, text) {
  return (await sdk.stored(Buffer.from(text), { transcoder })).key;
}

async function expectBytes(sdk, key, text) {
  const { content } = await sdk.collection.get(key, { transcoder });
  expectEqual(content.toString(), text, "value");
}

/** A counter with this value. */
async function counter(sdk, initial) {
  const key = sdk.key();
  expectEqual((await sdk.binary.increment(key, 1, { initial })).value, initial, "initial value");
  return key;
}

module.exports = {
  "append": async (sdk) => {
    const key = await storedBytes(sdk, "hello");
    await sdk.binary.append(key, " world");
    await expectBytes(sdk, key, "hello world");
  },
  "prepend": async (sdk) => {
    const key = await storedBytes(sdk, "world");
    await sdk.binary.prepend(key, "hello ");
    await expectBytes(sdk, key, "hello world");
  },
  "append-with-stale-cas": async (sdk) => {
    const key = await storedBytes(sdk, "hello");
    const { cas } = await sdk.collection.get(key, { transcoder });
    await sdk.binary.append(key, " ", { cas });
    for (const add of [sdk.binary.append(key, "x", { cas }),
      sdk.binary.prepend(key, "x", { cas })]) {
      await expectError(add, couchbase.CasMismatchError);
    }
    await expectBytes(sdk, key, "hello ");
  },
  "append-missing": async (sdk) => {
    await expectError(sdk.binary.append(sdk.key(), "x"), ...MISSING);
    await expectError(sdk.binary.prepend(sdk.key(), "x"), ...MISSING);
  },
  "increment-creates": async (sdk) => {
    await sdk.expectValue(await counter(sdk, 100), 100);
  },
  "increment": async (sdk) => {
    const key = await counter(sdk, 1);
    const first = await sdk.binary.increment(key, 1);
    expect(number(first.cas) !== 0n, "a counter returns a CAS");
    expectEqual(first.value, 2, "counter");
    expectEqual((await sdk.binary.increment(key, 40)).value, 42, "counter");
  },
  "decrement": async (sdk) => {
    const key = await counter(sdk, 42);
    expectEqual((await sdk.binary.decrement(key, 1)).value, 41, "counter");
    expectEqual((await sdk.binary.decrement(key, 40)).value, 1, "counter");
  },
  "decrement-stops-at-zero": async (sdk) => {
    const key = await counter(sdk, 2);
    expectEqual((await sdk.binary.decrement(key, 10)).value, 0, "counter");
  },
  "increment-missing": async (sdk) => {
    const key = sdk.key();
    await expectError(sdk.binary.increment(key, 1), ...MISSING);
    expect(await sdk.isGone(key), "a counter without an initial value is not created");
  },
  "increment-not-a-number": async (sdk) => {
    const key = await storedBytes(sdk, "twelve");
    const error = await expectError(sdk.binary.increment(key, 1), couchbase.CouchbaseError);
    expect(!(error instanceof couchbase.TimeoutError), "the refusal is no timeout");
    await expectBytes(sdk, key, "twelve");
  },
  "counter-is-a-document": async (sdk) => {
    const { key } = await sdk.stored(41);
    expectEqual((await sdk.binary.increment(key, 1)).value, 42, "counter");
    await sdk.expectValue(key, 42);
  },
};
