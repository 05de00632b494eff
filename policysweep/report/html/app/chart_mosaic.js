// Every conversation by its outcome: a row is a task, a column a customer persona, a panel an agent.

import { agents, category, categoryName, index, outcomes, personaName, scenarioOf, summary, UNSCORED } from "./data.js";
import { legend } from "./chart_outcomes.js";
import { labels, outcomeColor, plot } from "./plot.js";

function cells() {
  const first = new Map(); // Of several trials or agent personas, the first one stands for the case.
  for (const unit of index.units) {
    const key = JSON.stringify([unit.agent, unit.scenario]);
    if (!first.has(key)) first.set(key, unit);
  }
  return [...first.values()].map((unit) => {
    const { task, persona } = scenarioOf(unit);
    const key = category(unit);
    const title = `${unit.agent}: ${categoryName(key)}\n${task}, ${personaName(unit)}`;
    return { id: unit.id, agent: unit.agent, task, persona, key, title };
  });
}

export function mosaic(width) {
  const found = cells();
  if (!found.length) return null;
  const bits = (task) => summary.agreement.tasks[task]?.between_agents_bits ?? -1;
  const tasks = [...new Set(found.map((cell) => cell.task))].sort((a, b) => bits(b) - bits(a) || (a < b ? -1 : 1));
  const { margin, format } = labels(tasks, width);
  const panel = (width - margin) / agents.length;
  const chart = plot({
    width,
    height: tasks.length * 13 + 40,
    marginLeft: margin,
    marginTop: 26,
    marginRight: 4,
    marginBottom: 6,
    padding: 0,
    x: { axis: null, domain: Object.keys(index.personas) },
    y: { domain: tasks, label: null, tickSize: 0, tickFormat: format },
    fx: { domain: agents, axis: "top", label: null, padding: 0.06, tickFormat: labels(agents, panel * 3).format },
    marks: [
      Plot.cell(found, { fx: "agent", x: "persona", y: "task", fill: (cell) => outcomeColor(cell.key), inset: 0.5 }),
      Plot.tip(found, Plot.pointer({ fx: "agent", x: "persona", y: "task", title: "title" })),
    ],
  });
  chart.classList.add("mosaic");
  chart.addEventListener("click", () => {
    if (chart.value) location.hash = new URLSearchParams({ unit: chart.value.id });
  });
  const keys = [...outcomes.keys(), UNSCORED].filter((key) => found.some((cell) => cell.key === key));
  return [legend(keys), chart];
}
