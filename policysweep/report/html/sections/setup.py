"""How the figures came about: the manifest of the run, the methods, and what is not given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from policysweep.report import sentences
from policysweep.report.html.markup import Child, Markup, el
from policysweep.report.html.parts import facts, folded, listed, section, table

Json = Mapping[str, Any]

_DIGEST = 12
_ENUMS = {"persona_assignment": "PERSONA_ASSIGNMENT_", "fixed_persona": "AGENT_PERSONA_"}
"""Prefix of the values of each enum in the manifest."""


def setup_section(summary: Json) -> list[Markup | None]:
    """Notes on what is withheld, and the manifest."""
    return [_notes(summary), _manifest(summary)]


def _notes(summary: Json) -> Markup | None:
    notes = list(sentences.notes(summary))
    return section("notes", "Withheld or undefined", listed(notes)) if notes else None


def _manifest(summary: Json) -> Markup:
    run = summary["run"]
    return section(
        "manifest",
        "Manifest",
        el("p", "All that decides the results. A run with another manifest is another run."),
        table(
            "Agents",
            ["Agent", "Variant", "Model", "Memory", "Version", "Sampling", "Prompt digest"],
            [_agent(name, found) for name, found in summary["agents"].items()],
            words=7,
        ),
        _judges(summary["judging"]) if summary["judging"] else None,
        facts(manifest_facts({key: value for key, value in run.items() if key != "run"})),
        folded(
            "Methods", facts((words(key), _value(key, value)) for key, value in summary["methods"].items())
        ),
    )


def _agent(name: str, agent: Json) -> list[Child]:
    info = agent["info"]
    about = [info["variant"], _model(info), _memory(agent), info["version"]]
    return [name, *about, _sampling(info), _digest(info["prompt_digest"])]


def _memory(agent: Json) -> str:
    """How the agent remembers, what it reads, and whether that is all that it is told of the policy."""
    parts = [agent["info"]["memory_mode"]]
    if bank := agent.get("bank"):
        made = " (rehearsal)" if bank["rehearsal"] else ""
        parts.append(f"bank {bank['bank_id']} at revision {bank['revision']}{made}")
    if agent["info"].get("policy_withheld"):
        parts.append("policy withheld")
    return ", ".join(parts)


def _judges(judging: Json) -> Child:
    rubric = judging["rubric"]
    return [
        table(
            "Judges",
            ["Judge", "Model", "Version", "Sampling", "Token probabilities", "Samples", "Prompt digest"],
            [_judge(name, found["info"]) for name, found in judging["judges"].items()],
            words=7,
        ),
        el("p", f"Rubric {rubric['name']}@{rubric['version']}, digest ", _digest(rubric["digest"]), "."),
    ]


def _judge(name: str, info: Json) -> list[Child]:
    weighted, samples = _value("", info["logprobs"]), str(info["samples"] or 1)
    return [
        name,
        *(_model(info), info["version"], _sampling(info)),
        *(weighted, samples, _digest(info["prompt_digest"])),
    ]


def _sampling(info: Json) -> str:
    """Empty when a summary does not tell it."""
    return ", ".join(f"{words(key)} {_value(key, value)}" for key, value in info.get("sampling", {}).items())


def _model(info: Json) -> str:
    return f"{info['model']}{' (rehearsal)' if info['rehearsal'] else ''}"


def _digest(digest: str) -> Child:
    return el("code", digest[:_DIGEST], title=digest)


def manifest_facts(found: Json, prefix: str = "") -> Iterator[tuple[str, Child]]:
    """Every value of the manifest by its name; a group's name comes before those of its members."""
    for key, value in found.items():
        name = f"{prefix}{words(key)}"
        if isinstance(value, Mapping):
            yield from manifest_facts(value, f"{name}: ")
        elif "digest" in key:
            yield name, _digest(str(value))
        elif shown := _value(key, value):
            yield name, shown


def _value(key: str, value: Any) -> str:
    """A value in words; "" for what is not stated."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, str) and (found := _ENUMS.get(key)):
        return words(value.removeprefix(found)).replace("unspecified", "")
    return str(value)


def words(name: str) -> str:
    """A key of the manifest as it reads."""
    return name.lower().replace("_", " ")
