// Drives a node, or a cluster, with the Node SDK, unmodified, and prints a line a case.
"use strict";

const { connect, Sdk } = require("./sdk");
const { oneLine } = require("./expect");

const MODULES = {
  node: ["connecting", "documents", "locks_and_expiry", "numbers_and_bytes", "values", "bulk",
    "collections", "sub_documents", "structures", "scans", "buckets", "users", "encryption",
    "durability"],
  cluster: ["cluster"],
};

async function runOne(sdk, name, body) {
  const started = Date.now();
  try {
    await body(sdk);
  } catch (error) {
    console.log(`CASE ${name} FAIL ${oneLine(error)}`);
    return false;
  }
  const seconds = (Date.now() - started) / 1000;
  console.log(`CASE ${name} ok${seconds >= 1 ? ` (${seconds.toFixed(1)} s)` : ""}`);
  return true;
}

async function main() {
  const [kind, ...chosen] = process.argv.slice(2);
  const sdk = new Sdk(await connect());
  let isGood = true;
  for (const module of MODULES[kind]) {
    for (const [name, body] of Object.entries(require(`./${module}`))) {
      if (chosen.length === 0 || chosen.includes(name)) {
        isGood = (await runOne(sdk, name, body)) && isGood;
      }
    }
  }
  await sdk.close();
  process.exit(isGood ? 0 : 1);
}

main().catch((error) => {
  console.log(`CASE connect FAIL ${oneLine(error)}`);
  process.exit(1);
});
