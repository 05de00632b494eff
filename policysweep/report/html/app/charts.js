// Draws every chart of the report into its place, again when the width changes.

import { agreementRates, kappaMap } from "./chart_agreement.js";
import { mosaic } from "./chart_mosaic.js";
import { composition, outcomeIntervals } from "./chart_outcomes.js";
import { dimensions } from "./chart_scores.js";
import { fill } from "./dom.js";

const CHARTS = {
  "composition": composition,
  "outcome-intervals": outcomeIntervals,
  "agreement-rates": agreementRates,
  "dimensions": dimensions,
  "kappa": kappaMap,
  "mosaic": mosaic,
};

const NARROWEST = 280;

function draw(box, width) {
  const drawn = CHARTS[box.dataset.chart](Math.max(width, NARROWEST), box.dataset.about);
  if (drawn === null) box.closest("figure").hidden = true;
  else fill(box, drawn);
}

export function drawCharts() {
  const widths = new Map();
  const observer = new ResizeObserver((entries) => {
    for (const { target, contentRect } of entries) {
      const width = Math.round(contentRect.width);
      // 0 while the viewer is shown.
      if (!width || widths.get(target) === width) continue;
      widths.set(target, width);
      draw(target, width);
    }
  });
  for (const box of document.querySelectorAll(".chart-box")) observer.observe(box);
}
