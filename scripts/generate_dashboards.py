"""Writes the Grafana dashboards of deploy/grafana; with --check, says whether they are current.

A dashboard is rows, a row is panels, a panel is its queries: scripts/dashboards has them. Queries use the
metrics of docs/metrics.md and the recording rules of deploy/prometheus; tests/e2e/test_dashboards.py puts
each to a real Prometheus.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.builders import bargauge, common, dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as common_models
from grafana_foundation_sdk.models import dashboard as models

from scripts.dashboards.agent_detail import AGENT
from scripts.dashboards.model_servers import SERVERS
from scripts.dashboards.panels import Board, Panel
from scripts.dashboards.policy_bank import BANK
from scripts.dashboards.services import SERVICES
from scripts.dashboards.sweep_overview import SWEEP

FOLDER = Path(__file__).parents[1] / "deploy" / "grafana"
BOARDS = {
    "sweep-overview": SWEEP,
    "agent-detail": AGENT,
    "model-servers": SERVERS,
    "policy-bank": BANK,
    "services": SERVICES,
}
GUIDE = "docs/operating.md"
_SOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
_HEIGHTS = {"stat": 4, "bars": 8, "graph": 8, "stack": 8}


def _graph(panel: Panel) -> Any:
    made = timeseries.Panel().tooltip(common.VizTooltipOptions().mode(common_models.TooltipDisplayMode.MULTI))
    made = made.legend(
        common.VizLegendOptions().show_legend(True).placement(common_models.LegendPlacement.BOTTOM)
    )
    if panel.unit == "percentunit":
        made = made.min(0).max(1)
    if panel.kind == "stack":
        return made.fill_opacity(30).stacking(common.StackingConfig().mode(common_models.StackingMode.NORMAL))
    if panel.limits:
        style = common.GraphThresholdsStyleConfig().mode(common_models.GraphThresholdsStyleMode.DASHED)
        made = made.thresholds_style(style)
    return made


def _stat(panel: Panel) -> Any:
    return stat.Panel().reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))


def _bars(panel: Panel) -> Any:
    made = bargauge.Panel().reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    made = made.orientation(common_models.VizOrientation.HORIZONTAL)
    return made.min(0).max(1) if panel.unit == "percentunit" else made


_KINDS: Mapping[str, Callable[[Panel], Any]] = {
    "stat": _stat,
    "bars": _bars,
    "graph": _graph,
    "stack": _graph,
}


def _panel(panel: Panel, number: int) -> Any:
    steps = [models.Threshold(value=None, color=panel.base)]
    steps += [models.Threshold(value=value, color=colour) for value, colour in panel.limits.items()]
    made = _KINDS[panel.kind](panel).id(number).title(panel.title).description(panel.about).unit(panel.unit)
    made = made.datasource(_SOURCE).span(panel.width).height(_HEIGHTS[panel.kind])
    made = made.thresholds(dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps))
    if panel.alert:
        url = f"${{runbook_base}}{GUIDE}#{panel.alert.lower()}"
        made = made.links([dashboard.DashboardLink(f"What to do: {panel.alert}").url(url).target_blank(True)])
    for letter, (query, legend) in zip("ABCD", panel.queries, strict=False):
        target = prometheus.Dataquery().ref_id(letter).expr(query).legend_format(legend).datasource(_SOURCE)
        made = made.with_target(target.range() if panel.kind in ("graph", "stack") else target.instant())
    return made


def _variables(board: Board) -> Sequence[Any]:
    found: list[Any] = [
        dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"),
        dashboard.ConstantVariable("runbook_base").label("Where the runbooks are").value(""),
    ]
    for name, (series, label) in board.variables.items():
        found.append(
            dashboard.QueryVariable(name)
            .query(f"label_values({series}, {label})")
            .datasource(_SOURCE)
            .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
            .sort(models.VariableSort.ALPHABETICAL_ASC)
            .include_all(True)
            .all_value(".*")
            .multi(True)
            .current(models.VariableOption(selected=True, text="All", value="$__all"))
        )
    return found


def built(board: Board) -> str:
    """The dashboard as Grafana reads it."""
    others = dashboard.DashboardLink("policysweep").type(models.DashboardLinkType.DASHBOARDS)
    others = others.tags(["policysweep"]).as_dropdown(True).keep_time(True).include_vars(True)
    made = dashboard.Dashboard(board.title).uid(board.uid).description(board.about).tags(["policysweep"])
    made = made.time("now-1h", "now").refresh("30s").timezone("browser").link(others)
    made = made.tooltip(models.DashboardCursorSync.CROSSHAIR)
    for variable in _variables(board):
        made = made.with_variable(variable)
    number = 0
    for title, panels in board.rows.items():
        made = made.with_row(dashboard.Row(title).id(number := number + 1))
        for panel in panels:
            made = made.with_panel(_panel(panel, number := number + 1))
    content = json.loads(JSONEncoder(sort_keys=True).encode(made.build()))
    return json.dumps(content, indent=2, sort_keys=True) + "\n"


def main() -> int:
    """Write the files, or check them."""
    stale = []
    for name, board in BOARDS.items():
        file, content = FOLDER / f"{name}.json", built(board)
        if "--check" not in sys.argv:
            file.write_text(content, encoding="utf-8")
        elif not file.exists() or file.read_text("utf-8") != content:
            stale.append(file.name)
    if stale:
        sys.stderr.write(f"deploy/grafana is not current: {', '.join(stale)}; run `make dashboards`\n")
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
