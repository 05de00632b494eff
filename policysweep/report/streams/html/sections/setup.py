"""How the figures came about: what is not given, the gaps, the manifest and the methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policysweep.report.html.markup import Child, Markup, el
from policysweep.report.html.parts import facts, folded, listed, section, table
from policysweep.report.html.sections.setup import manifest_facts, words
from policysweep.report.streams import sentences

Json = Mapping[str, Any]

_LISTS = ("domains", "agents", "methods", "seeds")


def setup_section(summary: Json) -> list[Markup | None]:
    """Notes on what is withheld, the policy gaps, and the manifest."""
    return [_notes(summary), _gaps(summary), _manifest(summary)]


def _notes(summary: Json) -> Markup | None:
    notes = list(sentences.notes(summary))
    return section("notes", "Withheld or undefined", listed(notes)) if notes else None


def _gaps(summary: Json) -> Markup | None:
    if not summary["gaps"]:
        return None
    rows: list[list[Child]] = [
        [
            f"{gap['gap_id']}, {gap['domain']}",
            words(gap.get("dimension", "")),
            ", ".join(gap.get("parent_task_ids", ())),
            gap.get("policy_sentence", ""),
            gap.get("clarification", ""),
        ]
        for gap in summary["gaps"]
    ]
    names = ["Gap", "Class", "Parents", "The policy as written", "As it is meant"]
    return section("gaps", "The policy gaps", table("What is to be learnt", names, rows, words=5))


def _manifest(summary: Json) -> Markup:
    run = summary["run"]
    rest = {key: value for key, value in run.items() if key not in (*_LISTS, "run", "controls")}
    return section(
        "manifest",
        "Manifest",
        el("p", "All that decides the results. A run with another manifest is another run."),
        table(
            "Agents, for each way in which a method has them use their memory",
            ["Agent", "Memory", "Variant", "Model", "Version", "Prompt digest"],
            [_agent(agent["name"], info) for agent in run["agents"] for info in agent["infos"]],
            words=6,
        ),
        table(
            "Methods",
            ["Method", "Memory", "Feedback regimes"],
            [_method(each) for each in run["methods"]],
            words=3,
        ),
        facts(
            [
                ("seeds", ", ".join(map(str, run["seeds"]))),
                ("controls", words(run["controls"].removeprefix("CONTROL_PLACEMENT_"))),
                *((f"{each['domain']}: digest", el("code", each["digest"][:12])) for each in run["domains"]),
                *manifest_facts(rest),
            ]
        ),
        folded(
            "Methods of computing",
            facts((words(key), str(value)) for key, value in summary["methods"].items()),
        ),
    )


def _agent(name: str, info: Json) -> list[Child]:
    model = f"{info['model']}{' (rehearsal)' if info['rehearsal'] else ''}"
    about = [info["memory_mode"], info["variant"], model, info["version"]]
    return [name, *about, el("code", info["prompt_digest"][:12])]


def _method(found: Json) -> list[Child]:
    regimes = ", ".join(words(each.removeprefix("FEEDBACK_REGIME_")) for each in found["regimes"])
    return [words(found["method"].removeprefix("MEMORY_METHOD_")), found["memory_mode"], regimes or "none"]
