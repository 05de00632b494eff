"""What a summary says, in plain sentences and short texts, for the terminal and other readers to print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from policysweep.report.outcomes import DISPLAY

Json = Mapping[str, Any]

_DIVIDED_TASKS = 5


def plain(text: str) -> str:
    """Text from outside, with a replacement for each character that a terminal would obey, not show."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def percent(share: float | None) -> str:
    """A share in percent, as in "5.8"; "none" when it is not given. Only all of them are "100"."""
    if share is None:
        return "none"
    return "100" if share == 1 else f"{min(100 * share, 99.9):.1f}"


def interval(ends: list[float] | None) -> str:
    """An interval in percent, as in "[3.9, 8.2]"; "" when there is none."""
    return f"[{percent(ends[0])}, {percent(ends[1])}]" if ends else ""


def decimal(number: float) -> str:
    """A number with two decimals, as in "0.31", without a sign for zero."""
    return f"{round(number, 2) + 0.0:.2f}"


def count(number: int | None) -> str:
    """A whole number, as in "1,600"; "not reported" for None."""
    return "not reported" if number is None else f"{number:,}"


def counted(number: int, noun: str) -> str:
    """A number with its noun, as in "1 trial" or "3 trials"."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def bounds(ends: list[float] | None) -> str:
    """An interval as it is, as in "[3.10, 3.74]"; "" when there is none."""
    return f"[{decimal(ends[0])}, {decimal(ends[1])}]" if ends else ""


def tokens(found: Json) -> Iterator[str]:
    """Model calls, prompt tokens, cached share and written tokens of one role, for a table."""
    cached = found["cached_share"]
    yield count(found["model_calls"])
    yield count(found["prompt_tokens"])
    yield f"{percent(cached)}%" if cached is not None else "not reported" if found["answers"] else ""
    yield count(found["completion_tokens"])


def header(summary: Json) -> Iterator[tuple[str, str]]:
    """Label and text of what the figures are about."""
    run, units = summary["run"], summary["units"]
    dataset = {"name": "", "digest": "", "scenarios": 0, "tasks": 0, **run.get("dataset", {})}
    yield "Run", run["run"] or "(no name)"
    size = f"{counted(dataset['scenarios'], 'scenario')} of {counted(dataset['tasks'], 'task')}"
    yield "Data set", f"{dataset['name'] or '(no name)'} {dataset['digest'][:12]}, {size}"
    sweep = f"{counted(len(summary['agents']), 'agent')}, {counted(run['trials'], 'trial')} each"
    yield "Units", f"{count(units['planned'])} planned ({sweep}), {count(units['scored'])} scored"
    yield "Coverage", f"{percent(units['coverage'])}%"


def agreement(summary: Json) -> Iterator[str]:
    """How far the agents agree with one another, and each with itself."""
    found = summary["agreement"]
    if found["all_agree"]["rate"] is not None:
        yield from _all_agree(summary)
    kappa = found["fleiss_kappa"]
    if kappa["value"] is not None:
        shown = bounds(kappa["interval"]) or "(no interval)"
        yield f"Fleiss' kappa is {decimal(kappa['value'])} {shown}; 0 is chance, 1 is perfect agreement."
    yield from _divided(found["tasks"])


def _all_agree(summary: Json) -> Iterator[str]:
    found, run = summary["agreement"], summary["run"]
    one_each = run["trials"] == 1 and run["persona_assignment"] != "PERSONA_ASSIGNMENT_SWEPT"
    cases = "scenarios" if one_each else "matched conversations"
    covered = f"{cases} ({percent(found['matched']['coverage'])}% of those planned)"
    yield f"{len(found['agents'])} agents gave the same outcome in {_rate(found['all_agree'], covered)}"
    if found["all_agree"]["without_outcome"]:
        missing = count(found["all_agree"]["without_outcome"])
        yield f"Counted as disagreement, because an agent's fault left no outcome: {missing}."
    coarse = _rate(found["coarse_all_agree"], cases)
    yield f"On the coarse map (granted, denied, neither) they agree in {coarse}"


def _rate(rates: Json, cases: str) -> str:
    share = f"{percent(rates['rate'])}% {interval(rates['interval'])}"
    chance = f"chance alone would give {percent(rates['chance'])}%"
    return f"{count(rates['agreed'])} of {count(rates['n'])} {cases}: {share}; {chance}."


def _divided(tasks: Json) -> Iterator[str]:
    """The tasks on which agents that met the same case differ most."""
    bits = {task: row["between_agents_bits"] for task, row in tasks.items() if row["between_agents_bits"]}
    ranked = sorted(bits, key=lambda task: (-bits[task], task))[:_DIVIDED_TASKS]
    if ranked:
        listed = ", ".join(f"{task} {decimal(bits[task])}" for task in ranked)
        yield f"Most divided tasks, by entropy between agents in bits (0 is full agreement): {listed}."


def ends(section: Json) -> Iterator[tuple[str, str, str]]:
    """What went wrong with an agent's units: what, how many units, and the details."""
    for party, fault in section["faults"].items():
        effect = "no outcome" if party == "AGENT" else "not scored"
        details = _counts(fault["end_reasons"] or {})
        yield f"{_words(party)} fault, {effect}", count(fault["units"]), details
    for party, reasons in section["failures"].items():
        yield f"{_words(party)} failure, no record", count(sum(reasons.values())), _counts(reasons)
    contradictions = section["mismatches"]
    if contradictions["units"]:
        details = ", ".join(
            f"{_outcome(pair['declared'])} / {_outcome(pair['executed'])} {count(pair['units'])}"
            for pair in contradictions["pairs"]
        )
        yield "declared / executed contradict", count(contradictions["units"]), details
    errors = {error: number for error, number in section["errors"].items() if number}
    if errors:
        yield "errors on the way", "", _counts(errors)


def _outcome(key: str | None) -> str:
    return DISPLAY[key] if key else "none"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{_words(name)} {count(number)}" for name, number in counts.items())


def _words(name: str) -> str:
    return name.lower().replace("_", " ")


def unreported(summary: Json) -> Iterator[str]:
    """Answers of a model whose server did not state its tokens."""
    for name, section in summary["agents"].items():
        for side, found in section["tokens"].items():
            yield from unreported_of(f"{name}, {side}", found)


def unreported_of(who: str, found: Json) -> Iterator[str]:
    """What a role's servers did not state."""
    for kind in ("prompt", "completion"):
        if missing := found[f"{kind}_unreported"]:
            yield (
                f"{who}: {kind} tokens of {count(missing)} of {count(found['answers'])} "
                "answers; the total is of the others."
            )


def notes(summary: Json) -> Iterator[str]:
    """Figures that are not given, with the reason."""
    for note in summary["notes"]:
        yield f"{note['about']}: {note['reason']}."
