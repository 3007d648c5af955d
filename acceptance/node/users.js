// Cases: users, groups, and what they may do.
"use strict";

const couchbase = require("couchbase");
const { expect, expectEqual, expectError, succeeds, waitUntil } = require("./expect");
const { BUCKET, connect } = require("./sdk");

const PASSWORD = "a-password";
const BRIEF = { timeout: 2000 };
const HIDDEN = [couchbase.CollectionNotFoundError, couchbase.TimeoutError];

const READER = { name: "data_reader", bucket: BUCKET };
const WRITER = { name: "data_writer", bucket: BUCKET };

/** A user with these roles and groups. */
function put(sdk, username, roles, groups = []) {
  const displayName = username[0].toUpperCase() + username.slice(1);
  const user = { username, displayName, password: PASSWORD, roles, groups };
  return sdk.cluster.users().upsertUser(user);
}

/** Runs a body with a cluster object of a user, which is dropped in the end. */
async function withUser(sdk, username, roles, body) {
  await put(sdk, username, roles);
  const cluster = await connect(username, PASSWORD);
  try {
    await body(cluster.bucket(BUCKET));
  } finally {
    await cluster.close();
    await sdk.cluster.users().dropUser(username);
  }
}

/** Somebody with these words may not connect. */
function expectStranger(username, password) {
  return expectError(connect(username, password), couchbase.AuthenticationFailureError);
}

module.exports = {
  "users-come-and-go": async (sdk) => {
    const manager = sdk.cluster.users();
    await expectError(manager.getUser("alice"), couchbase.UserNotFoundError);
    await put(sdk, "alice", [READER]);
    const found = await manager.getUser("alice");
    expectEqual([found.username, found.displayName], ["alice", "Alice"], "the user");
    expectEqual(found.roles.map(({ name }) => name), ["data_reader"], "its roles");
    const all = await manager.getAllUsers();
    expect(all.some(({ username }) => username === "alice"), "it is listed");
    await put(sdk, "alice", [READER, WRITER]);
    expectEqual((await manager.getUser("alice")).roles.length, 2, "number of its roles");
    await manager.dropUser("alice");
    await expectError(manager.getUser("alice"), couchbase.UserNotFoundError);
    await expectError(manager.dropUser("alice"), couchbase.CouchbaseError);
  },
  "groups-come-and-go": async (sdk) => {
    const manager = sdk.cluster.users();
    await expectError(manager.getGroup("readers"), couchbase.GroupNotFoundError);
    await manager.upsertGroup({ name: "readers", description: "They read", roles: [READER] });
    const { name, description } = await manager.getGroup("readers");
    expectEqual([name, description], ["readers", "They read"], "the group");
    const all = await manager.getAllGroups();
    expectEqual(all.map((group) => group.name), ["readers"], "all groups");
    await put(sdk, "bob", [], ["readers"]);
    const { effectiveRoles } = await manager.getUser("bob");
    expectEqual(effectiveRoles.map((role) => role.name), ["data_reader"], "effective roles");
    await manager.dropGroup("readers");
    await expectError(manager.dropGroup("readers"), couchbase.CouchbaseError);
    await manager.dropUser("bob");
  },
  "roles-are-listed": async (sdk) => {
    const roles = (await sdk.cluster.users().getRoles()).map(({ name }) => name);
    const known = ["admin", "bucket_admin", "data_reader", "data_writer"];
    expect(known.every((name) => roles.includes(name)), `roles: ${roles}`);
  },
  "own-password": async (sdk) => {
    await put(sdk, "carol", ["admin"]);
    const carol = await connect("carol", PASSWORD);
    await carol.users().changePassword("another-one");
    await carol.close();
    await expectStranger("carol", PASSWORD);
    await (await connect("carol", "another-one")).close();
    await sdk.cluster.users().dropUser("carol");
  },
  "reader-does-not-write": async (sdk) => {
    const { key } = await sdk.stored({ n: 1 });
    await withUser(sdk, "dave", [READER], async (bucket) => {
      const collection = bucket.defaultCollection();
      expectEqual((await collection.get(key)).content, { n: 1 }, "it reads");
      await expectError(collection.get(sdk.key()), couchbase.DocumentNotFoundError);
      await expectError(collection.upsert(key, { n: 2 }, BRIEF), couchbase.CouchbaseError);
      await expectError(collection.remove(key, BRIEF), couchbase.CouchbaseError);
      await sdk.expectValue(key, { n: 1 });
      // It learns at once that it may.
      await put(sdk, "dave", [READER, WRITER]);
      await collection.upsert(key, { n: 3 });
    });
    await sdk.expectValue(key, { n: 3 });
  },
  "user-of-one-collection": async (sdk) => {
    const manager = sdk.bucket.collections();
    await manager.createScope("private");
    for (const name of ["own", "foreign"]) await manager.createCollection(name, "private");
    const place = { scope: "private", collection: "own" };
    const roles = [READER, WRITER].map((role) => ({ ...role, ...place }));
    await withUser(sdk, "erin", roles, async (bucket) => {
      const [own, foreign] = ["own", "foreign"].map((name) =>
        bucket.scope("private").collection(name));
      await own.upsert("k", { n: 1 });
      expectEqual((await own.get("k")).content, { n: 1 }, "its own");
      await expectError(foreign.get("k", BRIEF), ...HIDDEN);
      await expectError(foreign.upsert("k", {}, BRIEF), ...HIDDEN);
    });
    await manager.dropScope("private");
  },
  "removed-user": async (sdk) => {
    await put(sdk, "frank", [READER]);
    const { key } = await sdk.stored({ n: 1 });
    const frank = await connect("frank", PASSWORD);
    const collection = frank.bucket(BUCKET).defaultCollection();
    expectEqual((await collection.get(key)).content, { n: 1 }, "it reads");
    await sdk.cluster.users().dropUser("frank");
    const isRefused = async () => !(await succeeds(collection.get(key, BRIEF)));
    await waitUntil(isRefused, 10000, "its open connections are of no use");
    await frank.close();
    await expectStranger("frank", PASSWORD);
  },
};
