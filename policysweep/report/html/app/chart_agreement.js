// How far the agents agree: rates against chance, and the kappa of each pair.

import { agents, summary } from "./data.js";
import { labels, plot } from "./plot.js";
import { percent } from "./words.js";

function rates() {
  const found = summary.agreement;
  const between = [["all_agree", "All agents"], ["coarse_all_agree", "All, coarse map"]]
    .map(([key, name]) => ({ name, value: found[key].rate, ...found[key] }));
  const within = Object.entries(found.self).flatMap(([agent, list]) =>
    list.map((rate) => ({ name: `${agent} with itself (${rate.trials})`, ...rate })));
  return [...between, ...within].filter((rate) => rate.value != null);
}

export function agreementRates(width) {
  const rows = rates();
  if (!rows.length) return null;
  const names = rows.map((row) => row.name);
  const { margin, format } = labels(names, width);
  const bounded = rows.filter((row) => row.interval);
  const byChance = rows.filter((row) => row.chance != null);
  return plot({
    width: Math.min(width, 720),
    height: rows.length * 34 + 30,
    marginLeft: margin,
    marginRight: 20,
    marginTop: 4,
    marginBottom: 26,
    x: { percent: true, domain: [0, 100], label: null, tickFormat: (tick) => `${tick}%`, grid: true },
    y: { domain: names, label: null, tickSize: 0, tickFormat: format },
    marks: [
      Plot.ruleY(bounded, { y: "name", x1: (row) => row.interval[0], x2: (row) => row.interval[1], strokeWidth: 2.5, stroke: "var(--agree)" }),
      Plot.dot(rows, { y: "name", x: "value", r: 5, fill: "var(--agree)", stroke: "var(--paper)", title: (row) => `${row.name}: ${percent(row.value)}` }),
      Plot.tickX(byChance, { y: "name", x: "chance", stroke: "currentColor", strokeWidth: 1.5, insetTop: 4, insetBottom: 4, title: (row) => `By chance: ${percent(row.chance)}` }),
      Plot.text(byChance, { y: "name", x: "chance", text: () => "chance", dy: -12, fill: "var(--dim)", fontSize: 10 }),
    ],
  });
}

function cells() {
  return summary.agreement.pairwise.flatMap((pair) => {
    const { value, interval } = pair.cohen_kappa;
    const bounds = interval ? `[${interval.map((bound) => bound.toFixed(2)).join(", ")}]` : "";
    const cell = { value, bounds, n: pair.n };
    const [first, second] = pair.agents;
    return [{ ...cell, row: first, column: second }, { ...cell, row: second, column: first }];
  });
}

export function kappaMap(width) {
  const found = cells();
  if (found.every((cell) => cell.value === null)) return null;
  const { margin, format } = labels(agents, width);
  const side = Math.min(92, (width - margin - 10) / agents.length);
  const text = { x: "column", y: "row", pointerEvents: "none" };
  const roomy = side > 70;
  return plot({
    width: margin + side * agents.length + 10,
    height: Math.min(side, 56) * agents.length + 40,
    marginLeft: margin,
    marginTop: 28,
    x: { domain: agents, axis: "top", label: null, tickSize: 0, tickFormat: labels(agents, side * 3).format },
    y: { domain: agents, label: null, tickSize: 0, tickFormat: format },
    marks: [
      Plot.cell(found, {
        x: "column", y: "row", inset: 1, fill: (cell) => (cell.value < 0 ? "var(--below)" : "var(--agree)"),
        fillOpacity: (cell) => 0.5 * Math.min(1, Math.abs(cell.value ?? 0)),
        title: (cell) => `${cell.row} and ${cell.column}: ${cell.value?.toFixed(2) ?? "undefined"} ${cell.bounds}, n = ${cell.n}`,
      }),
      Plot.text(found, { ...text, text: (cell) => cell.value?.toFixed(2) ?? "none", dy: roomy ? -6 : 0, fontWeight: 600 }),
      roomy ? Plot.text(found, { ...text, text: "bounds", dy: 9, fontSize: 10, fill: "var(--dim)" }) : null,
      Plot.text(agents, { x: (agent) => agent, y: (agent) => agent, text: () => "–", fill: "var(--dim)" }),
    ],
  });
}
