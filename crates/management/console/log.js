// The last lines of the node's log.

import { choice, element, labelled, notice } from "./elements.js";
import { ask } from "./requests.js";

const REFRESH_MS = 2000;
/** The level of a line in either of the two forms of the log. */
const LEVEL = /(?:^| |"level":")(ERROR|WARN|INFO|DEBUG|TRACE)\b/;
const LEVELS = ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"];
const KINDS = { ERROR: "bad", WARN: "warn" };

/** The page. */
export function log(place) {
  const words = element("input", { type: "search", oninput: () => draw() });
  let [least, lines] = ["TRACE", []];
  const level = choice(LEVELS, least, (value) => {
    least = value;
    draw();
  });
  const said = element("p", { class: "faint", role: "status" });
  const list = element("pre", { class: "card log", tabindex: 0, "aria-label": "Lines" });
  const controls = element("div", { class: "row" },
    labelled("Lines with", words), labelled("At least", level));
  place.append(element("h1", {}, "Log"), controls, said, list);
  filter(controls);

  const draw = () => {
    const isAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
    const levelOf = (line) => LEVEL.exec(line)?.[1] ?? "INFO";
    const fits = (line) => line.includes(words.value)
      && LEVELS.indexOf(levelOf(line)) <= LEVELS.indexOf(least);
    const shown = lines.filter(fits);
    said.textContent = `${shown.length} of the last ${lines.length} lines of this node`;
    list.replaceChildren(...shown.map((line) =>
      element("span", { class: KINDS[levelOf(line)] ?? null }, `${line}\n`)));
    // Who reads further up stays there.
    if (isAtEnd) list.scrollTop = list.scrollHeight;
  };
  const load = async () => {
    if (document.hidden) return;
    try {
      ({ lines } = await ask("GET", "/settee/log"));
      draw();
    } catch (error) {
      said.textContent = error.message;
    }
  };
  load();
  const timer = setInterval(load, REFRESH_MS);
  return () => clearInterval(timer);
}

/** Which lines are logged at all, to be changed by who may. */
async function filter(place) {
  let now;
  try {
    ({ filter: now } = await ask("GET", "/settee/logLevel"));
  } catch {
    return;
  }
  const control = element("input", { required: true, value: now ?? "", size: 28,
    placeholder: "bucket=debug,info" });
  const submit = async (event) => {
    event.preventDefault();
    try {
      await ask("POST", "/settee/logLevel", { filter: control.value });
      notice("The node logs other lines, until it stops");
    } catch (error) {
      notice(error.message, true);
    }
  };
  place.append(element("form", { class: "row", onsubmit: submit },
    labelled("The node logs (a level, or module=level)", control),
    element("button", {}, "Log these")));
}
