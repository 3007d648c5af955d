// Has the module for Node start a node, and stores and reads a document there.

const assert = require("node:assert");
const { BucketDefinition, CouchbaseContainer, CouchbaseService } = require(
  "@testcontainers/couchbase");
const { Wait } = require("testcontainers");
const couchbase = require("couchbase");

async function main() {
  const wanted = new BucketDefinition("mine").withPrimaryIndex(false).withFlushEnabled(true);
  const container = await new CouchbaseContainer("settee:0.1.0")
    .withEnvironment({ SETTEE_SETUP: "anywhere" })
    .withWaitStrategy(Wait.forHttp("/pools", 8091))
    .withCredentials("tester", "secret-password")
    .withEnabledServices(CouchbaseService.KV)
    .withBucket(wanted)
    .start();
  const cluster = await couchbase.connect(container.getConnectionString(), {
    username: container.getUsername(),
    password: container.getPassword(),
  });
  const documents = cluster.bucket("mine").defaultCollection();
  await documents.upsert("sofa", { seats: 3 });
  assert.strictEqual((await documents.get("sofa")).content.seats, 3);
  await cluster.buckets().flushBucket("mine");
  assert.strictEqual((await documents.exists("sofa")).exists, false);
  await cluster.close();
  await container.stop();
  console.log("stored, read and flushed");
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  });
