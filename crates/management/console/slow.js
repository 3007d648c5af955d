// Operations that took long, and where their time went.

import { bucketNames } from "./collections.js";
import { choice, element, labelled, metricName, noBucket, notice, table } from "./elements.js";
import { ask, part } from "./requests.js";
import { exact, seconds } from "./units.js";

const REFRESH_MS = 2000;
const SHOWN_MAX = 50;
/** What the time went for, in the order in which the spans are drawn. What is left is work. */
const SPANS = {
  queue: "behind requests of the same connection that had come before; not a part of what it took",
  lock: "for the vBucket, which another request or task had",
  fetch: "for what was read from the file, because it was not in memory",
  journal: "for writes to be durable on this node",
  replication: "for the end of a durable write: the disks and nodes that its level names",
  task: "for work in the background, such as a scan or a flush",
  work: "the rest: the work itself, or the wait for a CPU",
};

/** The page. */
export function slow(place) {
  const chooser = element("div", { class: "row" });
  const list = element("div", {});
  place.append(element("h1", {}, "Slow operations"),
    element("p", { class: "faint" }, `The ${SHOWN_MAX} newest ones of this node.`),
    chooser, meaning(), list);
  let bucket = null;
  let shown = "";
  const load = async () => {
    if (document.hidden || !bucket) return;
    try {
      const told = await ask("GET", `/settee/buckets/${part(bucket)}/slowOperations`);
      const all = told.slice(0, SHOWN_MAX);
      const now = JSON.stringify([bucket, all]);
      if (now === shown) return;
      shown = now;
      list.replaceChildren(all.length > 0 ? tableOf(bucket, all)
        : element("p", {}, `Nothing of ${bucket} was slow. A lower threshold shows more.`));
    } catch (error) {
      list.replaceChildren(element("p", { class: "bad" }, error.message));
    }
  };
  bucketNames().then((names) => {
    [bucket] = names;
    if (!bucket) return list.replaceChildren(noBucket());
    chooser.append(labelled("Bucket", choice(names, bucket, (value) => {
      bucket = value;
      load();
    })));
    load();
    return thresholds(chooser);
  }).catch((error) => list.replaceChildren(element("p", { class: "bad" }, error.message)));
  const timer = setInterval(load, REFRESH_MS);
  return () => clearInterval(timer);
}

/** What the colours are. */
function meaning() {
  const names = Object.entries(SPANS);
  return element("details", {},
    element("summary", {}, "Where the time went"),
    element("dl", { class: "spans" }, names.flatMap(([name, text], at) => [
      element("dt", { class: `span-${at}` }, name), element("dd", {}, text)])));
}

/** From how many milliseconds on a command is slow, to be changed. */
async function thresholds(place) {
  const all = await ask("GET", "/settee/slowThresholds");
  const limit = element("input",
    { type: "number", min: 0, required: true, value: all.GET ?? 0, size: 6 });
  const command = choice(["all", ...Object.keys(all).sort()], "GET", (name) => {
    if (name in all) limit.value = all[name];
  });
  const submit = async (event) => {
    event.preventDefault();
    const fields = { command: command.value, milliseconds: limit.value };
    try {
      await ask("POST", "/settee/slowThresholds", fields);
      Object.assign(all, await ask("GET", "/settee/slowThresholds"));
      notice("It holds until the node stops");
    } catch (error) {
      notice(error.message, true);
    }
  };
  place.append(element("form", { class: "row", onsubmit: submit },
    labelled("Command", command), labelled("Slow from, milliseconds", limit),
    element("button", {}, "Set it")));
}

function tableOf(bucket, all) {
  const columns = [{ title: "Ended" }, { title: "Command" }, { title: "Took", isNumber: true },
    { title: "Where the time went" }, { title: "Key" }, { title: "Client" }];
  const rows = all.map((operation) => [
    new Date(operation.endedAt).toISOString().replace("T", " ").replace("Z", ""),
    operation.command,
    seconds(operation.took / 1e6),
    whereOf(operation),
    element("code", {}, operation.key),
    operation.client,
  ]);
  return element("div", {},
    table(`Slow operations of ${bucket}, times in UTC`, columns, rows),
    metricName("slow_N (settee stats slow-operations)"));
}

/** A bar of the parts, and the parts in words. */
function whereOf({ took, spans }) {
  const waited = Object.entries(spans).filter(([name]) => name !== "queue");
  const work = took - waited.reduce((sum, [, micros]) => sum + micros, 0);
  const parts = { ...spans, work: Math.max(work, 0) };
  const whole = Math.max(took + (spans.queue ?? 0), 1);
  const names = Object.keys(SPANS);
  const bar = element("span", { class: "parts", "aria-hidden": "true" });
  const words = [];
  names.forEach((name, at) => {
    const percent = (100 * (parts[name] ?? 0)) / whole;
    if (percent < 1) return;
    const piece = element("span", { class: `span-${at}` });
    piece.style.width = `${percent}%`;
    bar.append(piece);
    words.push([percent, `${name} ${exact(Math.round(percent))} %`]);
  });
  words.sort(([one], [other]) => other - one);
  return [bar, element("span", { class: "words" }, words.map(([, text]) => text).join(", "))];
}
