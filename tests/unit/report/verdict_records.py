"""Rubrics, verdicts, labels and scenarios for the tests, built by hand or drawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from policysweep.report.verdicts import Verdicts
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, run_pb2, scenario_pb2

AGENT, CUSTOMER = ep.ROLE_AGENT, ep.ROLE_CUSTOMER
CONVERSATION = judge_pb2.METRIC_LEVEL_CONVERSATION
TURN = judge_pb2.METRIC_LEVEL_TURN
RESOLUTION = judge_pb2.METRIC_LEVEL_RESOLUTION

# Key, dimension, panel, level, subjects.
METRICS = (
    ("support", "policy", "main", CONVERSATION, (AGENT,)),
    ("reasoning", "policy", "main", RESOLUTION, (AGENT,)),
    ("verbosity", "dialogue", "talk", CONVERSATION, (AGENT,)),
    ("drift", "dialogue", "turns", TURN, (AGENT, CUSTOMER)),
    ("tone", "behaviour", "talk", CONVERSATION, (AGENT,)),
    ("customer_tone", "behaviour", "talk", CONVERSATION, (CUSTOMER,)),
)
NO_REASON = judge_pb2.ABSENT_REASON_UNSPECIFIED
PANELS = ("main", "talk", "turns")


def rubric(version: int = 1) -> judge_pb2.Rubric:
    made = judge_pb2.Rubric(digest="cd" * 32, min_scale_mass=0.5)
    made.ref.name, made.ref.version = "small", version
    for key, dimension, panel, level, subjects in METRICS:
        made.metrics.add(
            key=key, dimension=dimension, panel=panel, level=level, subjects=subjects, title=key.capitalize()
        )
    for key in PANELS:
        made.panels.add(key=key, title=key, digest=f"digest-of-{key}")
    for key in dict.fromkeys(metric[1] for metric in METRICS):
        made.dimensions.add(key=key, title=key.capitalize())
    return made


def judges(*names: str) -> dict[str, judge_pb2.JudgeInfo]:
    """Judges whose model is named after them."""
    return {name: judge_pb2.JudgeInfo(model=f"{name}-model", samples=1) for name in names}


def verdict(unit_id: str, panel: str, judge: str = "j", version: int = 1) -> run_pb2.VerdictRecord:
    made = run_pb2.VerdictRecord(unit_id=unit_id, judge=judge)
    made.rubric.name, made.rubric.version = "small", version
    made.verdict.panel, made.verdict.panel_digest = panel, f"digest-of-{panel}"
    return made


def score(
    made: run_pb2.VerdictRecord,
    metric: str,
    value: float | None,
    turn: int | None = None,
    subject: ep.Role.ValueType = AGENT,
    mass: float | None = None,
    reason: judge_pb2.AbsentReason.ValueType = NO_REASON,
) -> None:
    """Add a score; without a value it is absent for the reason."""
    added = made.verdict.scores.add(metric=metric, subject=subject, absent_reason=reason)
    if value is not None:
        added.value = value
    if turn is not None:
        added.message_index = turn
    if mass is not None:
        added.scale_mass = mass


def simple(
    unit_id: str, values: Mapping[str, float | None], judge: str = "j"
) -> Iterator[run_pb2.VerdictRecord]:
    """Verdicts with one value for each metric named, None for an unparseable one.

    Those that look at turns have one turn of the agent.
    """
    subjects = {key: sides[0] for key, _, _, _, sides in METRICS}
    for panel in PANELS:
        asked = [key for key, _, of, _, _ in METRICS if of == panel and key in values]
        made = verdict(unit_id, panel, judge)
        for key in asked:
            value = values[key]
            reason = judge_pb2.ABSENT_REASON_UNPARSEABLE if value is None else NO_REASON
            score(made, key, value, 1 if key == "drift" else None, subjects[key], reason=reason)
        if asked:
            yield made


def taken(records: Iterable[run_pb2.VerdictRecord], *names: str) -> Verdicts:
    return Verdicts(rubric(), judges(*(names or ("j",)))).extend(records)


def drawn(
    records: Iterable[run_pb2.UnitRecord], judge: str = "j", seed: int = 0, lean: float = 0.0
) -> Iterator[run_pb2.VerdictRecord]:
    """A judge that scores around a quality of the agent and the task; now and then a score is absent."""
    generator = np.random.default_rng(seed)
    quality: dict[str, float] = {}
    for record in records:
        unit = record.unit
        for name in (unit.agent, unit.task_id):
            # The same for every judge: it is the unit that is good or bad.
            quality.setdefault(name, float(np.random.default_rng(sum(name.encode())).normal(0, 0.5)))
        middle = 3.2 + quality[unit.agent] + quality[unit.task_id] + lean
        for panel in PANELS:
            yield _panel(record, panel, judge, middle, generator)


def _panel(
    record: run_pb2.UnitRecord, panel: str, judge: str, middle: float, generator: np.random.Generator
) -> run_pb2.VerdictRecord:
    made = verdict(record.unit.unit_id, panel, judge)
    made.verdict.usage.model_calls = 1
    made.verdict.usage.prompt_tokens = 6000
    made.verdict.usage.completion_tokens = 300
    for key, _, of, level, subjects in METRICS:
        for subject in subjects if of == panel else ():
            for turn in range(5) if level == TURN else (None,):
                _draw(made, record, key, turn, subject, middle, generator)
    if panel == "main":
        made.verdict.outcome.outcome = record.episode.outcome
        if generator.random() < 0.1:
            made.verdict.outcome.outcome = ep.OUTCOME_ESCALATE_HUMAN_AGENT
    return made


def _draw(
    made: run_pb2.VerdictRecord,
    record: run_pb2.UnitRecord,
    key: str,
    turn: int | None,
    subject: ep.Role.ValueType,
    middle: float,
    generator: np.random.Generator,
) -> None:
    place = None if turn is None else 2 * turn + (subject == AGENT)
    value = float(np.clip(np.round(generator.normal(middle, 0.8)), 1, 5))
    if key == "reasoning" and record.episode.outcome == ep.OUTCOME_UNSPECIFIED:
        score(made, key, None, reason=judge_pb2.ABSENT_REASON_NOT_APPLICABLE)
    elif generator.random() < 0.01:
        score(made, key, None, place, subject, reason=judge_pb2.ABSENT_REASON_UNPARSEABLE)
        made.verdict.unusable_answers = 1
    else:
        score(made, key, value, place, subject, mass=0.4 if generator.random() < 0.02 else 0.95)


def label(
    unit_id: str,
    metric: str,
    value: float | ep.Outcome.ValueType,
    annotator: str = "ann",
    turn: int | None = None,
) -> run_pb2.HumanLabel:
    made = run_pb2.HumanLabel(unit_id=unit_id, metric=metric, annotator=annotator)
    if metric == "outcome":
        made.outcome = ep.Outcome.ValueType(int(value))
    else:
        made.value = value
    if turn is not None:
        made.message_index = turn
    return made


def scenarios(
    tasks: int, per_task: int = 1, issues: Mapping[int, Sequence[str]] | None = None
) -> list[scenario_pb2.Scenario]:
    """The scenarios of `records.sweep` and `records.rows_of`."""
    made = []
    for task in range(tasks):
        for number in range(per_task):
            one = scenario_pb2.Scenario(scenario_id=f"scenario_{task:03}_{number}", task_id=f"task_{task:03}")
            one.persona.persona_id, one.persona.name = f"persona_{number}", f"Person {number}"
            one.task.summary = f"Return number {task}"
            one.task.complexity_level, one.task.complexity_ordinal = (
                ("High", 3) if task % 3 else ("Very High", 4)
            )
            one.task.all_ambiguity_types.extend(
                ["Vagueness", "Incompleteness"] if task % 2 else ["Vagueness"]
            )
            one.task.related_policy_issues.extend((issues or {}).get(task, [f"issue {task // 2}"]))
            made.append(one)
    return made
