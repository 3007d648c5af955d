// Documents: their keys, a page at a time, and one of them to read and change.

import { bucketNames, scopesOf } from "./collections.js";
import { choice, confirmed, element, labelled, noBucket, notice } from "./elements.js";
import { ask, part } from "./requests.js";
import { bytes } from "./units.js";

/** Keys that are shown before somebody asks for more. */
const KEYS_SHOWN = 50;

/** The page. */
export function documents(place) {
  const chooser = element("div", { class: "row" });
  const [list, editor] = [element("div", {}), element("section", { class: "card" })];
  place.append(element("h1", {}, "Documents"), chooser,
    element("div", { class: "split" }, list, editor));
  const at = { bucket: null, scope: "_default", collection: "_default" };
  const path = () => `/pools/default/buckets/${part(at.bucket)}/scopes/${part(at.scope)}`
    + `/collections/${part(at.collection)}/docs`;
  const prefix = element("input", { type: "search" });
  const key = element("input", { required: true });
  let search = 0;

  const browse = async () => {
    search += 1;
    const mine = search;
    const keys = element("ul", { class: "keys", "aria-label": "Keys" });
    const more = element("button", { type: "button", hidden: true, onclick: () => load() }, "More");
    const said = element("p", { class: "faint", role: "status" });
    list.replaceChildren(keys, said, more);
    let next = {};
    const load = async () => {
      more.hidden = true;
      said.textContent = "Looking for keys";
      let found = 0;
      try {
        // A page ends after some vBuckets even if none of them has a key.
        while (next && found < KEYS_SHOWN && mine === search) {
          const query = new URLSearchParams({ prefix: prefix.value, limit: KEYS_SHOWN, ...next });
          const page = await ask("GET", `${path()}?${query}`);
          if (mine !== search) return;
          keys.append(...page.keys.map((name) => element("li", {}, keyButton(name))));
          found += page.keys.length;
          next = page.next;
        }
        const shown = keys.children.length;
        said.textContent = `${shown} ${shown === 1 ? "key" : "keys"} of this node that are durable`
          + (next ? "; there may be more" : "");
        more.hidden = !next;
      } catch (error) {
        said.textContent = error.message;
      }
    };
    await load();
  };
  const keyButton = (name) => element("button", { type: "button", "aria-pressed": "false",
    onclick: (event) => {
      list.querySelectorAll("[aria-pressed=true]").forEach((it) =>
        it.setAttribute("aria-pressed", "false"));
      event.target.setAttribute("aria-pressed", "true");
      open(name);
    } }, name);
  const open = async (name) => {
    const target = `${path()}/${part(name)}`;
    try {
      edit(editor, name, target, await ask("GET", target), open, browse);
    } catch (error) {
      if (error.status === 404) edit(editor, name, target, null, open, browse);
      else editor.replaceChildren(element("p", { class: "bad", role: "alert" }, error.message));
    }
  };
  const choose = async () => {
    const scopes = await scopesOf(at.bucket);
    const scope = scopes.find((it) => it.name === at.scope) ?? scopes[0];
    at.scope = scope?.name ?? "_default";
    const names = (scope?.collections ?? []).map((it) => it.name);
    if (!names.includes(at.collection)) [at.collection] = names;
    const select = (field) => (value) => {
      at[field] = value;
      choose();
    };
    const submit = (act) => (event) => {
      event.preventDefault();
      act();
    };
    chooser.replaceChildren(
      labelled("Bucket", choice(await bucketNames(), at.bucket, select("bucket"))),
      labelled("Scope", choice(scopes.map((it) => it.name), at.scope, select("scope"))),
      labelled("Collection", choice(names, at.collection, select("collection"))),
      element("form", { class: "row", onsubmit: submit(browse) },
        labelled("Keys that begin with", prefix), element("button", {}, "Look")),
      element("form", { class: "row", onsubmit: submit(() => open(key.value)) },
        labelled("Key", key), element("button", {}, "Open or make")));
    editor.replaceChildren(element("p", { class: "faint" }, "Choose a key, or type one."));
    browse();
  };
  bucketNames().then((names) => {
    [at.bucket] = names;
    if (at.bucket) return choose();
    list.replaceChildren(noBucket());
    return null;
  }).catch((error) => list.replaceChildren(element("p", { class: "bad" }, error.message)));
  return () => { search += 1; };
}

/** One document, or a new one where there is none. */
function edit(place, name, target, document, open, browse) {
  const isText = document === null || document.value !== null;
  const text = element("textarea", { spellcheck: "false", "aria-label": "Value",
    value: document ? pretty(document) : "{}" });
  const problem = element("p", { class: "bad", role: "alert" });
  const act = (work, done) => async () => {
    problem.textContent = "";
    try {
      await work();
      notice(done);
      await open(name);
    } catch (error) {
      problem.textContent = error.message;
    }
  };
  const version = document ? { cas: document.cas, flags: document.flags } : { new: true };
  const save = act(() => ask("POST", target, { value: text.value, ...version }), "Stored");
  const remove = async () => {
    if (!(await confirmed(`Delete the document ${name}?`, "Delete it"))) return;
    await act(() => ask("DELETE", `${target}?cas=${document.cas}`), "Deleted")();
    browse();
  };
  place.replaceChildren(
    element("h2", {}, name),
    element("p", { class: "metric" }, document ? facts(document)
      : "There is no such document yet. What is stored now is new."),
    isText ? text : element("p", {}, "The value is no text, or longer than 256 KiB. Read it with "
      + "settee get, or with an SDK."),
    problem,
    element("div", { class: "row" },
      isText ? element("button", { type: "button", class: "first", onclick: save }, "Store") : null,
      element("button", { type: "button", onclick: () => open(name) }, "Read again"),
      document ? element("button", { type: "button", class: "danger", onclick: remove }, "Delete")
        : null));
}

function facts({ cas, flags, expiration, size, isJson }) {
  const until = expiration ? new Date(expiration * 1000).toISOString() : "never";
  return `cas ${cas} · flags ${flags} · ${isJson ? "JSON" : "bytes"} of ${bytes(size)}`
    + ` · expires ${until}`;
}

/** JSON on several lines, unless reading it as numbers of JavaScript would change it. */
function pretty({ value, isJson }) {
  if (!isJson || value === null) return value ?? "";
  try {
    const read = JSON.parse(value);
    return JSON.stringify(read) === value ? JSON.stringify(read, null, 2) : value;
  } catch {
    return value;
  }
}
