"""A judge's prompt, laid out for the prefix cache of the model server; pure but for reading its templates.

    system message   rules, rubric of all panels, policy        equal for all calls of a sweep
    user message     case, personas, transcript, how it ended   equal for all panels of an episode
                     case and customer come first               equal for all agents of a scenario
                     which panel, and what it needs to know     the last few words

Rubrics of the other panels cost a panel nothing on a server with a prefix cache, and spare it the transcript.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from string import Template

from policysweep.errors import InputError
from policysweep.models.chat import Json
from policysweep.quoting import quoted
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, scenario_pb2
from services.judge import transcript
from services.judge.rubric import SCALE, Metric, Panel, Rubric
from services.judge.score_sheet import OUTCOMES, TURN_LISTS, ScoreSheet

_PROMPTS = Path(__file__).with_name("prompts")


def _read(name: str) -> str:
    return (_PROMPTS / f"{name}.md").read_text(encoding="utf-8")


_SYSTEM, _OUTCOME, _CASE, _GOALS, _GOALS_CASE = (
    _read(name) for name in ("judge", "outcome", "case", "goals", "goals_case")
)
_PANEL = "\n# Your panel\n\nJudge the panel `{}` now."
_METRICS = " Its metrics here: {}."
_TURNS = " {}: {}, for {}."
_WITH_OUTCOME = " Also name the outcome."
_WITH_GOALS = " Judge each of these goals of the customer, by its number:\n"
_AGAIN = "\n\nAn earlier answer could not be used ({}). Answer anew, with the JSON object alone."
_NO_PERSONA = "No persona was assigned to it."
_SIDES = {ep.ROLE_AGENT: "Agent turns", ep.ROLE_CUSTOMER: "Customer turns"}

PROMPT_DIGEST = hashlib.sha256(
    "\0".join(
        (_SYSTEM, _OUTCOME, _CASE, _PANEL, _METRICS, _TURNS, _WITH_OUTCOME, _WITH_GOALS, _AGAIN, _NO_PERSONA)
    ).encode()
    + f"\0{transcript.LAYOUT} {transcript.MESSAGE_CHARACTERS} {transcript.RESULT_CHARACTERS}".encode()
).hexdigest()
"""SHA-256 over the templates of a panel's prompt and the layout of its transcript, hex."""

GOALS_DIGEST = hashlib.sha256("\0".join((_GOALS, _GOALS_CASE)).encode()).hexdigest()
"""SHA-256 over the templates of the goals' prompt, hex."""


def panel_messages(rubric: Rubric, policy: scenario_pb2.Policy, episode_text: str, ask: str) -> list[Json]:
    """The messages of one panel's prompt, from the parts that the functions below make."""
    return [
        _system_message(rubric, policy.SerializeToString(deterministic=True)),
        {"role": "user", "content": episode_text + ask},
    ]


@lru_cache(maxsize=64)
def _system_message(rubric: Rubric, policy: bytes) -> Json:
    """Rendered once for each policy: a sweep has one or two."""
    outcome = ""
    if any(panel.outcome for panel in rubric.panels):
        outcome = Template(_OUTCOME).substitute(outcomes=", ".join(OUTCOMES))
    content = Template(_SYSTEM).substitute(
        discipline=rubric.discipline,
        outcome=outcome,
        rubric="\n\n".join(_panel_section(panel) for panel in rubric.panels),
        policy="\n\n".join(_policy_sections(scenario_pb2.Policy.FromString(policy))),
    )
    return {"role": "system", "content": content}


def rubric_characters(rubric: Rubric) -> int:
    """Characters that rules and rubric take in the prompt of every panel; the policy comes on top."""
    return len(_system_message(rubric, b"")["content"])


def _panel_section(panel: Panel) -> str:
    metrics = (_metric_section(metric) for metric in panel.metrics if metric.derived is None)
    return "\n\n".join([f"## Panel `{panel.key}`\n\n{panel.instruction}", *metrics])


def _metric_section(metric: Metric) -> str:
    whose = " and ".join(metric.subjects)
    anchors = "\n".join(f"{score}: {anchor}" for score, anchor in zip(SCALE, metric.anchors, strict=True))
    return f"`{metric.key}` ({whose}). {metric.question}\n{anchors}"


def _policy_sections(policy: scenario_pb2.Policy) -> Iterator[str]:
    yield quoted(policy.primary.text)
    for document in policy.related:
        yield f"A related policy:\n{quoted(document.text)}"


def episode_text(rubric: Rubric, scenario: scenario_pb2.Scenario, episode: ep.Episode) -> str:
    """The part of the user message that all panels of an episode share.

    Raises InputError for a role or persona that it cannot show.
    """
    task = scenario.task
    return Template(_CASE).substitute(
        detail=quoted(task.detail),
        reason=quoted(task.reason),
        issues=quoted("\n".join(f"- {issue}" for issue in task.related_policy_issues)),
        case_brief=quoted(scenario.case_brief),
        customer_persona=quoted(_persona(scenario.persona)),
        behavior=quoted(scenario.customer_brief.behavior),
        agent_persona=_agent_persona(rubric, episode.agent_persona),
        transcript=transcript.transcript(episode),
        ending=transcript.ending(episode),
    )


def _persona(persona: scenario_pb2.Persona) -> str:
    traits = ", ".join(f"{trait} {persona.personality[trait]}" for trait in sorted(persona.personality))
    return (
        f"{persona.name}, {persona.age_range}, {persona.location}, {persona.job_sector}\n"
        f"Language style: {persona.language_style}. Communication style: {persona.communication_style}\n"
        f"Big Five, 1 low to 5 high: {traits}\n"
        f"{persona.description}"
    )


def _agent_persona(rubric: Rubric, persona: ep.AgentPersona.ValueType) -> str:
    if persona == ep.AGENT_PERSONA_UNSPECIFIED:
        return _NO_PERSONA
    if persona not in ep.AgentPersona.values():
        raise InputError(f"JudgeEpisode: episode.agent_persona is {persona}, which no rubric describes")
    name = ep.AgentPersona.Name(persona).removeprefix("AGENT_PERSONA_")
    return f"The persona that was assigned to it is {name}: {rubric.agent_personas[name]}"


def panel_ask(sheet: ScoreSheet) -> str:
    """The last words of the prompt: which panel, and what of it applies to this episode."""
    ask = _PANEL.format(sheet.panel.key)
    if keys := sheet.single_metrics:
        ask += _METRICS.format(", ".join(keys))
    for side in TURN_LISTS:
        if keys := sheet.turn_metrics(side):
            turns = ", ".join(map(str, sheet.turns[side]))
            ask += _TURNS.format(_SIDES[side], turns, ", ".join(keys))
    if sheet.panel.outcome:
        ask += _WITH_OUTCOME
    if sheet.goals:
        ask += _WITH_GOALS + _numbered(sheet.goals)
    return ask


def _numbered(goals: Sequence[judge_pb2.Goal]) -> str:
    return quoted("\n".join(f"{number}. {_one_line(goal.text)}" for number, goal in enumerate(goals, 1)))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def again(problem: str) -> str:
    """What is added when an answer could not be used. Greedy sampling would repeat it word for word."""
    return _AGAIN.format(problem)


def goals_messages(task: scenario_pb2.Task, addition: str = "") -> list[Json]:
    """The prompt that extracts a task's goals. They hold for all personas, whose briefs may differ, so the
    task alone is in it.
    """
    case = Template(_GOALS_CASE).substitute(
        detail=quoted(task.detail),
        reason=quoted(task.reason),
        summary=quoted(task.summary),
    )
    return [{"role": "system", "content": _GOALS}, {"role": "user", "content": case + addition}]
