// The buckets of the cluster: what they are, and making, changing, emptying and deleting them.

import { choice, confirmed, element, labelled, metricName, notice, table } from "./elements.js";
import { ask, part } from "./requests.js";
import { bytes, count, exact, perSecond } from "./units.js";

const REFRESH_MS = 5000;
const LEVELS = [
  ["none", "none"],
  ["majority", "majority"],
  ["majorityAndPersistActive", "majority, and on the active node's disk"],
  ["persistToMajority", "on the disks of a majority"],
];

/** The page. */
export function buckets(place) {
  const list = element("div", {});
  const open = element("button", { type: "button", class: "first", onclick: () => edit(null) },
    "New bucket");
  place.append(element("h1", {}, "Buckets"), element("div", { class: "row" }, open), list);

  const refresh = async () => {
    if (document.hidden || list.contains(document.activeElement)) return;
    await load();
  };
  const load = async () => {
    try {
      const all = await ask("GET", "/pools/default/buckets");
      list.replaceChildren(all.length > 0 ? tableOf(all, edit, load)
        : element("p", {}, "There is no bucket yet. Make one to keep documents in."));
    } catch (error) {
      list.replaceChildren(element("p", { class: "bad" }, error.message));
    }
  };
  const edit = (bucket) => form(bucket, load);
  load();
  const timer = setInterval(refresh, REFRESH_MS);
  return () => clearInterval(timer);
}

function tableOf(all, edit, load) {
  const columns = [
    { title: "Bucket" }, { title: "Kind" }, { title: "Documents", isNumber: true },
    { title: "Operations", isNumber: true }, { title: "Memory" }, { title: "Disk", isNumber: true },
    { title: "Replicas", isNumber: true }, { title: "Durable at least" }, { title: "" },
  ];
  const rows = all.map((bucket) => {
    const { itemCount, opsPerSec, memUsed, diskUsed } = bucket.basicStats;
    const quota = bucket.quota.rawRAM;
    return [
      element("strong", {}, bucket.name),
      `${bucket.bucketType === "membase" ? "couchstore" : "ephemeral"}, ${bucket.evictionPolicy}`,
      [exact(itemCount), metricName("kv_curr_items")],
      [perSecond(opsPerSec), metricName("kv_ops")],
      [element("meter", { min: 0, max: quota, value: memUsed, high: quota * 0.85,
        "aria-label": "Memory of the quota" }), ` ${bytes(memUsed)} of ${bytes(quota)}`,
      metricName("kv_mem_used_bytes", "kv_ep_max_size")],
      [bytes(diskUsed), metricName("couch_docs_actual_disk_size")],
      count(bucket.replicaNumber),
      bucket.durabilityMinLevel,
      actions(bucket, edit, load),
    ];
  });
  return table("Figures are this node's", columns, rows);
}

function actions(bucket, edit, load) {
  const path = `/pools/default/buckets/${part(bucket.name)}`;
  const act = async (method, target, done, question, verb) => {
    if (question && !(await confirmed(question, verb))) return;
    try {
      await ask(method, target);
      notice(done);
    } catch (error) {
      notice(error.message, true);
    }
    load();
  };
  const button = (text, onclick, kind = null) =>
    element("button", { type: "button", class: kind, onclick,
      "aria-label": `${text} ${bucket.name}` }, text);
  const { name } = bucket;
  return [
    button("Change", () => edit(bucket)),
    button("Compact", () => act("POST", `${path}/controller/compactBucket`,
      `The files of ${name} are being compacted`)),
    bucket.controllers.flush ? button("Empty", () => act("POST", `${path}/controller/doFlush`,
      `${name} is empty`, `Delete all documents of the bucket ${name} on all nodes?`,
      "Empty it"), "danger") : null,
    button("Delete", () => act("DELETE", path, `${name} is deleted`,
      `Delete the bucket ${name} with everything in it on all nodes?`, "Delete it"), "danger"),
  ].filter(Boolean);
}

/** A dialog that makes a bucket, or changes this one. */
function form(bucket, done) {
  const name = element("input", { required: true, pattern: "[A-Za-z0-9_.%\\-]{1,100}",
    value: bucket?.name ?? "", disabled: bucket !== null });
  const quota = element("input", { type: "number", min: 100, required: true,
    value: bucket ? bucket.quota.rawRAM / 1048576 : 256 });
  const kind = choice([["membase", "on disk and in memory"], ["ephemeral", "in memory alone"]],
    bucket?.bucketType ?? "membase");
  kind.disabled = bucket !== null;
  const replicas = choice(["0", "1", "2", "3"], String(bucket?.replicaNumber ?? 1));
  const level = choice(LEVELS, bucket?.durabilityMinLevel ?? "none");
  const ttl = element("input", { type: "number", min: 0, value: bucket?.maxTTL ?? 0 });
  const flush = element("input", { type: "checkbox", checked: Boolean(bucket?.controllers.flush) });
  const problem = element("p", { class: "bad", role: "alert" });
  const submit = async (event) => {
    event.preventDefault();
    const fields = { ramQuota: quota.value, replicaNumber: replicas.value,
      durabilityMinLevel: level.value, maxTTL: ttl.value, flushEnabled: flush.checked ? 1 : 0 };
    const path = "/pools/default/buckets";
    try {
      if (bucket) await ask("POST", `${path}/${part(bucket.name)}`, fields);
      else await ask("POST", path, { ...fields, name: name.value, bucketType: kind.value });
      dialog.close();
      notice(bucket ? `${name.value} is changed` : `${name.value} is there`);
      done();
    } catch (error) {
      problem.textContent = error.message;
    }
  };
  const title = bucket ? `Change ${bucket.name}` : "New bucket";
  const dialog = element("dialog", { "aria-label": title, onclose: () => dialog.remove() },
    element("form", { onsubmit: submit },
      element("h2", {}, title),
      element("div", { class: "row" },
        labelled("Name", name), labelled("Memory on each node, MiB", quota),
        labelled("Documents are", kind), labelled("Replicas", replicas),
        labelled("Writes are durable at least", level),
        labelled("Longest life, seconds (0: none)", ttl), labelled("Can be emptied", flush)),
      problem,
      element("button", { class: "first" }, bucket ? "Change it" : "Make it"), " ",
      element("button", { type: "button", onclick: () => dialog.close() }, "Leave it")));
  document.body.append(dialog);
  dialog.showModal();
}
