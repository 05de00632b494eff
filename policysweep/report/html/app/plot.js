// What all charts share. Observable Plot draws SVG with currentColor and the page's color variables, so a chart
// follows the theme without being drawn again.

import { h } from "./dom.js";
import { shortened } from "./words.js";

const COLORS = {
  RETURN_REFUND_FULL_BANK: "full",
  RETURN_REFUND_PARTIAL_BANK: "partial",
  RETURN_REFUND_GIFT_CARD: "gift",
  REPLACEMENT_EXCHANGE: "replace",
  DENY_REFUND: "deny",
  ESCALATE_HUMAN_AGENT: "escalate",
  USER_ABORT: "abort",
};

export function outcomeColor(key) {
  return `var(--${COLORS[key] ?? "none"})`;
}

export function onOutcomeColor(key) {
  return `var(--on-${COLORS[key] ?? "none"})`;
}

export function plot(options) {
  const svg = Plot.plot({ className: "chart", ...options });
  // Its style element would need an exception in the page's policy; charts.css holds the same rules.
  for (const style of svg.querySelectorAll("style")) style.remove();
  // The place that the chart is drawn into has a label of its own; those of the parts say "dot" and "rule".
  for (const part of svg.querySelectorAll("[aria-label]")) part.removeAttribute("aria-label");
  return svg;
}

const CHARACTER = 6.6; // Width of a character, in pixels.

// Room for row labels, and labels that fit in: a third of the width at most. Names that are too long lose what
// they all begin with, since it is the rest that tells them apart.
export function labels(names, width) {
  const longest = Math.max(0, ...names.map((name) => name.length));
  const length = Math.max(6, Math.min(longest, Math.floor(width / 3 / CHARACTER)));
  const shared = longest > length && names.length > 1 ? sharedStart(names) : 0;
  const format = (name) => shortened(shared > 1 ? `…${name.slice(shared)}` : name, length);
  return { margin: Math.ceil(length * CHARACTER) + 12, format };
}

function sharedStart([first, ...others]) {
  let at = 0;
  while (at < first.length && others.every((name) => name[at] === first[at])) at += 1;
  return at;
}

const ROW = 17;
const PANEL = 290; // Narrowest panel, in pixels.

// Values with intervals: a small chart for each `facet`, a row for each agent, one scale for all.
// rows: [{facet, agent, value, low, high, title, color}]; `x` are the options of the scale, with its domain.
export function intervalPanels(width, rows, facets, agents, x, narrowest = PANEL) {
  const columns = Math.max(1, Math.min(facets.length, Math.floor(width / narrowest)));
  const each = Math.floor((width - (columns - 1) * 24) / columns);
  const { margin, format } = labels(agents, each);
  const panel = (facet) => plot({
    width: each,
    height: agents.length * ROW + 26,
    marginLeft: margin,
    marginRight: 14,
    marginTop: 2,
    marginBottom: 24,
    x: { label: null, ticks: 5, ...x },
    y: { domain: agents, label: null, tickSize: 0, tickFormat: format, padding: 0.3 },
    marks: [
      Plot.gridX({ strokeOpacity: 0.14, ticks: 5 }),
      Plot.ruleY(rows.filter((row) => row.facet === facet), { y: "agent", x1: "low", x2: "high", stroke: "color", strokeWidth: 6, strokeOpacity: 0.4 }),
      Plot.dot(rows.filter((row) => row.facet === facet), { y: "agent", x: "value", r: 3.5, fill: "color", stroke: "var(--paper)", title: "title" }),
    ],
  });
  return h("div", { class: "panels" }, facets.map((facet) => h("div", null, h("p", { class: "facet-title" }, facet), panel(facet))));
}
