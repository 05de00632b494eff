"""What the summary of a stream run says, in plain sentences, and what it does not say, with the reason.

A sentence is its parts; every second one is what the reader looks for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from policysweep.report.sentences import bounds, count, counted, decimal, interval, percent

Json = Mapping[str, Any]
Sentence = tuple[str, ...]


def points(value: float) -> str:
    """A difference of shares in percentage points, with its sign, as in "+5.8"."""
    shown = f"{100 * value:+.1f}"
    return "0.0" if shown in ("+0.0", "-0.0") else shown


def points_interval(ends: list[float] | None) -> str:
    """Its interval, as in "[-1.0, +4.2]"; "" when there is none."""
    return f"[{points(ends[0])}, {points(ends[1])}]" if ends else ""


def of_domain(summary: Json, domain: str) -> list[Json]:
    """The arms of a domain in the order of the run."""
    return [arm for arm in summary["arms"] if arm["domain"] == domain]


def domains(summary: Json) -> list[str]:
    """The domains in the order of the run."""
    return [each["domain"] for each in summary["run"]["domains"]]


def method(arms: Sequence[Json], name: str) -> Json | None:
    """The first arm of a method."""
    return next((arm for arm in arms if arm["method"] == name), None)


def learner(arms: Sequence[Json]) -> Json | None:
    """The arm that the sentences are about: PolicyBank under the default regime, or the first that learns."""

    def order(arm: Json) -> tuple[bool, bool]:
        return arm["method"] != "policy_bank", arm["regime"] != "explanation"

    return min(
        (arm for arm in arms if arm["method"] not in ("none", "human_oracle")), key=order, default=None
    )


def taught_lessons(summary: Json) -> list[tuple[Json, Json]]:
    """Arm and lesson, those with most outcomes changed first, of the methods that learn.

    The oracle does not: what it consults was given to it.
    """
    found = [
        (arm, lesson)
        for arm in summary["arms"]
        if arm["method"] != "human_oracle"
        for lesson in arm["lessons"]
        if lesson["taught_by"] and lesson["consulted"]
    ]
    return sorted(found, key=lambda each: (-(each[1]["won"] + each[1]["lost"]), -each[1]["consulted"]))


def header(summary: Json) -> Iterator[tuple[str, str]]:
    """Label and text of what the figures are about."""
    run, units = summary["run"], summary["units"]
    yield "Run", run["run"] or "(no name)"
    for each in run["domains"]:
        tasks = ", ".join(counted(each[f"{kind}s"], kind) for kind in ("original", "sister", "control"))
        yield each["domain"].capitalize(), tasks
    yield "Streams", f"{count(units['complete_streams'])} of {count(units['streams'])} complete"
    seeds, trials = counted(len(run["seeds"]), "seed"), counted(run["trials"], "trial")
    yield (
        "Tasks",
        f"{count(units['planned'])} planned ({seeds}, {trials} each), {count(units['scored'])} scored",
    )
    yield "Coverage", f"{percent(units['coverage'])}%"


def lead(summary: Json) -> Iterator[Sentence]:
    """What came out: coverage, then for each domain the lesson learnt, the harm done, and what was kept."""
    yield _covered(summary)
    for domain in domains(summary):
        for agent in (each["name"] for each in summary["run"]["agents"]):
            arms = [arm for arm in of_domain(summary, domain) if arm["agent"] == agent]
            arm = learner(arms)
            if arm is None:
                yield (f"In {domain} no method learns.",)
                continue
            yield from _learnt(domain, arm, arms)
            yield from _harm(domain, arm)


def _covered(summary: Json) -> Sentence:
    units = summary["units"]
    return (
        f"{count(units['complete_streams'])} of {counted(units['streams'], 'stream')} are complete: ",
        f"{count(units['scored'])} of {count(units['planned'])} tasks are scored",
        f", a coverage of {percent(units['coverage'])}%.",
    )


def _learnt(domain: str, arm: Json, arms: Sequence[Json]) -> Iterator[Sentence]:
    own = arm["groups"]["sisters"]
    if own["withheld"]:
        yield (f"In {domain}, how {arm['title']} does on sister tasks is not given: {own['withheld']}.",)
        return
    first = own["pass"][0]
    others = [
        f"{each['title']} {percent(each['groups']['sisters']['pass'][0]['value'])}%"
        for name in ("none", "human_oracle")
        if (each := method(arms, name)) and not each["groups"]["sisters"]["withheld"]
    ]
    beside = f" ({', '.join(others)})" if others else ""
    yield (
        f"In {domain}, {arm['title']} passes ",
        f"{percent(first['value'])}% {interval(first['interval'])}".strip(),
        f" of the sister tasks{beside}.",
    )
    yield from _closed(domain, arm)


def _closed(domain: str, arm: Json) -> Iterator[Sentence]:
    if arm["gap_closed"] is None:
        return
    found = next(iter(arm["gap_closed"]["pass"]), None)
    if found is None or found["value"] is None:
        reason = arm["gap_closed"]["withheld"] or (found and found["reason"])
        yield (f"Which share of the gap to the oracle it closes in {domain} is not given: {reason}.",)
        return
    yield (
        "It closes ",
        f"{decimal(found['value'])} {bounds(found['interval'])}".strip(),
        " of the gap between no memory and the oracle (1 is all of it).",
    )


def _harm(domain: str, arm: Json) -> Iterator[Sentence]:
    if controls := arm["controls"]:
        yield _over_generalised(domain, controls)
    kept = arm["retention"]
    if kept and kept["pass"]:
        found = kept["pass"][0]
        yield (
            f"On the other originals of {domain} it differs from no memory by ",
            f"{points(found['value'])} points {points_interval(found['interval'])}".strip(),
            f": {count(kept['pairs']['won'])} trials won, {count(kept['pairs']['lost'])} lost.",
        )


def _over_generalised(domain: str, controls: Json) -> Sentence:
    if controls["rate"]["value"] is None:
        return (
            f"How often it carries lessons too far in {domain} is not given: {controls['rate']['reason']}.",
        )
    lost, trials = controls["pairs"]["lost"], counted(controls["pairs"]["n"], "trial")
    meaning = "lessons carried too far, or other harm" if lost else "no lesson is seen to be carried too far"
    return (
        f"On the controls of {domain} it fails where no memory passes in ",
        f"{count(lost)} of {trials}",
        f": {meaning}.",
    )


def conventions(summary: Json) -> Iterator[str]:
    """How missing trials and the strict reading of COMMUNICATE are dealt with, where it matters."""
    yield (
        "pass^k is the chance that k trials of a task all pass. A task with fewer than k scored trials is "
        "left out; a fault of the agent is a failure, any other fault a missing trial."
    )
    if len(summary["run"]["seeds"]) == 1:
        yield "There is one seed, so intervals are over task families alone and say nothing of other orders."
    if all(arm["method"] != "none" for arm in summary["arms"]):
        yield "No method without a memory was played, so no outcome counts as won or lost."
    for arm in summary["arms"]:
        yield from _differing(arm, "missing_as_failure", "counting missing trials as failures")
        yield from _differing(arm, "strict", "by the strict reading of COMMUNICATE")


def _differing(arm: Json, key: str, told: str) -> Iterator[str]:
    for name, group in arm["groups"].items():
        found = [
            f"pass^{each['k']} {percent(each[key])}% instead of {percent(each['value'])}%"
            for each in group["pass"]
            if None not in (each[key], each["value"]) and abs(each[key] - each["value"]) > 5e-4
        ]
        if found and name != "originals":
            yield f"{arm['domain']}, {arm['title']}, {name.replace('_', ' ')}, {told}: {', '.join(found)}."


def went_wrong(summary: Json) -> Iterator[str]:
    """Faults, absent rewards, missing feedback, unusable answers and failed tasks of each arm, in words."""
    for arm in summary["arms"]:
        parts = [
            *_told(arm["ends"]["faults"], "fault"),
            *_told({"judge": arm["ends"]["absent_rewards"]}, "reward missing"),
            *_told(arm["feedback"]["missing"], "lesson missing"),
            *_told(arm["ends"]["failures"], "failed task"),
        ]
        for role in ("curator", "judge"):
            if number := arm["costs"][f"unusable_{role}_answers"]:
                parts.append(f"answers of the {role} that could not be used {count(number)}")
        if parts:
            yield f"{arm['domain']}, {arm['title']}: {', '.join(parts)}."


def _told(found: Json, what: str) -> Iterator[str]:
    """Counts by who and why, as in "fault (customer: step limit) 3"."""
    for party, reasons in found.items():
        for reason, number in reasons.items():
            yield f"{what} ({_words(party)}: {_words(reason)}) {count(number)}"


def _words(name: str) -> str:
    return name.lower().replace("_", " ")


def notes(summary: Json) -> Iterator[str]:
    """Figures that are not given, and intervals, with the reason."""
    reasons: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for arm in summary["arms"]:
        who = f"{arm['title']} in {arm['domain']}"
        for about, reason in _absent(arm):
            reasons[about, reason].append(who)
    for (about, why), names in reasons.items():
        who = ", ".join(names) if len(names) <= 3 else f"in {len(names)} cases"
        yield f"{about.capitalize()} ({who}): {why}."


def _absent(arm: Json) -> Iterator[tuple[str, str]]:
    for name, group in arm["groups"].items():
        if group["withheld"] and group["tasks"]:
            yield name.replace("_", " "), group["withheld"]
        elif group["pass"] and group["pass"][0]["reason"]:
            yield f"interval of {name.replace('_', ' ')}", group["pass"][0]["reason"]
    for key, about in (("gap_closed", "gap closed"), ("retention", "retention")):
        if (section := arm[key]) is None:
            continue
        if section["withheld"]:
            yield about, section["withheld"]
        elif section["pass"][0]["reason"]:
            undefined = section["pass"][0]["value"] is None
            yield about if undefined else f"interval of {about}", section["pass"][0]["reason"]
    if arm["controls"] and arm["controls"]["rate"]["reason"]:
        undefined = arm["controls"]["rate"]["value"] is None
        about = "over-generalisation" if undefined else "interval of over-generalisation"
        yield about, arm["controls"]["rate"]["reason"]
