// Starts the page: charts in the report, and the viewer.

import { CHARTS } from "./charts.js";
import { drawCharts } from "./drawing.js";
import { readState } from "./state.js";
import { showViewer } from "./viewer.js";
import { startViews } from "./views.js";

startViews(readState, showViewer);
drawCharts(CHARTS);
