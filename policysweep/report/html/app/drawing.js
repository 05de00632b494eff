// Draws every chart of a report into its place, again when the width changes.

import { fill } from "./dom.js";

const NARROWEST = 280;

function draw(charts, box, width) {
  const drawn = charts[box.dataset.chart](Math.max(width, NARROWEST), box.dataset.about);
  if (drawn === null) box.closest("figure").hidden = true;
  else fill(box, drawn);
}

export function drawCharts(charts) {
  const widths = new Map();
  const observer = new ResizeObserver((entries) => {
    for (const { target, contentRect } of entries) {
      const width = Math.round(contentRect.width);
      // 0 while the viewer is shown.
      if (!width || widths.get(target) === width) continue;
      widths.set(target, width);
      draw(charts, target, width);
    }
  });
  for (const box of document.querySelectorAll(".chart-box")) observer.observe(box);
}
