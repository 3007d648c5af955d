// Cases: TLS on one node.
"use strict";

const couchbase = require("couchbase");
const { expectError } = require("./expect");
const { byCertificate, connectBehindTls, exchange } = require("./tls");

const SIZES = [1, 5000, 20000, 1 << 20, 15 << 20];
const BRIEF_MS = 3000;

/** Runs a body with a cluster object behind TLS. */
async function withCluster(options, body) {
  const cluster = await connectBehindTls(options);
  try {
    await body(cluster);
  } finally {
    await cluster.close();
  }
}

module.exports = {
  "tls-exchanges-documents": () => withCluster({}, async (cluster) => {
    for (const size of SIZES) await exchange(cluster, `tls-${size}`, size);
  }),
  "tls-of-another-authority-is-refused": () => expectError(
    connectBehindTls({ authority: process.env.SETTEE_OTHER_AUTHORITY, readyMs: BRIEF_MS }),
    couchbase.CouchbaseError),
  "tls-client-certificate": () => withCluster(
    { authenticator: byCertificate("SETTEE_CERTIFICATE", "SETTEE_KEY") },
    (cluster) => exchange(cluster, "tls-certificate")),
  "tls-certificate-of-nobody": async () => {
    const stranger =
      byCertificate("SETTEE_STRANGERS_CERTIFICATE", "SETTEE_STRANGERS_KEY");
    await expectError(connectBehindTls({ authenticator: stranger, readyMs: BRIEF_MS }),
      couchbase.CouchbaseError);
    await withCluster({}, (cluster) => exchange(cluster, "tls-after-nobody"));
  },
};
