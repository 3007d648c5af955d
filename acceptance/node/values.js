// Cases: values of all kinds and sizes.
"use strict";

const { createHash, randomBytes } = require("node:crypto");
const couchbase = require("couchbase");
const { expect, expectEqual, expectError } = require("./expect");

const BYTES_MAX = 20 << 20;
const binary = new couchbase.RawBinaryTranscoder();
const patient = { timeout: 20000 };

async function roundTrip(sdk, value, transcoder) {
  const { key } = await sdk.stored(value, { transcoder, ...patient });
  return (await sdk.collection.get(key, { transcoder, ...patient })).content;
}

async function expectDigestReturns(sdk, size) {
  const digest = (bytes) => createHash("sha256").update(bytes).digest("hex");
  const value = randomBytes(size);
  expectEqual(digest(await roundTrip(sdk, value, binary)), digest(value), "digest");
}

module.exports = {
  "json-values": async (sdk) => {
    for (const value of [{}, [], { a: { b: [1, 2, { c: null }] } }, [true, false, null], "text",
      "", 0, -1, 2 ** 53, 1.5, { "\u00e4": "\u{1f6cb}" }]) {
      expectEqual(await roundTrip(sdk, value), value, "JSON value");
    }
  },
  "json-as-text": async (sdk) => {
    const text = '{"a" : 1,  "b":[ 2 ] }';
    const read = await roundTrip(sdk, text, new couchbase.RawJsonTranscoder());
    expectEqual(read.toString(), text, "JSON text");
  },
  "string-values": async (sdk) => {
    for (const text of ["plain", "\u00e4\u00f6 \u65e5\u672c \u{1f6cb}", "{not json"]) {
      expectEqual(await roundTrip(sdk, text, new couchbase.RawStringTranscoder()), text, "string");
    }
  },
  "binary-values": async (sdk) => {
    const everything = Buffer.from(Array.from({ length: 256 }, (_, index) => index));
    for (const value of [everything, Buffer.from([0]), Buffer.from("\r\n"),
      Buffer.concat(Array(100).fill(everything))]) {
      expect(value.equals(await roundTrip(sdk, value, binary)), "bytes come back unchanged");
    }
  },
  "empty-value": async (sdk) => {
    expectEqual((await roundTrip(sdk, Buffer.alloc(0), binary)).length, 0, "bytes");
  },
  "value-of-1-mib": (sdk) => expectDigestReturns(sdk, 1 << 20),
  "value-of-20-mib": async (sdk) => {
    await expectDigestReturns(sdk, BYTES_MAX);
    await expectDigestReturns(sdk, BYTES_MAX - 1);
  },
  "value-above-20-mib": async (sdk) => {
    const key = sdk.key();
    const options = { transcoder: binary, ...patient };
    const store = sdk.collection.upsert(key, randomBytes(BYTES_MAX + 1), options);
    await expectError(store, couchbase.ValueTooLargeError);
    expect(await sdk.isGone(key), "nothing is stored");
  },
  "compressible-value": async (sdk) => {
    const text = "to be compressed ".repeat(1000);
    const read = await roundTrip(sdk, text, new couchbase.RawStringTranscoder());
    expect(read === text, "a compressible text comes back unchanged");
  },
};
