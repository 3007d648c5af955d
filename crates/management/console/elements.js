// Elements, made of text alone: nothing that comes from a node is ever read as markup.

/** An element with attributes, handlers (`onclick`) and children; what is null is left out. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "value") made.value = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** A table: columns are `{title, isNumber}`, rows lists of cells. */
export function table(caption, columns, rows) {
  const kind = (column) => (column.isNumber ? "number" : null);
  const head = columns.map((it) => (it.title === "" ? element("td")
    : element("th", { scope: "col", class: kind(it) }, it.title)));
  const line = (cells) =>
    element("tr", {}, cells.map((cell, at) => element("td", { class: kind(columns[at]) }, cell)));
  return element("div", { class: "scroll" },
    element("table", {},
      element("caption", {}, caption),
      element("thead", {}, element("tr", {}, head)),
      element("tbody", {}, rows.map(line))));
}

/** A control under its label. */
export function labelled(text, control) {
  const isCheck = control.type === "checkbox";
  return element("label", { class: isCheck ? "check" : null },
    isCheck ? [control, text] : [text, control]);
}

/** A list to choose from; options are texts, or pairs of value and text. */
export function choice(options, chosen, onchange) {
  const option = (it) => {
    const [value, text] = Array.isArray(it) ? it : [it, it];
    return element("option", { value, selected: value === chosen }, text);
  };
  return element("select", { onchange: (event) => onchange?.(event.target.value) },
    options.map(option));
}

/** The name of the metric that a number is. */
export function metricName(...names) {
  return element("div", { class: "metric" }, names.join(" "));
}

/** What is said where buckets are and there are none. */
export function noBucket() {
  return element("p", {}, "There is no bucket yet; make one on the page Buckets.");
}

/** Tells something in the corner, for some seconds. */
export function notice(text, isBad = false) {
  const line = element("p", { class: isBad ? "bad" : null }, text);
  document.getElementById("notices").append(line);
  setTimeout(() => line.remove(), isBad ? 12000 : 5000);
}

/** Asks before something is done that cannot be undone. Resolves to whether it is to be. */
export function confirmed(question, verb) {
  return new Promise((resolve) => {
    const dialog = element("dialog", { "aria-label": verb, onclose: () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    } },
    element("p", {}, question),
    element("div", { class: "row" },
      element("button", { type: "button", autofocus: true, onclick: () => dialog.close("no") },
        "Leave it"),
      element("button", { type: "button", class: "danger", onclick: () => dialog.close("yes") },
        verb)));
    document.body.append(dialog);
    dialog.showModal();
  });
}
