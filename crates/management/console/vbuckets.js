// The vBuckets of a bucket as a grid: where each is, how this node has it, and what is wrong.

import { bucketNames } from "./collections.js";
import { choice, element, labelled, metricName } from "./elements.js";
import { ask, part } from "./requests.js";
import { exact } from "./units.js";

const REFRESH_MS = 2000;
/** Letters, so that nobody has to tell colours apart. */
const LETTERS = { active: "A", replica: "R", pending: "P", dead: "D" };
const STEPS = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };

/** The page. */
export function vbuckets(place) {
  const chooser = element("div", { class: "row" });
  const summary = element("p", { role: "status" });
  const grid = element("div", { class: "grid", role: "listbox", tabindex: 0,
    "aria-label": "vBuckets" });
  const facts = element("section", { class: "card", "aria-live": "polite" });
  place.append(element("h1", {}, "vBuckets"), chooser,
    element("p", { class: "faint" }, "A: active here. R: replica. P: pending. D: dead. ·: on other "
      + "nodes. ! damaged. Ringed: not what the map says, or not whole. Colours are the nodes that "
      + "have the active copy."),
    summary, grid, facts);
  let [bucket, known, chosen] = [null, null, 0];

  const choose = (at) => {
    chosen = Math.min(Math.max(at, 0), grid.children.length - 1);
    mark();
    describe();
  };
  const mark = () => {
    grid.querySelectorAll("[aria-selected=true]").forEach((it) =>
      it.setAttribute("aria-selected", "false"));
    const cell = grid.children[chosen];
    cell?.setAttribute("aria-selected", "true");
    if (cell) grid.setAttribute("aria-activedescendant", cell.id);
  };
  const describe = () => {
    const vbucket = known?.vbuckets[chosen];
    if (vbucket) facts.replaceChildren(...description(vbucket, known));
  };
  grid.addEventListener("mouseover", (event) => {
    const at = [...grid.children].indexOf(event.target);
    if (at >= 0) choose(at);
  });
  grid.addEventListener("click", (event) => {
    const at = [...grid.children].indexOf(event.target);
    if (at >= 0) choose(at);
  });
  grid.addEventListener("keydown", (event) => {
    const columns = getComputedStyle(grid).gridTemplateColumns.split(" ").length;
    const step = { ...STEPS, ArrowUp: -columns, ArrowDown: columns }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    choose(chosen + step);
  });
  const load = async () => {
    if (document.hidden || !bucket) return;
    try {
      known = await ask("GET", `/settee/buckets/${part(bucket)}/vbuckets`);
      grid.replaceChildren(...known.vbuckets.map(cell));
      summary.textContent = summaryOf(known.vbuckets);
      mark();
      describe();
    } catch (error) {
      summary.textContent = error.message;
    }
  };
  bucketNames().then((names) => {
    [bucket] = names;
    if (!bucket) {
      summary.textContent = "There is no bucket yet; make one on the page Buckets.";
      return;
    }
    chooser.append(labelled("Bucket", choice(names, bucket, (value) => {
      bucket = value;
      chosen = 0;
      load();
    })));
    load();
  }).catch((error) => { summary.textContent = error.message; });
  const timer = setInterval(load, REFRESH_MS);
  return () => clearInterval(timer);
}

function cell(vbucket) {
  const [active] = vbucket.chain;
  const classes = ["cell", vbucket.here ? `series-${(active ?? 5) % 6}` : "absent"];
  if (vbucket.damage) classes.push("damaged");
  if (vbucket.pending || vbucket.isIncomplete) classes.push("behind");
  const letter = vbucket.damage ? "!" : (LETTERS[vbucket.here?.state] ?? "·");
  return element("div", { class: classes.join(" "), role: "option", id: `vb-${vbucket.id}`,
    "aria-selected": "false", "aria-label": `${vbucket.id} ${vbucket.here?.state ?? "elsewhere"}` },
  letter);
}

function summaryOf(all) {
  const having = (fits) => all.filter(fits).length;
  const state = (name) => having((it) => it.here?.state === name);
  const counts = [
    [state("active"), "active"], [state("replica"), "replicas"], [state("pending"), "pending"],
    [state("dead"), "dead"], [having((it) => it.damage), "damaged"],
    [having((it) => it.isIncomplete), "not whole"], [having((it) => it.pending), "to be changed"],
  ];
  const shown = counts.filter(([count], at) => count > 0 || at === 0);
  return `${all.length} vBuckets; on this node ${shown.map((it) => it.join(" ")).join(", ")}`;
}

function description(vbucket, { nodes, thisNode }) {
  const node = (index) => (index === null ? "no node"
    : `${nodes[index]}${index === thisNode ? " (this one)" : ""}`);
  const [active, ...replicas] = vbucket.chain;
  const lines = [`Active on ${node(active)}`,
    replicas.length > 0 ? `Replicas on ${replicas.map(node).join(", ")}` : "No replicas"];
  const { here } = vbucket;
  if (here) {
    const undurable = here.highSeqno - here.persistedSeqno;
    lines.push(
      `Here ${here.state}, ${exact(here.items)} documents, `
        + `${exact(here.nonResidentItems)} with values on disk alone`,
      `Seqno ${exact(here.highSeqno)}, durable ${exact(here.persistedSeqno)}: `
        + `${exact(undurable)} behind, ${exact(here.unflushedItems)} waiting for the disk`);
    if (here.replicationLag !== null) {
      lines.push(`${exact(here.replicationLag)} changes still to be sent to other nodes`);
    }
  }
  if (vbucket.isIncomplete) lines.push("Not whole: it began empty and lacks what others hold");
  if (vbucket.pending) {
    lines.push(`To become ${vbucket.pending.wanted}: ${vbucket.pending.reason}`);
  }
  if (vbucket.damage) lines.push(`Damaged: ${vbucket.damage.kind}. ${vbucket.damage.reason}`);
  return [element("h2", {}, `vBucket ${vbucket.id}`),
    ...lines.map((line) => element("p", {}, line)),
    metricName("vb_N:high_seqno", "vb_N:persistence_seqno", "(settee stats vbucket-details),",
      "kv_dcp_items_remaining")];
}
