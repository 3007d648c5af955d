// The nodes of the cluster, and what of each bucket each of them has.

import { element, metricName, table } from "./elements.js";
import { ask } from "./requests.js";
import { bytes, count, perSecond, seconds } from "./units.js";

const REFRESH_MS = 5000;

/** The page. */
export function servers(place) {
  const [nodes, maps] = [element("div", {}), element("div", {})];
  place.append(element("h1", {}, "Servers"), nodes, maps);
  const load = async () => {
    if (document.hidden) return;
    try {
      const [pool, buckets] = await Promise.all([
        ask("GET", "/pools/default"), ask("GET", "/pools/default/buckets")]);
      nodes.replaceChildren(nodesTable(pool));
      maps.replaceChildren(...buckets.map(mapTable));
    } catch (error) {
      nodes.replaceChildren(element("p", { class: "bad" }, error.message));
    }
  };
  load();
  const timer = setInterval(load, REFRESH_MS);
  return () => clearInterval(timer);
}

function nodesTable(pool) {
  const columns = [{ title: "Node" }, { title: "Status" }, { title: "Version" },
    { title: "Up for", isNumber: true }, { title: "Operations", isNumber: true },
    { title: "Documents", isNumber: true }, { title: "Memory", isNumber: true },
    { title: "Disk", isNumber: true }];
  const rows = pool.nodes.map((node) => {
    const stats = node.interestingStats ?? {};
    const kind = node.status === "healthy" ? "good" : "warn";
    return [
      [element("strong", {}, node.hostname), node.thisNode ? " (this one)" : ""],
      element("span", { class: kind }, `${node.status}, ${node.clusterMembership}`),
      node.version,
      [seconds(Number(node.uptime)), metricName("kv_uptime_seconds")],
      [perSecond(stats.ops), metricName("kv_ops")],
      [count(stats.curr_items), metricName("kv_curr_items")],
      [bytes(stats.mem_used), metricName("kv_mem_used_bytes")],
      [bytes(stats.couch_docs_actual_disk_size), metricName("couch_docs_actual_disk_size")],
    ];
  });
  return table(`The cluster ${pool.clusterName || "has no name"}`, columns, rows);
}

function mapTable(bucket) {
  const { serverList, vBucketMap } = bucket.vBucketServerMap;
  const columns = [{ title: "Node" }, { title: "Active vBuckets", isNumber: true },
    { title: "Replicas", isNumber: true }];
  const rows = serverList.map((server, at) => [
    server,
    count(vBucketMap.filter(([active]) => active === at).length),
    count(vBucketMap.filter(([, ...replicas]) => replicas.includes(at)).length),
  ]);
  const nowhere = vBucketMap.filter(([active]) => active < 0).length;
  return element("div", {},
    table(`The map of ${bucket.name}, ${vBucketMap.length} vBuckets`, columns, rows),
    nowhere > 0 ? element("p", { class: "bad" }, `${nowhere} vBuckets are active on no node.`)
      : null);
}
