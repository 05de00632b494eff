"""What the judges think of the agents: scores by dimension and metric, and the customer's apart from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from policysweep.report.html.markup import Child, Markup, el
from policysweep.report.html.numbers import difference, grade, sizes, why
from policysweep.report.html.parts import dim, figure, folded, section, table
from policysweep.report.sentences import count

Json = Mapping[str, Any]

_SIGNIFICANT = 0.05


def scores_section(summary: Json) -> Markup | None:
    """None for a run that is not judged."""
    judging = summary["judging"]
    if judging is None:
        return None
    rubric = judging["rubric"]
    return section(
        "scores",
        "How the agents are scored",
        el(
            "p",
            f"Rubric {rubric['name']}@{rubric['version']}: {len(rubric['metrics'])} metrics, 1 to 5; 3 is "
            "competent work. Turns are averaged within a conversation first. A dimension has a score when "
            "all of its metrics have one. The simulated customer's metrics are not in the agents' scores.",
        ),
        [_judge(judging, name) for name in judging["judges"]],
    )


def _judge(judging: Json, name: str) -> Child:
    found = judging["judges"][name]
    model = found["info"]["model"]
    several = len(judging["judges"]) > 1
    return [
        el("h3", f"Judge {name}, {model}") if several else None,
        figure(
            "dimensions",
            f"Mean score of each dimension with its 95% interval, clustered by task; judge {name} ({model}). "
            f"{_sizes(found['agents'])}.",
            f"Dimension scores of each agent by judge {name}",
            about=name,
        ),
        _dimensions(judging, found["agents"], "dimensions", f"Dimension scores by {name}"),
        folded(
            "As the paper defines them: agent and simulated customer pooled",
            _dimensions(judging, found["agents"], "pooled_dimensions", f"Pooled dimension scores by {name}"),
        ),
        folded("Every metric", _metrics(judging, found["agents"], "AGENT", f"Mean scores by {name}")),
        folded("Differences between agents", _differences(judging, name, found["differences"])),
        folded("The simulated customer", _customer(judging, name, found["customer"])),
    ]


def _sizes(agents: Json) -> str:
    """Units behind the dimension scores of each agent; a dimension that does not apply to some has fewer."""
    return sizes(
        {
            name: max((found["n"] for found in entry["dimensions"].values()), default=0)
            for name, entry in agents.items()
        }
    )


def _titles(judging: Json, kind: str) -> dict[str, str]:
    return {entry["key"]: entry["title"] or entry["key"] for entry in judging["rubric"][kind]}


def _dimensions(judging: Json, agents: Json, part: str, caption: str) -> Child:
    titles = _titles(judging, "dimensions")
    keys = [key for key in titles if any(key in entry[part] for entry in agents.values())]
    rows = [[titles[key], *(_level(entry[part].get(key)) for entry in agents.values())] for key in keys]
    return table(f"{caption}, with 95% interval and n", ["Dimension", *agents], rows)


def _level(found: Json | None) -> Child:
    if found is None:
        return dim("none")
    names = ", ".join(lacks["metric"] for lacks in found.get("missing", ()))
    shown = why(f"{found['reason']}: {names}") if names else grade(found)
    return [shown, " ", dim(f"n {count(found['n'])}")]


def _metrics(judging: Json, agents: Json, side: str, caption: str) -> Child:
    rows = _metric_rows(judging, {name: entry["metrics"] for name, entry in agents.items()}, side)
    return table(f"{caption}, with 95% interval and n", ["Metric", *agents], rows)


def _metric_rows(judging: Json, columns: Mapping[str, Json], side: str) -> Iterator[Sequence[Child]]:
    """A row for each metric, those of a dimension together."""
    titles = _titles(judging, "dimensions")
    for dimension in titles:
        for metric in judging["rubric"]["metrics"]:
            if metric["dimension"] == dimension and side in metric["sides"]:
                name: Child = [metric["title"], el("br"), dim(titles[dimension])]
                yield [name, *(_level(found.get(metric["key"])) for found in columns.values())]


def _differences(judging: Json, judge: str, differences: Sequence[Json]) -> Child:
    titles = _titles(judging, "dimensions")
    rows = [
        [" to ".join(pair["agents"]), *(_difference(pair["dimensions"].get(key)) for key in titles)]
        for pair in differences
    ]
    return [
        el(
            "p",
            "Second agent minus first, paired over the same conversations. Bold: p below 0.05 after Holm's "
            "correction over the dimensions of the pair.",
        ),
        table(
            f"Differences in dimension scores by {judge}, with 95% interval and n",
            ["Pair", *titles.values()],
            rows,
        ),
    ]


def _difference(found: Json | None) -> Child:
    p_value = found["p_holm"] if found else None
    return difference(found, certain=p_value is not None and p_value < _SIGNIFICANT)


def _customer(judging: Json, judge: str, customer: Json) -> Child:
    columns = {"all conversations": customer["all"], **customer["agents"]}
    named = {f"with {name}" if name in customer["agents"] else name: found for name, found in columns.items()}
    overall = ["Overall", *(_level(found["overall"]) for found in columns.values())]
    rows = [
        overall,
        *_metric_rows(judging, {name: found["metrics"] for name, found in columns.items()}, "CUSTOMER"),
    ]
    return [
        el("p", "How well the simulator played the customer. No agent's score contains these."),
        table(
            f"Quality of the simulated customer by {judge}, with 95% interval and n", ["Metric", *named], rows
        ),
    ]
