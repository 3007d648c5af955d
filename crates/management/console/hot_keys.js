// The documents that are asked for most, sampled when somebody wants to know.

import { bucketNames } from "./collections.js";
import { choice, element, labelled, metricName, noBucket, notice, table } from "./elements.js";
import { ask, part } from "./requests.js";
import { exact, percent, seconds } from "./units.js";

const REFRESH_MS = 1000;
const TIMES = [["5", "5 seconds"], ["10", "10 seconds"], ["60", "a minute"], ["600", "10 minutes"]];

/** The page. */
export function hotKeys(place) {
  const chooser = element("div", { class: "row" });
  const said = element("p", { class: "faint", role: "status" });
  const list = element("div", {});
  place.append(element("h1", {}, "Hot keys"),
    element("p", { class: "faint" }, "While a sampling goes on this node counts some of the "
      + "requests by their documents, of all buckets; otherwise it counts none."),
    chooser, said, list);
  let bucket = null;
  let isSampling = false;
  const load = async () => {
    if (!bucket) return;
    try {
      const told = await ask("GET", `/settee/buckets/${part(bucket)}/hotKeys`);
      isSampling = told.secondsLeft > 0;
      said.textContent = stateOf(told);
      list.replaceChildren(told.keys.length > 0 ? tableOf(bucket, told) : "");
    } catch (error) {
      said.textContent = error.message;
      isSampling = false;
    }
  };
  const sample = async (event) => {
    event.preventDefault();
    try {
      await ask("POST", "/settee/hotKeys", { seconds: time.value });
      await load();
    } catch (error) {
      notice(error.message, true);
    }
  };
  const time = choice(TIMES, "10");
  bucketNames().then((names) => {
    [bucket] = names;
    if (!bucket) return list.replaceChildren(noBucket());
    chooser.append(
      labelled("Bucket", choice(names, bucket, (value) => {
        bucket = value;
        load();
      })),
      element("form", { class: "row", onsubmit: sample }, labelled("For", time),
        element("button", { class: "first" }, "Sample")));
    return load();
  }).catch((error) => { said.textContent = error.message; });
  // Without a sampling nothing changes.
  const timer = setInterval(() => {
    if (isSampling && !document.hidden) load();
  }, REFRESH_MS);
  return () => clearInterval(timer);
}

function stateOf({ secondsLeft, counted, sampledEvery }) {
  const counts = `${exact(counted)} requests counted, one of ${exact(sampledEvery)}`;
  if (secondsLeft > 0) return `Sampling for ${seconds(secondsLeft)} more: ${counts}`;
  return counted > 0 ? `The last sampling: ${counts}` : "Nothing has been sampled yet";
}

function tableOf(bucket, { keys, counted }) {
  const columns = [{ title: "Key" }, { title: "Counted", isNumber: true },
    { title: "Of all requests", isNumber: true }, { title: "" }];
  const [{ count: most }] = keys;
  const rows = keys.map(({ key, count }) => {
    const bar = element("span", { class: "bar", "aria-hidden": "true" });
    bar.style.width = `${(100 * count) / most}%`;
    return [element("code", {}, key), exact(count), percent(count / counted), bar];
  });
  return element("div", {}, table(`Hot keys of ${bucket}`, columns, rows),
    metricName("hot_N (settee stats hot-keys)"));
}
