// Mean scores by dimension, with intervals.

import { agents, summary } from "./data.js";
import { intervalPanels } from "./plot.js";

export function dimensions(width, judge) {
  const found = summary.judging.judges[judge].agents;
  const rows = summary.judging.rubric.dimensions.flatMap(({ key, title }) => agents.flatMap((agent) => {
    const { mean, interval } = found[agent].dimensions[key] ?? {};
    if (mean == null) return [];
    const [low, high] = interval ?? [mean, mean];
    const told = `${agent}: ${title} ${mean.toFixed(2)} [${low.toFixed(2)}, ${high.toFixed(2)}]`;
    return [{ facet: title, agent, value: mean, low, high, color: "var(--agree)", title: told }];
  }));
  if (!rows.length) return null;
  const facets = [...new Set(rows.map((row) => row.facet))];
  // Half points around what is shown: on the whole scale the intervals would vanish behind their dots.
  const low = Math.floor(2 * Math.min(...rows.map((row) => row.low))) / 2;
  const high = Math.ceil(2 * Math.max(...rows.map((row) => row.high))) / 2;
  return intervalPanels(width, rows, facets, agents, { domain: [low, high] });
}
