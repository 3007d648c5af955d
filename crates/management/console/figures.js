// The node's figures: one stream of them, followed while somebody looks, and ten minutes of memory.

import { askJson, events } from "./requests.js";

const MEMORY_MS = 10 * 60 * 1000;
const RETRY_MS = 2000;
/** How far apart the two frames are whose difference is a rate or a quantile: one second alone
 * would make quantiles of few operations jump. */
const WINDOW_MS = 5000;

/** What is asked of the past when the console is opened. */
const REMEMBERED = [
  "kv_ops", "kv_subdoc_ops", "kv_mem_used_bytes", "kv_ep_mem_low_wat", "kv_ep_mem_high_wat",
  "kv_ep_max_size", "kv_curr_items", "kv_curr_items_tot", "kv_ep_num_non_resident",
  "kv_ep_diskqueue_items", "kv_ep_total_persisted", "kv_ep_bg_fetched", "kv_read_bytes",
  "kv_written_bytes", "kv_ep_tmp_oom_errors", "kv_curr_connections", "kv_dcp_items_remaining",
  "couch_docs_actual_disk_size", "sysproc_cpu_utilization", "sys_cpu_utilization_rate",
];

/** `{name, labels}` of each series, by its number. */
const series = [];
const numbers = new Map();
/** `{time, values, isRemembered}`, the oldest first; values by the numbers of series. What is
 * remembered has no histograms. */
let frames = [];
const viewers = new Set();
let following = null;
/** When the newest frame came, by the clock of the browser. */
let seen = 0;
let state = "";
let onState = () => {};

/** Calls `act` after every frame, and at once, until the function that is returned is called. */
export function watch(act) {
  viewers.add(act);
  if (frames.length > 0) act();
  follow();
  return () => {
    viewers.delete(act);
    if (viewers.size === 0) pause("");
  };
}

/** Calls `act` with what is to be said of the stream. */
export function whenStateChanges(act) {
  onState = act;
}

/** Ends the stream and forgets everything: somebody else may sign in. */
export function forget() {
  following?.abort();
  following = null;
  frames = [];
  seen = 0;
}

/** Nobody sees a page that is hidden: nothing is read for it. */
document.addEventListener("visibilitychange", () => {
  if (document.hidden) pause("paused");
  else follow();
});

/** Ends the stream until somebody looks again. */
function pause(why) {
  following?.abort();
  following = null;
  say(why);
}

async function follow() {
  if (following || document.hidden || viewers.size === 0) return;
  const aborted = new AbortController();
  following = aborted;
  // What was missed meanwhile the node remembers.
  if (Date.now() - seen > WINDOW_MS) await recall().catch(() => {});
  while (following === aborted) {
    try {
      say("connecting");
      for await (const event of events("/settee/figuresStreaming", aborted.signal)) {
        say("live");
        take(event.time, event.figures);
      }
    } catch (error) {
      if (aborted.signal.aborted) return;
      say(error.message);
      if (error.status === 401 || error.status === 403) break;
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
  if (following === aborted) following = null;
}

function say(text) {
  if (text === state) return;
  state = text;
  onState(text);
}

/** Takes in what the node remembers: a sample every ten seconds. */
async function recall() {
  const query = (name) => ({ metric: [{ label: "name", value: name }], step: 10, start: -600 });
  const answers = await askJson("/pools/default/stats/range", REMEMBERED.map(query));
  const times = new Map();
  for (const { metric, values } of answers.flatMap((answer) => answer.data)) {
    const { name, nodes, ...labels } = metric;
    for (const [time, value] of values) {
      if (!times.has(time)) times.set(time, []);
      times.get(time).push([name, labels, Number(value)]);
    }
  }
  const remembered = [...times].map(([time, figures]) =>
    ({ time: time * 1000, values: valuesOf(figures), isRemembered: true }));
  // What was seen here is denser, and has histograms.
  const live = frames.filter((frame) => !frame.isRemembered);
  const isSeen = ({ time }) => live.some((frame) => Math.abs(frame.time - time) < WINDOW_MS);
  frames = [...live, ...remembered.filter((frame) => !isSeen(frame))];
  frames.sort((one, other) => one.time - other.time);
}

function take(time, figures) {
  // The moment of what is remembered is known to a second alone: too little for a rate.
  if (frames.at(-1)?.isRemembered && time - frames.at(-1).time < WINDOW_MS) frames.pop();
  // A clock that was set back would have frames in no order.
  if (frames.at(-1)?.time >= time) frames = [];
  frames.push({ time, values: valuesOf(figures) });
  seen = Date.now();
  frames = frames.slice(frames.findIndex((frame) => frame.time >= time - MEMORY_MS));
  viewers.forEach((act) => act());
}

function valuesOf(figures) {
  const values = [];
  for (const [name, labels, value] of figures) {
    const key = JSON.stringify([name, Object.entries(labels).sort()]);
    let number = numbers.get(key);
    if (number === undefined) {
      number = series.push({ name, labels }) - 1;
      numbers.set(key, number);
    }
    values[number] = value;
  }
  return values;
}

/** The numbers of the series of this name that have these labels; a label that is null may be
 * anything. */
export function find(name, labels = {}) {
  const wanted = Object.entries(labels).filter(([, value]) => value !== null);
  const fits = (it) => it.name === name && wanted.every(([key, value]) => it.labels[key] === value);
  return series.flatMap((it, number) => (fits(it) ? [number] : []));
}

/** The values that a label has in the series of this name. */
export function labelValues(name, label) {
  const values = find(name).map((number) => series[number].labels[label]);
  return [...new Set(values)].filter((value) => value !== undefined).sort();
}

/** The times of all frames, in seconds. */
export function times() {
  return frames.map((frame) => frame.time / 1000);
}

/** What `read` makes of each frame, and of the one some seconds before. */
export function overTime(read) {
  return frames.map((frame, at) => read(frame, before(at)) ?? null);
}

/** What `read` makes of the newest frame; NaN while there is none. */
export function now(read) {
  const last = frames.length - 1;
  return last < 0 ? NaN : (read(frames[last], before(last)) ?? NaN);
}

function before(at) {
  let earlier = at - 1;
  const goesBack = () => earlier > 0 && !frames[earlier - 1].isRemembered
    && frames[at].time - frames[earlier].time < WINDOW_MS;
  while (goesBack()) earlier -= 1;
  return frames[earlier];
}

/** As `find`, which is done again only when there are new series. */
function finder(name, labels) {
  let [known, found] = [-1, []];
  return () => {
    if (known !== series.length) [known, found] = [series.length, find(name, labels)];
    return found;
  };
}

/** The sum of series in a frame; undefined if it has none of them. */
export function sum(name, labels) {
  const found = finder(name, labels);
  return (frame) => {
    let all;
    for (const number of found()) {
      const value = frame.values[number];
      if (Number.isFinite(value)) all = (all ?? 0) + value;
    }
    return all;
  };
}

/** How much counters rise in a second. One that is less than before began anew at 0. */
export function rate(name, labels) {
  const found = finder(name, labels);
  return (frame, earlier) => {
    const seconds = earlier && (frame.time - earlier.time) / 1000;
    if (!seconds) return undefined;
    const rise = risen(frame, earlier, found());
    return rise === undefined ? undefined : rise / seconds;
  };
}

function risen(frame, earlier, found) {
  let all;
  for (const number of found) {
    const [to, from] = [frame.values[number], earlier.values[number]];
    if (!Number.isFinite(to) || !Number.isFinite(from)) continue;
    all = (all ?? 0) + (to >= from ? to - from : to);
  }
  return all;
}

/** A quantile of a histogram over the last seconds, as Prometheus' `histogram_quantile` has it. */
export function quantile(part, name, labels) {
  let [known, buckets] = [-1, []];
  return (frame, earlier) => {
    if (!earlier) return undefined;
    if (known !== series.length) [known, buckets] = [series.length, bucketsOf(name, labels)];
    const below = buckets.map(({ found }) => risen(frame, earlier, found));
    const all = below.at(-1);
    if (!all) return undefined;
    const rank = part * all;
    const at = below.findIndex((count) => count >= rank);
    const [from, to] = [at > 0 ? buckets[at - 1].bound : 0, buckets[at].bound];
    if (to === Infinity) return from;
    const before = at > 0 ? below[at - 1] : 0;
    return from + (to - from) * ((rank - before) / (below[at] - before));
  };
}

/** The buckets of a histogram, rising: upper bounds, and the series that count below each. */
function bucketsOf(name, labels) {
  const one = (le) => ({
    bound: le === "+Inf" ? Infinity : Number(le),
    found: find(`${name}_bucket`, { ...labels, le }),
  });
  const all = labelValues(`${name}_bucket`, "le").map(one);
  return all.sort((former, latter) => former.bound - latter.bound);
}
