// Cases: scans of many documents.
"use strict";

const couchbase = require("couchbase");
const { expect, expectEqual } = require("./expect");
const { number } = require("./sdk");

const COUNT = 1000;
const name = (index) => `scanned-${String(index).padStart(4, "0")}`;
const names = (from, to) => Array.from({ length: to - from }, (_, index) => name(from + index));

/** What a scan has to see: these mutations. */
function sees(...tokens) {
  // The SDK keeps the first token of a vBucket, not the latest.
  const seqno = (token) => Number(token.toJSON().sequence_number);
  const state = new couchbase.MutationState();
  state.add(...tokens.sort((left, right) => seqno(right) - seqno(left)));
  return { consistentWith: state, timeout: 60000, concurrency: 8 };
}

/** Stores documents, and tells what a scan has to see of them. */
async function filled(collection, count) {
  const stores = names(0, count).map((key, index) => collection.upsert(key, { n: index }));
  return sees(...(await Promise.all(stores)).map(({ token }) => token));
}

/** Every kind of scan finds what it is to find among this many documents. */
async function expectScans(collection, count) {
  const options = await filled(collection, count);
  const keys = async (scan) =>
    (await collection.scan(scan, { idsOnly: true, ...options })).map(({ id }) => id).sort();
  const range = new couchbase.RangeScan(new couchbase.ScanTerm(name(100)),
    new couchbase.ScanTerm(name(200), true));
  expectEqual(await keys(range), names(100, 200), "keys of a range");
  for (const { id, content, cas } of await collection.scan(range, options)) {
    expectEqual(id, name(content.n), "value of a range");
    expect(number(cas) !== 0n, "a result has a CAS");
  }
  expectEqual(await keys(new couchbase.PrefixScan("scanned-")), names(0, count), "all keys");
  expectEqual(await keys(new couchbase.PrefixScan("scanned-01")), names(100, 200), "a prefix");
  expectEqual(await keys(new couchbase.PrefixScan("absent-")), [], "nothing");
  const sample = await keys(new couchbase.SamplingScan(20, 5));
  expect(sample.length > 0 && new Set(sample).size === sample.length && sample.length <= 20,
    "a sample is a part");
}

module.exports = { "scans-of-many-documents": (sdk) => expectScans(sdk.collection, COUNT) };
// Not cases themselves.
Object.defineProperties(module.exports, {
  expectScans: { value: expectScans },
  sees: { value: sees },
});
