// The SDK's objects that the cases share.
"use strict";

const readline = require("node:readline");
const couchbase = require("couchbase");
const { expect, expectEqual } = require("./expect");

const BUCKET = "default";
const READY_MS = 15000;

/** A cluster object, with the node's credentials unless others are given. */
function connect(username = process.env.SETTEE_USER, password = process.env.SETTEE_PASSWORD) {
  return couchbase.connect(process.env.SETTEE_CONNECT, {
    username,
    password,
    timeouts: {
      connectTimeout: READY_MS, bootstrapTimeout: READY_MS,
      kvTimeout: 10000, kvDurableTimeout: READY_MS,
    },
  });
}

/** A CAS, or what stands for one, as a number. */
const number = (cas) => BigInt(cas.toString());

class Sdk {
  #names = 0;
  #answers = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();

  constructor(cluster) {
    this.cluster = cluster;
    this.bucket = cluster.bucket(BUCKET);
    this.collection = this.bucket.defaultCollection();
    this.binary = this.collection.binary();
  }

  close() {
    return this.cluster.close();
  }

  /** A key that no other case uses. */
  key() {
    this.#names += 1;
    return `key-${this.#names}`;
  }

  /** A new document: its key, and the CAS and token of its store. */
  async stored(value, options) {
    const key = this.key();
    const { cas, token } = await this.collection.upsert(key, value, options);
    return { key, cas, token };
  }

  async value(key) {
    return (await this.collection.get(key)).content;
  }

  async expectValue(key, wanted) {
    expectEqual(await this.value(key), wanted, `value of ${key}`);
  }

  /** Whether no document has this key. */
  async isGone(key) {
    return !(await this.collection.exists(key)).exists;
  }

  /** Asks whoever runs the nodes, and waits until it is done. */
  async order(line) {
    console.log(line);
    const { value } = await this.#answers.next();
    expect(value === "NODE ready" || value === "CLUSTER done", `${line} was not done: ${value}`);
  }
}

module.exports = { BUCKET, READY_MS, Sdk, connect, number };
