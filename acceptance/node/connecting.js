// Cases: connecting, and what is told of connections.
"use strict";

const couchbase = require("couchbase");
const { expect, expectEqual, expectError } = require("./expect");
const { BUCKET, READY_MS, connect } = require("./sdk");

const KV = couchbase.ServiceType.KeyValue;

async function expectRefused(user, password) {
  await expectError(connect(user, password), couchbase.AuthenticationFailureError);
}

module.exports = {
  "connect": async () => {
    const cluster = await connect();
    try {
      const { exists } = await cluster.bucket(BUCKET).defaultCollection().exists("connect");
      expect(!exists, "a fresh cluster object reads");
    } finally {
      await cluster.close();
    }
  },
  "wait-until-ready": async (sdk) => {
    await sdk.cluster.waitUntilReady(READY_MS, { serviceTypes: [KV] });
    await sdk.bucket.waitUntilReady(READY_MS, { serviceTypes: [KV] });
  },
  "ping": async (sdk) => {
    const endpoints = (await sdk.bucket.ping({ serviceTypes: [KV] })).services[KV] ?? [];
    expect(endpoints.length > 0, "the data service answers a ping");
    for (const { state } of endpoints) expectEqual(state, couchbase.PingState.Ok, "state");
  },
  "diagnostics": async (sdk) => {
    const endpoints = (await sdk.cluster.diagnostics()).services[KV] ?? [];
    expect(endpoints.length > 0, "connections of the data service are known");
    for (const { state } of endpoints) {
      expectEqual(state, couchbase.EndpointState.Connected, "state");
    }
  },
  "wrong-password-is-refused": () => expectRefused(process.env.SETTEE_USER, "wrong"),
  "unknown-user-is-refused": () => expectRefused("nobody", process.env.SETTEE_PASSWORD),
  "unknown-bucket-is-refused": async (sdk) => {
    const absent = sdk.cluster.bucket("absent").defaultCollection();
    await expectError(absent.get("k", { timeout: 2000 }), couchbase.BucketNotFoundError,
      couchbase.TimeoutError, couchbase.AuthenticationFailureError);
  },
};
