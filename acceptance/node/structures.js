// Cases: data structures, which the SDK makes of documents and their parts.
"use strict";

const { expect, expectEqual } = require("./expect");

module.exports = {
  "lists": async (sdk) => {
    const list = sdk.collection.list(sdk.key());
    await list.push("b");
    await list.push("c");
    await list.unshift("a");
    expectEqual(await list.getAll(), ["a", "b", "c"], "elements");
    expectEqual([await list.getAt(1), await list.indexOf("c"), await list.size()], ["b", 2, 3],
      "element, index, size");
    await list.removeAt(0);
    expectEqual(await list.getAll(), ["b", "c"], "elements");
  },
  "maps": async (sdk) => {
    const map = sdk.collection.map(sdk.key());
    await map.set("a", 1);
    await map.set("b", { n: 2 });
    expectEqual([await map.get("b"), await map.size(), await map.exists("c")],
      [{ n: 2 }, 2, false], "entry, size, existence");
    await map.remove("a");
    expectEqual([await map.keys(), await map.values()], [["b"], [{ n: 2 }]], "keys and values");
  },
  "queues": async (sdk) => {
    const queue = sdk.collection.queue(sdk.key());
    for (const element of ["first", "second", "third"]) await queue.push(element);
    expectEqual([await queue.pop(), await queue.pop()], ["first", "second"], "in their order");
    expectEqual(await queue.size(), 1, "size");
  },
  "sets": async (sdk) => {
    const set = sdk.collection.set(sdk.key());
    expect(await set.add("a"), "a new element");
    expect(!(await set.add("a")), "one that is there");
    await set.add("b");
    expect(await set.contains("b"), "contained");
    await set.remove("a");
    expectEqual([await set.values(), await set.size()], [["b"], 1], "elements and size");
  },
};
