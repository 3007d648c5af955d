// Lines over time, by uPlot, with what they are and their values now as text.

import { element, metricName } from "./elements.js";
import { now, overTime, times } from "./figures.js";

const HEIGHT = 170;
const dark = matchMedia("(prefers-color-scheme: dark)");

/**
 * A chart: `title`; `metrics`, the names of what it shows; `unit`, which writes a value; and
 * `lines`, each `{label, read}`. `update` draws what there is now.
 */
export function chart({ title, metrics, unit, lines }) {
  const plot = element("div", { class: "plot", role: "img" });
  const values = lines.map(() => element("span", { class: "value" }, "–"));
  const legend = element("ul", { class: "legend" }, lines.map((line, at) =>
    element("li", { class: `series-${at % 6}` }, `${line.label} `, values[at])));
  const root = element("section", { class: "card" },
    element("h2", {}, title), metricName(...metrics), plot, legend);
  let drawn = null;
  let theme = null;

  const update = () => {
    const data = [times(), ...lines.map((line) => overTime(line.read))];
    const texts = lines.map((line) => unit(now(line.read)));
    texts.forEach((text, at) => { values[at].textContent = text; });
    plot.setAttribute("aria-label",
      `${title}, ten minutes; now ${lines.map((it, at) => `${it.label} ${texts[at]}`).join(", ")}`);
    if (!plot.clientWidth) return;
    if (!drawn || theme !== dark.matches) {
      theme = dark.matches;
      drawn?.destroy();
      drawn = new globalThis.uPlot(options(plot, lines, unit), data, plot);
      return;
    }
    drawn.setData(data);
    const width = plot.clientWidth;
    if (drawn.width !== width) drawn.setSize({ width, height: HEIGHT });
  };
  return { root, update, destroy: () => drawn?.destroy() };
}

function options(plot, lines, unit) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const axis = {
    stroke: colour("--faint"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
    font: "11px system-ui, sans-serif",
  };
  return {
    width: plot.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    scales: { y: { range: (_, least, greatest) => [Math.min(0, least ?? 0), greatest || 1] } },
    axes: [
      axis,
      { ...axis, size: 64, values: (_, marks) => marks.map((mark) => unit(mark)) },
    ],
    series: [{}, ...lines.map((line, at) => ({
      label: line.label,
      stroke: colour(`--series-${at % 6}`),
      width: 1.5,
      dash: at < 6 ? undefined : [6, 4],
      points: { show: false },
      spanGaps: true,
    }))],
  };
}

/** A number with its name; `update` writes what it is now. */
export function tile({ title, metrics, unit, read }) {
  const value = element("span", { class: "value" }, "–");
  const root = element("section", { class: "card tile" },
    element("h2", {}, title), value, metricName(...metrics));
  return { root, update: () => { value.textContent = unit(now(read)); }, destroy: () => {} };
}
