// The charts of a sweep by name.

import { agreementRates, kappaMap } from "./chart_agreement.js";
import { mosaic } from "./chart_mosaic.js";
import { composition, outcomeIntervals } from "./chart_outcomes.js";
import { dimensions } from "./chart_scores.js";

export const CHARTS = {
  "composition": composition,
  "outcome-intervals": outcomeIntervals,
  "agreement-rates": agreementRates,
  "dimensions": dimensions,
  "kappa": kappaMap,
  "mosaic": mosaic,
};
