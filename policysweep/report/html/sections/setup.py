"""How the figures came about: the manifest of the run, the methods, and what is not given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from policysweep.report import sentences
from policysweep.report.html.markup import Child, Markup, el
from policysweep.report.html.parts import facts, folded, listed, section, table

Json = Mapping[str, Any]


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
            ["Agent", "Variant", "Model", "Memory", "Version", "Prompt digest"],
            [_agent(name, found["info"]) for name, found in summary["agents"].items()],
            words=6,
        ),
        facts(_facts({key: value for key, value in run.items() if key != "run"})),
        folded("Methods", facts((_words(key), str(value)) for key, value in summary["methods"].items())),
    )


def _agent(name: str, info: Json) -> list[Child]:
    rehearsal = " (rehearsal)" if info["rehearsal"] else ""
    digest = el("code", info["prompt_digest"][:12], title=info["prompt_digest"])
    return [
        name,
        info["variant"],
        f"{info['model']}{rehearsal}",
        info["memory_mode"],
        info["version"],
        digest,
    ]


def _facts(found: Json, prefix: str = "") -> Iterator[tuple[str, Child]]:
    """Every value of the manifest by its name; a group's name comes before those of its members."""
    for key, value in found.items():
        name = f"{prefix}{_words(key)}"
        if isinstance(value, Mapping):
            yield from _facts(value, f"{name}: ")
        elif isinstance(value, list):
            for position, entry in enumerate(value, start=1):
                yield from _facts({f"{key} {position}": entry}, prefix)
        else:
            yield name, el("code", str(value)) if "digest" in key else str(value)


def _words(name: str) -> str:
    return name.replace("_", " ")
