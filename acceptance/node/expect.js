// What cases ask of answers.
"use strict";

const { isDeepStrictEqual, inspect } = require("node:util");

/** A message without line ends, cut to a readable length. */
function oneLine(error) {
  const text = `${error.name ?? "error"}: ${error.message ?? error}`;
  return text.split(/\s+/).join(" ").slice(0, 400);
}

/** Says what should have held when it does not. */
function expect(holds, sentence) {
  if (!holds) throw new Error(sentence);
}

function expectEqual(got, wanted, what) {
  if (!isDeepStrictEqual(got, wanted)) {
    const shown = (value) => inspect(value, { breakLength: Infinity }).slice(0, 200);
    throw new Error(`${what}: expected ${shown(wanted)}, got ${shown(got)}`);
  }
}

/** The error with which a promise ends, which must be of one of these kinds. */
async function expectError(promise, ...kinds) {
  let result;
  try {
    result = await promise;
  } catch (error) {
    if (kinds.some((kind) => error instanceof kind)) return error;
    const names = kinds.map((kind) => kind.name).join(" or ");
    throw new Error(`expected ${names}, got ${oneLine(error)}`);
  }
  throw new Error(`expected an error, got ${inspect(result).slice(0, 200)}`);
}

const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Asks until the answer is true; fails the case when the time is over. */
async function waitUntil(question, milliseconds, what) {
  const deadline = Date.now() + milliseconds;
  // An answer that comes late says nothing: what counts is when it was asked for.
  for (let asked = Date.now(); !(await question()); asked = Date.now()) {
    if (asked > deadline) throw new Error(`not within ${milliseconds} ms: ${what}`);
    await sleep(20);
  }
}

/** Whether a promise ends well. */
async function succeeds(promise) {
  try {
    await promise;
    return true;
  } catch {
    return false;
  }
}

module.exports = { oneLine, expect, expectEqual, expectError, sleep, succeeds, waitUntil };
