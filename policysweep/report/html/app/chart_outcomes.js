// What the agents decide: the composition of their outcomes, and each share with its interval.

import { agents, outcomes, summary } from "./data.js";
import { h } from "./dom.js";
import { intervalPanels, labels, onOutcomeColor, outcomeColor, plot } from "./plot.js";
import { percent } from "./words.js";

function shares() {
  return agents.flatMap((agent) => {
    const found = summary.agents[agent].outcomes.shares;
    return [...outcomes].flatMap(([key, name]) => (found ? [{ agent, key, name, ...found[key] }] : []));
  });
}

export function legend(keys) {
  const entry = (key) => h("li", null, h("i", { class: `o-${key}` }), outcomes.get(key) ?? "Not scored");
  return h("ul", { class: "legend" }, keys.map(entry));
}

export function composition(width) {
  const found = shares().filter((row) => row.share > 0);
  if (!found.length) return null;
  const { margin, format } = labels(agents, width);
  const inner = width - margin - 20;
  const chart = plot({
    width,
    height: agents.length * 34 + 30,
    marginLeft: margin,
    marginRight: 20,
    marginTop: 2,
    marginBottom: 26,
    x: { percent: true, domain: [0, 100], label: null, tickFormat: (tick) => `${tick}%` },
    y: { domain: agents, label: null, tickSize: 0, tickFormat: format, padding: 0.18 },
    marks: [
      Plot.barX(found, Plot.stackX({
        y: "agent", x: "share", fill: (row) => outcomeColor(row.key), inset: 0.5, order: [...outcomes.keys()], z: "key",
        title: (row) => `${row.agent}: ${row.name} ${percent(row.share)}`,
      })),
      Plot.text(found, Plot.stackX({
        y: "agent", x: "share", z: "key", order: [...outcomes.keys()], fill: (row) => onOutcomeColor(row.key),
        text: (row) => (row.share * inner > 24 ? Math.round(100 * row.share) : ""), pointerEvents: "none",
      })),
    ],
  });
  return [legend([...outcomes.keys()].filter((key) => found.some((row) => row.key === key))), chart];
}

export function outcomeIntervals(width) {
  const rows = shares().map((row) => ({
    facet: row.name,
    agent: row.agent,
    value: 100 * row.share,
    low: 100 * (row.interval?.[0] ?? row.share),
    high: 100 * (row.interval?.[1] ?? row.share),
    color: outcomeColor(row.key),
    title: `${row.agent}: ${row.name} ${percent(row.share)}`,
  }));
  if (!rows.length) return null;
  const facets = [...outcomes.values()].filter((name) => rows.some((row) => row.facet === name && row.high > 0));
  const highest = Math.max(...rows.map((row) => row.high));
  return intervalPanels(width, rows, facets, agents, { domain: [0, highest], tickFormat: (tick) => `${tick}%` });
}
