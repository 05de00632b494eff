// The charts of a stream run: pass^k with intervals, and the learning curve over a family.

import { h } from "./dom.js";
import { intervalPanels, plot } from "./plot.js";
import { summary } from "./stream_data.js";
import { percent } from "./words.js";

const WIDE_PANEL = 420; // With room for the names of methods.
const COLORS = ["var(--none)", "var(--agree)", "var(--full)", "var(--deny)", "var(--abort)", "var(--escalate)", "var(--gift)", "var(--partial)"];

function armsOf(domain) {
  return summary.arms.filter((arm) => arm.domain === domain);
}

function passes(width, domain) {
  const arms = armsOf(domain);
  const rows = arms.flatMap(({ title, groups }) => groups.sisters.pass.flatMap(({ k, value, interval }) => {
    if (value == null) return [];
    const [low, high] = interval ?? [value, value];
    return [{
      facet: `pass^${k}`, agent: title, value: 100 * value, low: 100 * low, high: 100 * high, color: "var(--agree)",
      title: `${title}, pass^${k}: ${percent(value)}${interval ? ` [${percent(low)}, ${percent(high)}]` : " (no interval)"}`,
    }];
  }));
  if (!rows.length) return null;
  return intervalPanels(width, rows, [...new Set(rows.map((row) => row.facet))], arms.map(({ title }) => title), { domain: [0, 100] }, WIDE_PANEL);
}

function legend(names) {
  return h("ul", { class: "legend" }, names.map((name, position) => {
    const key = h("i");
    key.style.background = COLORS[position % COLORS.length];
    return h("li", null, key, name);
  }));
}

function curve(width, domain) {
  const arms = armsOf(domain);
  const rows = arms.flatMap(({ title, curve: places }) => places.filter(({ value }) => value != null).map(({ place, value, interval }) => ({
    place, title, value: 100 * value, told: `${title}, ${place}: ${percent(value)}${interval ? ` [${percent(interval[0])}, ${percent(interval[1])}]` : ""}`,
  })));
  if (!rows.length) return null;
  const color = (title) => COLORS[arms.findIndex((arm) => arm.title === title) % COLORS.length];
  const stroke = { x: "place", y: "value", z: "title", stroke: (row) => color(row.title) };
  const drawn = plot({
    width: Math.min(width, 680),
    height: 260,
    marginLeft: 40,
    marginTop: 10,
    x: { type: "point", domain: [...new Set(arms[0].curve.map(({ place }) => place))], label: null },
    y: { domain: [0, 100], label: null, grid: true, tickFormat: (tick) => `${tick}%` },
    marks: [
      Plot.lineY(rows, { ...stroke, strokeWidth: 2 }),
      Plot.dot(rows, { x: "place", y: "value", r: 4, fill: (row) => color(row.title), stroke: "var(--paper)", title: "told" }),
    ],
  });
  return h("div", null, legend(arms.map(({ title }) => title)), drawn);
}

export const STREAM_CHARTS = { passes, curve };
