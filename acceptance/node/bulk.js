// Cases: many operations at once.
"use strict";

const { expectEqual } = require("./expect");

const COUNT = 500;

/** Results of a function of the numbers below the count, all at the same time. */
const inParallel = (body) => Promise.all(Array.from({ length: COUNT }, (_, index) => body(index)));

module.exports = {
  "parallel-operations": (sdk) => inParallel(async (index) => {
    const { key } = await sdk.stored({ n: index });
    await sdk.expectValue(key, { n: index });
  }),
  "parallel-increments": async (sdk) => {
    const key = sdk.key();
    const results = await inParallel(() => sdk.binary.increment(key, 1, { initial: 1 }));
    const values = results.map(({ value }) => value).sort((left, right) => left - right);
    const expected = Array.from({ length: COUNT }, (_, index) => index + 1);
    expectEqual(values, expected, "every number once");
  },
};
