// What the node does now, and has done in the last ten minutes.

import { chart, tile } from "./charts.js";
import { choice, element, labelled } from "./elements.js";
import { labelValues, now, quantile, rate, sum, watch } from "./figures.js";
import { bytes, bytesPerSecond, count, percent, perSecond, seconds } from "./units.js";

const ALL = "all buckets";

/** The page. Returns what ends it. */
export function overview(place) {
  let bucket = null;
  let parts = [];
  let shown = "";
  const chooser = element("div", { class: "row" });
  const tiles = element("div", { class: "tiles" });
  const charts = element("div", { class: "charts" });
  place.append(element("h1", {}, "Overview"), chooser, tiles, charts);

  const build = () => {
    const buckets = labelValues("kv_curr_items", "bucket");
    chooser.replaceChildren(labelled("Bucket",
      choice([ALL, ...buckets], bucket ?? ALL, (value) => {
        bucket = value === ALL ? null : value;
        build();
      })));
    parts.forEach((part) => part.destroy());
    const [numbers, lines] = [tilesOf(bucket), chartsOf(bucket)];
    parts = [...numbers, ...lines];
    tiles.replaceChildren(...numbers.map((part) => part.root));
    charts.replaceChildren(...lines.map((part) => part.root));
    parts.forEach((part) => part.update());
  };
  const unwatch = watch(() => {
    // Kinds of operations and buckets come while the page is open.
    const known = [labelValues("kv_curr_items", "bucket"), kinds(), streamKinds()].join();
    if (known !== shown) {
      shown = known;
      return build();
    }
    parts.forEach((part) => part.update());
  });
  return () => {
    unwatch();
    parts.forEach((part) => part.destroy());
  };
}

/** Kinds of operations that there have been in some bucket. */
function kinds() {
  return labelValues("kv_ops", "op").filter((op) => now(sum("kv_ops", { op })) > 0);
}

/** Kinds of connections that streams go out on. */
function streamKinds() {
  return labelValues("kv_dcp_items_remaining", "connection_type");
}

/** Percent that are told as such. */
const share = (value) => percent(value / 100);

function resident(labels) {
  const [cold, all] = [sum("kv_ep_num_non_resident", labels), sum("kv_curr_items_tot", labels)];
  return (frame) => {
    const [out, items] = [cold(frame), all(frame)];
    return items === undefined ? undefined : items === 0 ? 1 : 1 - (out ?? 0) / items;
  };
}

function tilesOf(bucket) {
  const of = { bucket };
  const one = (title, unit, read, ...metrics) => tile({ title, unit, read, metrics });
  const gauge = (title, unit, name, labels = of) => one(title, unit, sum(name, labels), name);
  const counter = (title, name) => one(title, perSecond, rate(name, of), name);
  return [
    counter("Operations", "kv_ops"),
    gauge("Documents", count, "kv_curr_items"),
    gauge("Memory", bytes, "kv_mem_used_bytes"),
    one("Resident", percent, resident(of), "kv_ep_num_non_resident", "kv_curr_items_tot"),
    gauge("Waiting for the disk", count, "kv_ep_diskqueue_items"),
    counter("Read from disk", "kv_ep_bg_fetched"),
    gauge("Files", bytes, "couch_docs_actual_disk_size"),
    gauge("Behind on other nodes", count, "kv_dcp_items_remaining",
      { ...of, connection_type: "replication" }),
    counter("Writes without memory", "kv_ep_tmp_oom_errors"),
    gauge("Copies not whole", count, "settee_vbuckets_incomplete"),
    gauge("Damaged vBuckets", count, "settee_vbuckets_damaged"),
    gauge("Connections", count, "kv_curr_connections", {}),
    gauge("vBuckets pending", count, "settee_cluster_map_pending_vbuckets", {}),
    one("CPU of the node", share, sum("sysproc_cpu_utilization"), "sysproc_cpu_utilization"),
    gauge("Physical memory", bytes, "sysproc_mem_resident", {}),
    gauge("Up for", seconds, "kv_uptime_seconds", {}),
  ];
}

function latency(title, name, labels) {
  const line = (label, part) => ({ label, read: quantile(part, name, labels) });
  return chart({
    title,
    metrics: [name],
    unit: seconds,
    lines: [line("p50", 0.5), line("p99", 0.99), line("p99.9", 0.999)],
  });
}

function chartsOf(bucket) {
  const of = { bucket };
  const gauge = (label, name, labels = of) => ({ label, read: sum(name, labels) });
  const speed = (label, name, labels = of) => ({ label, read: rate(name, labels) });
  const one = (title, unit, metrics, ...lines) => chart({ title, unit, metrics, lines });
  return [
    one("Operations by kind", perSecond, ["kv_ops", "kv_subdoc_ops"],
      ...kinds().map((op) => speed(op, "kv_ops", { bucket, op })),
      speed("parts of documents", "kv_subdoc_ops")),
    latency("Reads", "kv_cmd_duration_seconds", { bucket, opcode: "GET" }),
    latency("Writes", "kv_cmd_duration_seconds", { bucket, opcode: "SET" }),
    latency("Durable writes", "kv_sync_write_commit_duration_seconds", of),
    one("Memory and its marks", bytes,
      ["kv_mem_used_bytes", "kv_ep_mem_low_wat", "kv_ep_mem_high_wat", "kv_ep_max_size"],
      gauge("used", "kv_mem_used_bytes"), gauge("low", "kv_ep_mem_low_wat"),
      gauge("high", "kv_ep_mem_high_wat"), gauge("quota", "kv_ep_max_size")),
    one("Values in memory", percent, ["kv_ep_num_non_resident", "kv_curr_items_tot"],
      { label: "resident", read: resident(of) }),
    one("Disk queue", count, ["kv_ep_diskqueue_items"],
      gauge("waiting", "kv_ep_diskqueue_items")),
    one("Disk", perSecond, ["kv_ep_total_persisted", "kv_ep_bg_fetched"],
      speed("made durable", "kv_ep_total_persisted"), speed("read", "kv_ep_bg_fetched")),
    one("Still to be sent to others", count, ["kv_dcp_items_remaining"],
      ...streamKinds().map((connection_type) =>
        gauge(connection_type.replace(/^_/, ""), "kv_dcp_items_remaining",
          { bucket, connection_type }))),
    one("Bytes in and out", bytesPerSecond, ["kv_read_bytes", "kv_written_bytes"],
      speed("in", "kv_read_bytes"), speed("out", "kv_written_bytes")),
    one("CPU", share, ["sysproc_cpu_utilization", "sys_cpu_utilization_rate"],
      gauge("this node, of one CPU", "sysproc_cpu_utilization", {}),
      gauge("the machine", "sys_cpu_utilization_rate", {})),
  ];
}
