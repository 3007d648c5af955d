// Histograms, in the rows in which `settee timings` prints them.

import { bucketNames } from "./collections.js";
import { choice, element, labelled, metricName, noBucket } from "./elements.js";
import { ask, part } from "./requests.js";
import { count, exact, seconds } from "./units.js";

/** The page. */
export function timings(place) {
  const [chooser, list] = [element("div", { class: "row" }), element("div", { class: "charts" })];
  place.append(element("h1", {}, "Timings"),
    element("p", { class: "faint" }, "How long commands and background work have taken since the "
      + "start. A row ends where another 5 % of all events are reached, above 95 % where half of "
      + "the rest is."),
    chooser, list);
  let bucket = null;
  const load = async () => {
    try {
      const all = await ask("GET", `/settee/buckets/${part(bucket)}/timings`);
      list.replaceChildren(...(all.length > 0 ? all.map(histogram)
        : [element("p", {}, "Nothing has been timed yet.")]));
    } catch (error) {
      list.replaceChildren(element("p", { class: "bad" }, error.message));
    }
  };
  bucketNames().then((names) => {
    [bucket] = names;
    if (!bucket) {
      list.append(noBucket());
      return;
    }
    chooser.append(
      labelled("Bucket", choice(names, bucket, (value) => {
        bucket = value;
        load();
      })),
      element("button", { type: "button", onclick: load }, "Read again"));
    load();
  }).catch((error) => list.replaceChildren(element("p", { class: "bad" }, error.message)));
  return () => {};
}

function histogram({ name, unit, count: total, mean, max, quantiles, buckets }) {
  const show = (value) => (unit === "ns" ? seconds(value / 1e9) : count(value));
  const parts = Object.entries(quantiles).map(([part, value]) => `${part} ${show(value)}`);
  const rows = rowsOf(buckets, total);
  const most = Math.max(...rows.map((row) => row.count));
  const line = (row) => {
    const bar = element("span", { class: "bar" });
    bar.style.width = `${(100 * row.count) / most}%`;
    return element("tr", {},
      element("td", { class: "number" }, `${show(row.from)} – ${show(row.to)}`),
      element("td", { class: "number" }, `${((100 * row.below) / total).toFixed(2)} %`),
      element("td", { class: "number" }, exact(row.count)),
      element("td", { "aria-hidden": "true" }, bar));
  };
  const heads = ["From – to", "Up to here", "Events"].map((it) =>
    element("th", { scope: "col", class: "number" }, it));
  return element("section", { class: "card" },
    element("h2", {}, name), metricName(metricOf(name)),
    element("p", {}, `${exact(total)} events, mean ${show(mean)}, ${parts.join(", ")}, `
      + `max ${show(max)}`),
    element("div", { class: "scroll" },
      element("table", { class: "bars" },
        element("thead", {}, element("tr", {}, heads, element("td"))),
        element("tbody", {}, rows.map(line)))));
}

/** Commands are written in capitals. */
function metricOf(name) {
  return name === name.toUpperCase() ? `kv_cmd_duration_seconds{opcode="${name}"}`
    : `settee timings ${name}`;
}

/** Buckets together up to the next part of all events that ends a row. */
function rowsOf(buckets, total) {
  const rows = [];
  let [below, row, end] = [0, null, 0.05];
  for (const [from, to, events] of buckets) {
    below += events;
    row = { from: row?.from ?? from, to, count: (row?.count ?? 0) + events, below };
    if (below / total < end) continue;
    rows.push(row);
    row = null;
    while (end <= below / total && end < 1) {
      end = end < 0.95 - 1e-9 ? end + 0.05 : end + (1 - end) / 2;
    }
  }
  return row ? [...rows, row] : rows;
}
