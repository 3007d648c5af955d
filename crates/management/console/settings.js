// Settings of the cluster: those that can be changed here, and those that are only shown.

import { element, labelled, notice, table } from "./elements.js";
import { ask } from "./requests.js";

const RULES = [
  ["enforceUppercase", "A capital letter"], ["enforceLowercase", "A small letter"],
  ["enforceDigits", "A digit"], ["enforceSpecialChars", "Another character"],
];
const SHOWN = ["/settings/autoCompaction", "/settings/autoFailover", "/settings/clientCertAuth",
  "/internalSettings"];

/** The page. */
export function settings(place) {
  place.append(element("h1", {}, "Settings"));
  const section = (load) => {
    const part = element("section", { class: "card" });
    place.append(part);
    load(part).catch((error) => part.append(element("p", { class: "bad" }, error.message)));
  };
  section(clusterName);
  section(passwordPolicy);
  SHOWN.forEach((path) => section((part) => shown(part, path)));
  return () => {};
}

async function clusterName(part) {
  part.append(element("h2", {}, "The cluster"));
  const { clusterName: name } = await ask("GET", "/pools/default");
  const control = element("input", { value: name });
  part.append(form([labelled("Name", control)],
    () => ask("POST", "/pools/default", { clusterName: control.value })));
}

async function passwordPolicy(part) {
  part.append(element("h2", {}, "New passwords have at least"));
  const policy = await ask("GET", "/settings/passwordPolicy");
  const length = element("input", { type: "number", min: 0, max: 100, value: policy.minLength });
  const checks = RULES.map(([name, text]) =>
    [name, text, element("input", { type: "checkbox", checked: policy[name] })]);
  const fields = () => Object.fromEntries(
    [["minLength", length.value], ...checks.map(([name, , check]) => [name, check.checked])]);
  part.append(form(
    [labelled("Characters", length), ...checks.map(([, text, check]) => labelled(text, check))],
    () => ask("POST", "/settings/passwordPolicy", fields())));
}

function form(controls, send) {
  const submit = async (event) => {
    event.preventDefault();
    await send().then(() => notice("Changed")).catch((error) => notice(error.message, true));
  };
  return element("form", { class: "row", onsubmit: submit }, controls,
    element("button", {}, "Change it"));
}

async function shown(part, path) {
  part.append(element("h2", {}, path));
  const rows = flat(await ask("GET", path), "").map(([name, value]) =>
    [element("code", {}, name), String(value)]);
  part.append(table("", [{ title: "Setting" }, { title: "Value" }], rows));
}

/** The leaves of a document, by their paths. */
function flat(value, path) {
  if (value === null || typeof value !== "object") return [[path, value]];
  return Object.entries(value).flatMap(([name, inner]) =>
    flat(inner, path ? `${path}.${name}` : name));
}
