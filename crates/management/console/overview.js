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
    const known = [labelValues("kv_curr_items", "bucket"), kinds()].join();
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
  return [
    one("Operations", perSecond, rate("kv_ops", of), "kv_ops_total"),
    one("Documents", count, sum("kv_curr_items", of), "kv_curr_items"),
    one("Memory", bytes, sum("kv_mem_used_bytes", of), "kv_mem_used_bytes"),
    one("Resident", percent, resident(of), "kv_ep_num_non_resident", "kv_curr_items_tot"),
    one("Waiting for the disk", count, sum("kv_ep_diskqueue_items", of), "kv_ep_diskqueue_items"),
    one("Read from disk", perSecond, rate("kv_ep_bg_fetched", of), "kv_ep_bg_fetched_total"),
    one("Writes without memory", perSecond, rate("kv_ep_tmp_oom_errors", of),
      "kv_ep_tmp_oom_errors_total"),
    one("Copies not whole", count, sum("kv_ep_vbuckets_incomplete", of),
      "kv_ep_vbuckets_incomplete"),
    one("Connections", count, sum("kv_curr_connections"), "kv_curr_connections"),
    one("vBuckets pending", count, sum("kv_cluster_map_pending_vbuckets"),
      "kv_cluster_map_pending_vbuckets"),
    one("Up for", seconds, sum("kv_uptime_seconds"), "kv_uptime_seconds"),
    one("Resident memory", bytes, sum("sysproc_mem_resident"), "sysproc_mem_resident"),
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
  const kind = (op) => ({ label: op, read: rate("kv_ops", { bucket, op }) });
  const parts = { label: "parts of documents", read: rate("kv_subdoc_ops", of) };
  const gauge = (label, name) => ({ label, read: sum(name, of) });
  return [
    chart({
      title: "Operations by kind",
      metrics: ["kv_ops_total", "kv_subdoc_ops_total"],
      unit: perSecond,
      lines: [...kinds().map(kind), parts],
    }),
    latency("Reads", "kv_cmd_duration_seconds", { bucket, opcode: "GET" }),
    latency("Writes", "kv_cmd_duration_seconds", { bucket, opcode: "SET" }),
    latency("Durable writes", "kv_sync_write_commit_duration_seconds", of),
    chart({
      title: "Memory and its marks",
      metrics: ["kv_mem_used_bytes", "kv_ep_mem_low_wat_bytes", "kv_ep_mem_high_wat_bytes",
        "kv_ep_max_size"],
      unit: bytes,
      lines: [gauge("used", "kv_mem_used_bytes"), gauge("low", "kv_ep_mem_low_wat_bytes"),
        gauge("high", "kv_ep_mem_high_wat_bytes"), gauge("quota", "kv_ep_max_size")],
    }),
    chart({
      title: "Values in memory",
      metrics: ["kv_ep_num_non_resident", "kv_curr_items_tot"],
      unit: percent,
      lines: [{ label: "resident", read: resident(of) }],
    }),
    chart({
      title: "Disk queue",
      metrics: ["kv_ep_diskqueue_items"],
      unit: count,
      lines: [gauge("waiting", "kv_ep_diskqueue_items")],
    }),
    chart({
      title: "Disk",
      metrics: ["kv_ep_total_persisted_total", "kv_ep_bg_fetched_total"],
      unit: perSecond,
      lines: [{ label: "made durable", read: rate("kv_ep_total_persisted", of) },
        { label: "read", read: rate("kv_ep_bg_fetched", of) }],
    }),
    chart({
      title: "Bytes in and out",
      metrics: ["kv_read_bytes_total", "kv_written_bytes_total"],
      unit: bytesPerSecond,
      lines: [{ label: "in", read: rate("kv_read_bytes", of) },
        { label: "out", read: rate("kv_written_bytes", of) }],
    }),
  ];
}
