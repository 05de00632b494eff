// Starts the page of a stream run: charts in the report, and the viewer of the streams.

import { drawCharts } from "./drawing.js";
import { STREAM_CHARTS } from "./stream_charts.js";
import { readStreamState } from "./stream_state.js";
import { showStreams } from "./stream_viewer.js";
import { startViews } from "./views.js";

startViews(readStreamState, showStreams);
drawCharts(STREAM_CHARTS);
