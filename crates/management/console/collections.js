// Scopes and collections of a bucket.

import {
  choice, confirmed, element, labelled, metricName, noBucket, notice, table,
} from "./elements.js";
import { ask, part } from "./requests.js";
import { exact, seconds } from "./units.js";

/** The names of all buckets that the user sees. */
export async function bucketNames() {
  return (await ask("GET", "/pools/default/buckets")).map((bucket) => bucket.name);
}

/** The scopes of a bucket, with their collections. */
export async function scopesOf(bucket) {
  return (await ask("GET", `/pools/default/buckets/${part(bucket)}/scopes`)).scopes;
}

/** The page. */
export function collections(place) {
  const [chooser, list] = [element("div", { class: "row" }), element("div", {})];
  place.append(element("h1", {}, "Collections"), chooser, list);
  let bucket = null;

  const load = async () => {
    try {
      const [scopes, counts] = await Promise.all([
        scopesOf(bucket), ask("GET", `/settee/buckets/${part(bucket)}/collections`)]);
      list.replaceChildren(tableOf(bucket, scopes, counts, change));
    } catch (error) {
      list.replaceChildren(element("p", { class: "bad" }, error.message));
    }
  };
  const change = async (method, path, fields, question) => {
    if (question && !(await confirmed(question, "Drop it"))) return;
    try {
      await ask(method, `/pools/default/buckets/${part(bucket)}/scopes${path}`, fields);
      notice("Done");
      await load();
    } catch (error) {
      notice(error.message, true);
    }
  };
  const scope = element("input", { required: true, pattern: "[A-Za-z0-9\\-][A-Za-z0-9_%\\-]*" });
  const submit = (event) => {
    event.preventDefault();
    change("POST", "", { name: scope.value });
  };
  bucketNames().then((names) => {
    if (names.length === 0) {
      list.replaceChildren(noBucket());
      return;
    }
    [bucket] = names;
    chooser.append(
      labelled("Bucket", choice(names, bucket, (value) => {
        bucket = value;
        load();
      })),
      element("form", { class: "row", onsubmit: submit }, labelled("New scope", scope),
        element("button", {}, "Make scope")));
    load();
  }).catch((error) => list.replaceChildren(element("p", { class: "bad" }, error.message)));
  return () => {};
}

function tableOf(bucket, scopes, counts, change) {
  const columns = [{ title: "Scope" }, { title: "Collection" },
    { title: "Documents of this node", isNumber: true },
    { title: "Longest life", isNumber: true }, { title: "" }];
  const isOwn = (name) => name.startsWith("_");
  const items = (scope, collection) => {
    const found = counts.find((it) => it.scope === scope && it.collection === collection);
    return [exact(found?.items ?? 0), metricName("kv_collection_item_count")];
  };
  const drop = (text, path, question) =>
    element("button", { type: "button", class: "danger", "aria-label": text,
      onclick: () => change("DELETE", path, undefined, question) }, "Drop");
  const rows = scopes.flatMap((scope) => {
    const path = `/${part(scope.name)}`;
    const name = element("input",
      { required: true, "aria-label": `New collection in ${scope.name}` });
    const submit = (event) => {
      event.preventDefault();
      change("POST", `${path}/collections`, { name: name.value });
    };
    const own = scope.collections.map((it) => [
      scope.name, it.name, items(scope.name, it.name), it.maxTTL ? seconds(it.maxTTL) : "–",
      isOwn(scope.name) && isOwn(it.name) ? null
        : drop(`Drop the collection ${it.name} of ${scope.name}`,
          `${path}/collections/${part(it.name)}`,
          `Drop the collection ${scope.name}.${it.name} of ${bucket} with all its documents?`),
    ]);
    const last = [scope.name,
      element("form", { onsubmit: submit }, name, " ",
        element("button", {}, "Make collection")), "", "",
      isOwn(scope.name) ? null
        : drop(`Drop the scope ${scope.name}`, path,
          `Drop the scope ${scope.name} of ${bucket} with all its collections?`)];
    return [...own, last];
  });
  return table(`Scopes and collections of ${bucket}`, columns, rows);
}
