// Cluster objects behind TLS.
"use strict";

const couchbase = require("couchbase");
const { expectEqual } = require("./expect");
const { BUCKET, READY_MS } = require("./sdk");

/** The user whom a certificate names; the variables name its files. */
function byCertificate(certificate, key) {
  return new couchbase.CertificateAuthenticator(process.env[certificate], process.env[key]);
}

/** A cluster object of the administrator who trusts the node, unless something else is said. */
function connectBehindTls({ authority = process.env.SETTEE_AUTHORITY, authenticator,
  readyMs = READY_MS }) {
  const { SETTEE_USER: username, SETTEE_PASSWORD: password } = process.env;
  return couchbase.connect(process.env.SETTEE_TLS_CONNECT, {
    authenticator: authenticator ?? new couchbase.PasswordAuthenticator(username, password),
    security: { trustStorePath: authority },
    timeouts: { connectTimeout: readyMs, bootstrapTimeout: readyMs, kvTimeout: readyMs },
  });
}

/** Stores and reads a document of about this size. */
async function exchange(cluster, key, sizeBytes = 100) {
  const collection = cluster.bucket(BUCKET).defaultCollection();
  const value = { text: "x".repeat(sizeBytes) };
  await collection.upsert(key, value);
  expectEqual((await collection.get(key)).content, value, `value of ${key}`);
}

module.exports = { byCertificate, connectBehindTls, exchange };
