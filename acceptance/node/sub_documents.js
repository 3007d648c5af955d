// Cases: parts of documents, their attributes, and transactions, which are made of those.
"use strict";

const couchbase = require("couchbase");
const { expect, expectEqual, expectError, sleep, succeeds, waitUntil } = require("./expect");
const { number } = require("./sdk");

const { LookupInSpec: Look, LookupInMacro, MutateInMacro, MutateInSpec: Change,
  StoreSemantics } = couchbase;
const DOCUMENT = { name: "Ann", scores: [3, 5], address: { city: "Ulm", lines: [1, 2, 3] } };
const XATTR = { xattr: true };
const LEVELS = [couchbase.DurabilityLevel.Majority,
  couchbase.DurabilityLevel.MajorityAndPersistOnMaster,
  couchbase.DurabilityLevel.PersistToMajority];

const change = (sdk, key, specs, options) => sdk.collection.mutateIn(key, specs, options);

/** What is at one path. */
async function look(sdk, key, path, options) {
  const { content } = await sdk.collection.lookupIn(key, [Look.get(path, options)]);
  if (content[0].error) throw content[0].error;
  return content[0].value;
}

/** The CAS that a macro has written: a number whose bytes are in the other order. */
function casOfMacro(text) {
  const bytes = Buffer.from(text.slice(2).padStart(16, "0"), "hex");
  return bytes.readBigUInt64LE();
}

/** Keys and values that transactions change: one is replaced, one removed, one inserted. */
async function changedByTransaction(sdk, run) {
  const { key: first } = await sdk.stored({ n: 1 });
  const { key: gone } = await sdk.stored({ n: 2 });
  const added = sdk.key();
  await run({ first, gone, added });
  return { first, gone, added };
}

async function commit(sdk, context, { first, gone, added }) {
  await context.replace(await context.get(sdk.collection, first), { n: 10 });
  await context.insert(sdk.collection, added, { n: 3 });
  await context.remove(await context.get(sdk.collection, gone));
}

async function expectNothingIsLeft(sdk, key) {
  const { content } = await sdk.collection.lookupIn(key, [Look.exists("txn", XATTR)]);
  expect(!content[0].value, "nothing is left of a transaction");
}

module.exports = {
  "paths-are-looked-up": async (sdk) => {
    const { key, cas } = await sdk.stored(DOCUMENT);
    const found = await sdk.collection.lookupIn(key, [Look.get("name"),
      Look.get("address.lines[-1]"), Look.exists("scores"), Look.count("scores"), Look.get("")]);
    expectEqual(number(found.cas), number(cas), "CAS");
    expectEqual(found.content.map(({ value }) => value), ["Ann", 3, true, 2, DOCUMENT], "values");
    const projected = await sdk.collection.get(key, { project: ["name", "address.city"] });
    expectEqual(projected.content, { name: "Ann", address: { city: "Ulm" } }, "part");
  },
  "paths-that-are-not-there": async (sdk) => {
    const { key } = await sdk.stored(DOCUMENT);
    const { content } = await sdk.collection.lookupIn(key, [Look.get("none"),
      Look.get("name.first"), Look.get("name"), Look.exists("none"), Look.get("a..b")]);
    expect(content[0].error instanceof couchbase.PathNotFoundError, "not found");
    expect(content[1].error instanceof couchbase.PathMismatchError, "mismatch");
    expectEqual(content[2].value, "Ann", "another path is answered");
    expectEqual(content[3].value, false, "there is no such path");
    expect(content[4].error instanceof couchbase.PathInvalidError, "invalid");
    const missing = sdk.collection.lookupIn(sdk.key(), [Look.get("a")]);
    await expectError(missing, couchbase.DocumentNotFoundError);
  },
  "paths-are-changed": async (sdk) => {
    const { key, cas } = await sdk.stored(DOCUMENT);
    const changed = await change(sdk, key, [Change.upsert("name", "Eva"),
      Change.insert("born", 1980), Change.replace("address.city", "Bonn"),
      Change.remove("scores")]);
    expect(number(changed.cas) > number(cas) && changed.token, "the CAS grows, there is a token");
    const expected = { name: "Eva", born: 1980, address: { city: "Bonn", lines: [1, 2, 3] } };
    await sdk.expectValue(key, expected);
    for (const [spec, kind] of [
      [Change.insert("born", 1), couchbase.PathExistsError],
      [Change.replace("none", 1), couchbase.PathNotFoundError],
      [Change.remove("none"), couchbase.PathNotFoundError],
      [Change.upsert("name.first", 1), couchbase.PathMismatchError],
    ]) await expectError(change(sdk, key, [spec]), kind);
    const missing = change(sdk, sdk.key(), [Change.upsert("a", 1)]);
    await expectError(missing, couchbase.DocumentNotFoundError);
  },
  "arrays-are-changed": async (sdk) => {
    const { key } = await sdk.stored({ list: [2] });
    await change(sdk, key, [Change.arrayAppend("list", [3, 4], { multi: true }),
      Change.arrayPrepend("list", 1), Change.arrayInsert("list[1]", 1.5),
      Change.arrayAddUnique("list", 5)]);
    await sdk.expectValue(key, { list: [1, 1.5, 2, 3, 4, 5] });
    const twice = change(sdk, key, [Change.arrayAddUnique("list", 5)]);
    await expectError(twice, couchbase.PathExistsError);
    const far = change(sdk, key, [Change.arrayInsert("list[9]", 5)]);
    await expectError(far, couchbase.PathNotFoundError);
  },
  "counters-in-documents": async (sdk) => {
    const { key } = await sdk.stored({ n: 5, text: "a" });
    const counted = await change(sdk, key, [Change.increment("n", 3), Change.decrement("m", 2)]);
    expectEqual(counted.content.map(({ value }) => value), [8, -2], "counters");
    const text = change(sdk, key, [Change.increment("text", 1)]);
    await expectError(text, couchbase.PathMismatchError);
    await sdk.expectValue(key, { n: 8, text: "a", m: -2 });
  },
  "parents-are-created": async (sdk) => {
    const { key } = await sdk.stored({});
    await expectError(change(sdk, key, [Change.upsert("a.b.c", 1)]), couchbase.PathNotFoundError);
    await change(sdk, key, [Change.upsert("a.b.c", 1, { createPath: true })]);
    await sdk.expectValue(key, { a: { b: { c: 1 } } });
    const deep = [..."abcdefghijklmnopqrstuvwxyz0123456789"].join(".");
    const tooDeep = change(sdk, key, [Change.upsert(deep, 1, { createPath: true })]);
    await expectError(tooDeep, couchbase.PathTooDeepError, couchbase.PathTooBigError);
  },
  "documents-are-created-by-paths": async (sdk) => {
    const [key, other] = [sdk.key(), sdk.key()];
    const upserts = { storeSemantics: StoreSemantics.Upsert };
    await change(sdk, key, [Change.upsert("a", 1)], upserts);
    await change(sdk, key, [Change.upsert("b", 2)], upserts);
    await sdk.expectValue(key, { a: 1, b: 2 });
    const inserts = { storeSemantics: StoreSemantics.Insert };
    await change(sdk, other, [Change.insert("a", 1)], inserts);
    const again = change(sdk, other, [Change.insert("b", 1)], inserts);
    await expectError(again, couchbase.DocumentExistsError);
    await sdk.expectValue(other, { a: 1 });
  },
  "paths-change-together-or-not-at-all": async (sdk) => {
    const { key, cas } = await sdk.stored({ a: 1 });
    const specs = [Change.upsert("b", 2), Change.insert("a", 2), Change.upsert("c", 3)];
    await expectError(change(sdk, key, specs), couchbase.PathExistsError);
    const found = await sdk.collection.get(key);
    expectEqual([found.content, number(found.cas)], [{ a: 1 }, number(cas)], "value and CAS");
  },
  "paths-need-json": async (sdk) => {
    const transcoder = new couchbase.RawBinaryTranscoder();
    const { key } = await sdk.stored(Buffer.from([0, 255]), { transcoder });
    const { content } = await sdk.collection.lookupIn(key, [Look.get("a")]);
    expect(content[0].error instanceof couchbase.DocumentNotJsonError, "bytes have no paths");
    const upsert = change(sdk, key, [Change.upsert("a", 1)]);
    await expectError(upsert, couchbase.DocumentNotJsonError);
  },
  "paths-with-cas-and-locks": async (sdk) => {
    const { key, cas } = await sdk.stored({ a: 1 });
    const stale = { cas: (number(cas) + 1n).toString() };
    const refused = change(sdk, key, [Change.upsert("a", 2)], stale);
    await expectError(refused, couchbase.CasMismatchError);
    await change(sdk, key, [Change.upsert("a", 2)], { cas });
    const lock = await sdk.collection.getAndLock(key, 15);
    const locked = change(sdk, key, [Change.upsert("a", 3)], { timeout: 500 });
    await expectError(locked, couchbase.DocumentLockedError, couchbase.TimeoutError);
    await change(sdk, key, [Change.upsert("a", 4)], { cas: lock.cas });
    await sdk.expectValue(key, { a: 4 });
  },
  "paths-and-expiry": async (sdk) => {
    const { key } = await sdk.stored({}, { expiry: 60 });
    const expiry = async () => (await sdk.collection.get(key, { withExpiry: true })).expiryTime;
    await change(sdk, key, [Change.upsert("a", 1)], { preserveExpiry: true });
    expect(await expiry(), "the expiry is kept");
    await change(sdk, key, [Change.upsert("a", 2)]);
    expect(!(await expiry()), "without an expiry it lasts");
    await change(sdk, key, [Change.upsert("a", 3)], { expiry: 1 });
    await waitUntil(() => sdk.isGone(key), 4000, "it expires");
  },
  "attributes-are-beside-the-body": async (sdk) => {
    const { key } = await sdk.stored({ a: 1 });
    await change(sdk, key, [Change.upsert("meta.by", "me", { xattr: true, createPath: true }),
      Change.upsert("_system", [1], XATTR), Change.upsert("b", 2)]);
    await sdk.expectValue(key, { a: 1, b: 2 });
    expectEqual(await look(sdk, key, "meta.by", XATTR), "me", "attribute");
    await sdk.collection.replace(key, { c: 3 });
    expectEqual(await look(sdk, key, "meta", XATTR), { by: "me" }, "stores keep it");
    await change(sdk, key, [Change.remove("meta", XATTR)]);
    const { content } = await sdk.collection.lookupIn(key, [Look.exists("meta", XATTR)]);
    expectEqual(content[0].value, false, "it is removed");
    expectEqual(await look(sdk, key, "_system", XATTR), [1], "another stays");
    await sdk.expectValue(key, { c: 3 });
  },
  "attributes-of-the-server": async (sdk) => {
    const { key, cas, token } = await sdk.stored({ a: 1 });
    const document = await look(sdk, key, LookupInMacro.Document, XATTR);
    expectEqual(BigInt(document.CAS), number(cas), "CAS");
    expectEqual([document.deleted, document.exptime, document.datatype], [false, 0, ["json"]],
      "fields");
    expectEqual(BigInt(document.seqno), BigInt(token.toJSON().sequence_number), "seqno");
    for (const macro of [LookupInMacro.Expiry, LookupInMacro.Cas, LookupInMacro.SeqNo,
      LookupInMacro.LastModified, LookupInMacro.IsDeleted, LookupInMacro.ValueSizeBytes,
      LookupInMacro.RevId]) {
      expect((await look(sdk, key, macro, XATTR)) !== undefined, macro._value);
    }
    const clock = await look(sdk, key, "$vbucket.HLC", XATTR);
    expect(Math.abs(Number(clock.now) - Date.now() / 1000) < 60, `the time: ${clock.now}`);
    await change(sdk, key, [Change.upsert("x", 1, XATTR)]);
    expectEqual(await look(sdk, key, "$XTOC", XATTR), ["x"], "keys");
  },
  "macros-name-the-change": async (sdk) => {
    const { key } = await sdk.stored({ a: 1 });
    const changed = await change(sdk, key, [
      Change.upsert("m.cas", MutateInMacro.Cas, { xattr: true, createPath: true }),
      Change.upsert("m.seqno", MutateInMacro.SeqNo, XATTR),
      Change.upsert("m.sum", MutateInMacro.ValueCrc32c, XATTR)]);
    const macros = await look(sdk, key, "m", XATTR);
    expectEqual(casOfMacro(macros.cas), number(changed.cas), "CAS");
    expectEqual(BigInt(macros.seqno), BigInt(changed.token.toJSON().sequence_number), "seqno");
    expectEqual(await look(sdk, key, "$document.value_crc32c", XATTR), macros.sum, "sum");
  },
  "paths-are-changed-durably": async (sdk) => {
    const { key } = await sdk.stored({ n: 1 });
    for (const durabilityLevel of LEVELS) {
      const counted = await change(sdk, key, [Change.increment("n", 1),
        Change.upsert("cas", MutateInMacro.Cas, XATTR)], { durabilityLevel });
      const found = await sdk.collection.get(key);
      expectEqual(counted.content[0].value, found.content.n, "counter");
      expectEqual(number(found.cas), number(counted.cas), "CAS");
      expectEqual(casOfMacro(await look(sdk, key, "cas", XATTR)), number(counted.cas), "CAS");
    }
    await sdk.expectValue(key, { n: 4 });
  },
  "parallel-changes-of-one-document": async (sdk) => {
    const { key } = await sdk.stored({ n: 0 });
    const writers = Array.from({ length: 16 }, (_, index) => index);
    await Promise.all(writers.map(async (writer) => {
      for (let turn = 0; turn < 25; turn += 1) {
        await change(sdk, key, [Change.increment("n", 1), Change.increment(`of${writer}`, 1)]);
      }
    }));
    const expected = Object.fromEntries(writers.map((writer) => [`of${writer}`, 25]));
    await sdk.expectValue(key, { n: 400, ...expected });
  },
  "removed-documents-keep-system-attributes": async (sdk) => {
    const { key } = await sdk.stored({ a: 1 });
    await change(sdk, key, [Change.upsert("_system", { kept: 1 }, XATTR),
      Change.upsert("meta", 1, XATTR)]);
    await sdk.collection.remove(key);
    const paths = [Look.get("_system", XATTR), Look.exists("meta", XATTR)];
    await expectError(sdk.collection.lookupIn(key, paths), couchbase.DocumentNotFoundError);
    const { content } = await sdk.collection.lookupIn(key, paths, { accessDeleted: true });
    expectEqual(content[0].value, { kept: 1 }, "the system's attribute");
    expectEqual(content[1].value, false, "the user's attribute");
  },
  "transactions-commit-and-roll-back": async (sdk) => {
    const changed = await changedByTransaction(sdk, (keys) =>
      sdk.cluster.transactions().run((context) => commit(sdk, context, keys)));
    await sdk.expectValue(changed.first, { n: 10 });
    await sdk.expectValue(changed.added, { n: 3 });
    expect(await sdk.isGone(changed.gone), "removed");
    const kept = await changedByTransaction(sdk, (keys) =>
      expectError(sdk.cluster.transactions().run(async (context) => {
        await commit(sdk, context, keys);
        throw new Error("the application has changed its mind");
      }), couchbase.TransactionFailedError));
    await sdk.expectValue(kept.first, { n: 1 });
    await sdk.expectValue(kept.gone, { n: 2 });
    expect(await sdk.isGone(kept.added), "not inserted");
    for (const key of [changed.first, changed.added, kept.first, kept.gone]) {
      await expectNothingIsLeft(sdk, key);
    }
  },
  "transactions-expire": async (sdk) => {
    const kept = await changedByTransaction(sdk, (keys) =>
      expectError(sdk.cluster.transactions().run(async (context) => {
        await commit(sdk, context, keys);
        await sleep(1500);
        await context.get(sdk.collection, keys.first);
      }, { timeout: 1000 }), couchbase.TransactionExpiredError,
      couchbase.TransactionFailedError));
    await sdk.expectValue(kept.first, { n: 1 });
    await sdk.expectValue(kept.gone, { n: 2 });
    expect(await sdk.isGone(kept.added), "not inserted");
  },
  "transactions-meet": async (sdk) => {
    // The SDK does not repeat what has lost against another one; what it commits counts.
    const { key } = await sdk.stored({ n: 0 });
    const add = () => sdk.cluster.transactions().run(async (context) => {
      const document = await context.get(sdk.collection, key);
      await context.replace(document, { n: document.content.n + 1 });
    });
    const ends = await Promise.all(Array.from({ length: 5 }, () => succeeds(add())));
    const committed = ends.filter((end) => end).length;
    expect(committed > 0, "one of them is committed");
    await sdk.expectValue(key, { n: committed });
  },
  "transactions-insert-what-was-rolled-back": async (sdk) => {
    const key = sdk.key();
    const insert = (fails) => sdk.cluster.transactions().run(async (context) => {
      await context.insert(sdk.collection, key, { n: 1 });
      if (fails) throw new Error("the application has changed its mind");
    });
    await expectError(insert(true), couchbase.TransactionFailedError);
    expect(await sdk.isGone(key), "not inserted");
    await insert(false);
    await sdk.expectValue(key, { n: 1 });
  },
};
