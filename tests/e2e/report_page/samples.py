"""A small run with everything that the page shows: transcripts, faults, contradictions, verdicts, goals."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from policysweep.report.html.write import ReportInputs, write_report
from policysweep.report.rows import row
from policysweep.report.summary import summarise
from policysweep.report.verdicts import Verdicts
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, run_pb2, scenario_pb2

AGENTS = ("strict", "fair", "lenient")
TASKS, PERSONAS = 12, 3
FULL, PARTIAL, DENY = (
    ep.OUTCOME_RETURN_REFUND_FULL_BANK,
    ep.OUTCOME_RETURN_REFUND_PARTIAL_BANK,
    ep.OUTCOME_DENY_REFUND,
)
METRICS = (
    ("support", "policy", "main", judge_pb2.METRIC_LEVEL_CONVERSATION),
    ("drift", "dialogue", "turns", judge_pb2.METRIC_LEVEL_TURN),
)


@dataclass
class SampleRun:
    """A run before it is reported; tests change what they are about."""

    manifest: run_pb2.RunManifest
    scenarios: list[scenario_pb2.Scenario]
    records: list[run_pb2.UnitRecord]
    rubric: judge_pb2.Rubric
    verdicts: list[run_pb2.VerdictRecord] = field(default_factory=list)
    goals: list[judge_pb2.Goal] = field(default_factory=list)
    judge: str = "panel"

    def messages(self) -> Iterator[Message]:
        """All messages that the run consists of."""
        yield self.manifest
        yield from (*self.scenarios, *self.records, *self.verdicts, *self.goals)
        yield self.rubric

    def write(self, folder: Path) -> Path:
        """Write the report; returns the page."""
        asyncio.run(write_report(self._inputs(), self._read, _writer(folder)))
        return folder / "report.html"

    def _inputs(self) -> ReportInputs:
        verdicts = None
        if self.verdicts:
            info = judge_pb2.JudgeInfo(model="judge-model", samples=1)
            verdicts = Verdicts(self.rubric, {self.judge: info}).extend(self.verdicts)
        summary = summarise(
            [row(record) for record in self.records],
            {entry.name: TASKS * PERSONAS * self.manifest.trials for entry in self.manifest.agents},
            [],
            self.manifest,
            verdicts=verdicts,
            scenarios=self.scenarios,
        )
        units = [record.unit for record in self.records]
        rubric = self.rubric if self.verdicts else None
        goals = {scenario.task_id: self.goals for scenario in self.scenarios}
        return ReportInputs(summary, self.scenarios, units, rubric, goals)

    async def _read(
        self, ids: Sequence[str]
    ) -> AsyncIterator[tuple[run_pb2.UnitRecord, Sequence[run_pb2.VerdictRecord]]]:
        wanted = set(ids)
        for record in self.records:
            if record.unit.unit_id in wanted:
                found = [each for each in self.verdicts if each.unit_id == record.unit.unit_id]
                yield record, found


def _writer(folder: Path) -> Any:
    async def write(name: str, data: bytes) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    return write


def sample_run(trials: int = 1, *, judged: bool = True) -> SampleRun:
    manifest = run_pb2.RunManifest(format=1, run="sample", trials=trials, rehearsal=True, version="0.1.0")
    manifest.dataset.name, manifest.dataset.digest = "builtin", "ab" * 32
    manifest.dataset.scenarios, manifest.dataset.tasks = TASKS * PERSONAS, TASKS
    manifest.persona_assignment = run_pb2.PERSONA_ASSIGNMENT_BALANCED
    for name in AGENTS:
        info = manifest.agents.add(name=name).info
        info.model, info.variant, info.prompt_digest = f"{name}-model", "baseline", "cd" * 32
    scenarios = [_scenario(task, persona) for task in range(TASKS) for persona in range(PERSONAS)]
    records = [
        _record(agent, position, scenario, trial)
        for trial in range(trials)
        for position, scenario in enumerate(scenarios)
        for agent in AGENTS
    ]
    run = SampleRun(manifest, scenarios, records, _rubric())
    if judged:
        run.verdicts = [verdict for record in records for verdict in _verdicts(record)]
        run.goals = [judge_pb2.Goal(text="Money back", explicit=True), judge_pb2.Goal(text="An apology")]
    return run


def plant(run: SampleRun, text: str) -> None:
    """Append a text to every text field of the run, apart from the ids of units."""
    for message in run.messages():
        _plant(message, text)
    run.judge += text


_IDS = ("unit_id", "episode_id")


def _plant(message: Message, text: str) -> None:
    for described, value in message.ListFields():
        if described.name in _IDS:
            continue
        entry = described.message_type
        if entry is not None and entry.GetOptions().map_entry:
            planted = {f"{key}{text}": number for key, number in value.items()}
            value.clear()
            value.update(planted)
        elif described.type == FieldDescriptor.TYPE_STRING:
            if described.is_repeated:
                value[:] = [f"{each}{text}" for each in value]
            else:
                setattr(message, described.name, f"{value}{text}")
        elif described.type == FieldDescriptor.TYPE_MESSAGE:
            for each in value if described.is_repeated else (value,):
                _plant(each, text)


def _scenario(task: int, persona: int) -> scenario_pb2.Scenario:
    made = scenario_pb2.Scenario(scenario_id=f"S_t{task:03}_{persona}", task_id=f"task_{task:03}")
    made.policy.primary.text = "The written policy."
    made.persona.persona_id, made.persona.name = f"persona_{persona}", f"Person {persona}"
    made.persona.description, made.persona.language_style = "Keeps receipts.", "Formal"
    made.persona.personality["Openness"] = 3
    made.task.summary, made.task.detail = f"Return number {task}", "The whole story."
    made.task.reason = "It is the wrong color."
    made.task.related_policy_issues.extend([f"Issue {task} is open.", "So is the fee."])
    made.task.complexity_level, made.task.complexity_ordinal = "High", 3
    made.task.primary_ambiguity_type = "Vagueness" if task % 2 else "Incompleteness"
    made.task.all_ambiguity_types.append(made.task.primary_ambiguity_type)
    made.case_brief = "A customer asks for a return."
    made.customer_brief.basic_info, made.customer_brief.private_info = "Bought in May.", "It was used."
    made.customer_brief.behavior = "Insists."
    made.first_customer_message = "I want to return this."
    return made


def unit_id(agent: str, scenario_id: str, trial: int = 0) -> str:
    return hashlib.sha256(f"{agent} {scenario_id} {trial}".encode()).hexdigest()[:32]


def _record(agent: str, position: int, scenario: scenario_pb2.Scenario, trial: int) -> run_pb2.UnitRecord:
    made = run_pb2.UnitRecord(attempts=1)
    unit, episode = made.unit, made.episode
    unit.unit_id = episode.episode_id = unit_id(agent, scenario.scenario_id, trial)
    unit.scenario_id = episode.scenario_id = scenario.scenario_id
    unit.task_id = episode.task_id = scenario.task_id
    unit.agent, unit.trial = agent, trial
    unit.agent_persona = episode.agent_persona = ep.AGENT_PERSONA_FAIR
    chance = random.Random(unit.unit_id)
    leaning = {"strict": DENY, "fair": PARTIAL, "lenient": FULL}[agent]
    episode.outcome = leaning if chance.random() < 0.6 else chance.choice([FULL, PARTIAL, DENY])
    episode.turns, episode.duration_seconds, episode.rehearsal = 2, 1.5, True
    _converse(episode)
    episode.end.reason = ep.END_REASON_RESOLVED
    if agent == "lenient" and position == 0:
        _contradict(episode)
    if agent == "strict" and position == 1:
        _fail(episode)
    return made


def _converse(episode: ep.Episode) -> None:
    episode.messages.add(role=ep.ROLE_CUSTOMER, content="I want to return this.")
    call = episode.messages.add(role=ep.ROLE_AGENT).tool_calls.add()
    call.id, call.name, call.arguments_json = "call_1", "get_order_details", '{"order_id":"ORD-1"}'
    episode.messages.add(
        role=ep.ROLE_TOOL,
        content='{"status":"ok","items":[{"item_id":"I-1"}]}',
        tool_call_id="call_1",
        tool_name="get_order_details",
        tool_status=ep.TOOL_STATUS_OK,
    )
    episode.messages.add(role=ep.ROLE_AGENT, content="The window has closed, but I can look into it.")
    event = episode.customer_tool_events.add(after_message=4, result_json='{"ok":true}')
    event.call.name, event.call.arguments_json = "customer_view_order_details", "{}"
    event.status = ep.TOOL_STATUS_OK
    episode.messages.add(role=ep.ROLE_CUSTOMER, content="Please do.")
    episode.messages.add(role=ep.ROLE_AGENT, content="It is settled.")
    episode.resolution.outcome, episode.resolution.description = episode.outcome, "Section 1 decides."
    episode.resolution.conditions.append("Send it back.")
    episode.resolution.customer_next_steps.append("Print the label.")
    for role in (ep.ROLE_AGENT, ep.ROLE_CUSTOMER):
        usage = episode.model_calls.add(role=role).usage
        usage.prompt_tokens, usage.completion_tokens, usage.model_calls = 3000, 80, 1
    episode.model_calls[0].after_message = 3
    episode.model_calls[0].consulted_spec_ids.extend(["return_windows", "exceptions"])


def _contradict(episode: ep.Episode) -> None:
    held = episode.reconciliation
    held.declared, held.executed, held.mismatch = episode.outcome, DENY, True
    held.explanation = "Nothing was paid back."
    held.writes.add(tool_name="process_return", tool_call_id="call_9", implied_outcome=DENY)


def _fail(episode: ep.Episode) -> None:
    episode.outcome = ep.OUTCOME_UNSPECIFIED
    episode.ClearField("resolution")
    episode.end.reason, episode.end.fault = ep.END_REASON_TURN_LIMIT, ep.FAULT_PARTY_AGENT
    episode.end.detail = "The turn limit was reached."


def _rubric() -> judge_pb2.Rubric:
    made = judge_pb2.Rubric(digest="ef" * 32, min_scale_mass=0.5)
    made.ref.name, made.ref.version = "small", 1
    for key, dimension, panel, level in METRICS:
        made.metrics.add(key=key, dimension=dimension, panel=panel, level=level, title=f"Metric {key}")
        made.metrics[-1].subjects.append(ep.ROLE_AGENT)
        made.dimensions.add(key=dimension, title=f"Dimension {dimension}")
        made.panels.add(key=panel, title=f"Panel {panel}", digest=f"digest-{panel}")
    return made


def _verdicts(record: run_pb2.UnitRecord) -> Iterator[run_pb2.VerdictRecord]:
    chance = random.Random(record.unit.unit_id)
    for panel in ("main", "turns"):
        made = run_pb2.VerdictRecord(unit_id=record.unit.unit_id, judge="panel")
        made.rubric.name, made.rubric.version = "small", 1
        made.verdict.panel, made.verdict.panel_digest = panel, f"digest-{panel}"
        made.verdict.rehearsal, made.verdict.usage.model_calls = True, 1
        if panel == "main":
            _score(made, "support", chance, "In [3] the agent names the window.")
            made.verdict.outcome.outcome = record.episode.outcome
            made.verdict.outcome.justification = "Declared at the end."
            made.verdict.goals.add(goal_index=0, met=True, justification="Paid back.")
            made.verdict.goals.add(goal_index=1, met=False, justification="None was given.")
        else:
            for turn in (3, 5):
                _score(made, "drift", chance, f"Turn {turn} keeps to the point.", turn)
        yield made


def _score(
    made: run_pb2.VerdictRecord, metric: str, chance: random.Random, grounds: str, turn: int | None = None
) -> None:
    score = made.verdict.scores.add(metric=metric, subject=ep.ROLE_AGENT, justification=grounds, samples=1)
    if turn is not None:
        score.message_index = turn
    if chance.random() < 0.02:
        score.absent_reason = judge_pb2.ABSENT_REASON_OUT_OF_SCALE
        score.absent_detail = "The judge wrote 7."
    else:
        score.value, score.scale_mass = round(chance.uniform(1.5, 5), 2), 0.9
