"""Which lesson changed which outcome, family by family and entry by entry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from policysweep.report.html.markup import Child, Markup, el
from policysweep.report.html.parts import folded, section, table
from policysweep.report.sentences import count
from policysweep.report.streams.sentences import domains, of_domain, taught_lessons

Json = Mapping[str, Any]

_SHOWN = 15
_TASKS = 6


def lessons_section(summary: Json) -> Markup:
    """What the feedback led to, and what came of it."""
    return section(
        "lessons",
        "Which lesson changed which outcome",
        el(
            "p",
            "Each task's feedback adds an entry, revises one, or is left out. Later tasks that consulted the "
            "entry are held against no memory on the same task, seed and trial: won is a pass where it "
            "failed, lost a failure where it passed. How an entry came to read as it does is told in ",
            el("a", "Streams", href="#streams"),
            ".",
        ),
        _feedback(summary),
        _top(summary),
        [_families(domain, of_domain(summary, domain)) for domain in domains(summary)],
    )


def _feedback(summary: Json) -> Child:
    rows = [
        [arm["domain"], arm["title"], *_kinds(arm["feedback"])]
        for arm in summary["arms"]
        if arm["feedback"]["revisions"] or arm["feedback"]["missing"]
    ]
    if not rows:
        return el("p", "No method of this run gets feedback.")
    names = [
        "Domain",
        "Method",
        "Added",
        "Revised",
        "Left out",
        "Feedback missing",
        "Policy broken (type I)",
        "Policy wrong (type II)",
    ]
    return table("What the feedback led to: tasks of all streams", names, rows, words=2)


def _kinds(found: Json) -> Iterator[Child]:
    for kind in ("ADD", "REVISE", "OMIT"):
        yield count(found["revisions"].get(kind, 0))
    yield count(sum(sum(reasons.values()) for reasons in found["missing"].values()))
    for kind in ("POLICY_VIOLATION", "POLICY_GAP"):
        yield count(found["failure_types"].get(kind, 0))


def _top(summary: Json) -> Child:
    found = taught_lessons(summary)
    if not found:
        return None
    names = ["Entry", "Method", "Taught by", "Consulted in", "Passed", "Failed", "Won", "Lost"]
    caption = f"Lessons by outcomes changed: the first {min(_SHOWN, len(found))} of {count(len(found))}"
    shown = table(caption, names, [_lesson(*each) for each in found[:_SHOWN]], words=4)
    if len(found) <= _SHOWN:
        return shown
    rest = table(
        "All other lessons", names, [_lesson(*each) for each in found[_SHOWN : 20 * _SHOWN]], words=4
    )
    return [shown, folded("All other lessons", rest)]


def _lesson(arm: Json, lesson: Json) -> list[Child]:
    tasks = [f"{task} ({count(number)})" for task, number in lesson["tasks"].items()]
    more = f" and {len(tasks) - _TASKS} more" if len(tasks) > _TASKS else ""
    return [
        lesson["capability_id"],
        f"{arm['title']}, {arm['domain']}",
        f"task {lesson['taught_by']}",
        f"{', '.join(tasks[:_TASKS])}{more}",
        *(count(lesson[key]) for key in ("passed", "failed", "won", "lost")),
    ]


def _families(domain: str, arms: Sequence[Json]) -> Child:
    rows = [
        [f"task {family['parent']}", arm["title"], *_family(family)]
        for place in range(len(arms[0]["families"]))
        for arm in arms
        for family in [arm["families"][place]]
    ]
    if not rows:
        return None
    names = [
        "Parent",
        "Method",
        "Taught by the parent",
        "parent",
        "t-1",
        "t-2",
        "t-3",
        "Under its own lessons",
        "Won",
        "Lost",
    ]
    caption = (
        f"{domain.capitalize()}: trials passed at each place of a family; under its own lessons are sisters "
        "in which an entry was consulted that the family had taught"
    )
    return folded(f"{domain.capitalize()}: family by family", table(caption, names, rows, words=3))


def _family(family: Json) -> Iterator[Child]:
    yield ", ".join(f"{kind.lower()} {count(number)}" for kind, number in family["learnt"].items())
    places = [f"{each['passed']} of {each['passed'] + each['failed']}" for each in family["places"]]
    yield from (*places, *[None] * (4 - len(places)))
    used = family["under_own_lesson"]
    yield f"{used['passed']} of {used['passed'] + used['failed']}"
    yield count(used["won"])
    yield count(used["lost"])
