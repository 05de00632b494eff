"""Small scenarios, records, verdicts and rubrics for the tests of the page."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

import orjson

from policysweep.report.criteria import Criteria
from policysweep.report.html.write import ReportInputs, write_report
from policysweep.report.rows import row
from policysweep.report.summary import summarise
from policysweep.report.verdicts import Verdicts
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, run_pb2, scenario_pb2

AGENTS = ("strict", "fair")
FULL, DENY = ep.OUTCOME_RETURN_REFUND_FULL_BANK, ep.OUTCOME_DENY_REFUND
AGENT, CUSTOMER = ep.ROLE_AGENT, ep.ROLE_CUSTOMER


def scenario(number: int) -> scenario_pb2.Scenario:
    made = scenario_pb2.Scenario(scenario_id=f"scenario_{number}", task_id=f"task_{number}")
    made.persona.persona_id, made.persona.name = "persona_0", "Person"
    made.policy.primary.text = "The policy, which is long."
    made.task.summary, made.task.complexity_level = f"Return {number}", "High"
    made.task.related_policy_issues.append(f"Issue {number}")
    return made


def record(
    agent: str = "fair",
    number: int = 0,
    outcome: ep.Outcome.ValueType = FULL,
    fault: ep.FaultParty.ValueType = ep.FAULT_PARTY_UNSPECIFIED,
    text: str = "Hello",
) -> run_pb2.UnitRecord:
    made = run_pb2.UnitRecord(attempts=1)
    made.unit.unit_id = made.episode.episode_id = f"{agent}-{number}"
    made.unit.scenario_id, made.unit.task_id = f"scenario_{number}", f"task_{number}"
    made.unit.agent, made.unit.agent_persona = agent, ep.AGENT_PERSONA_FAIR
    made.episode.outcome, made.episode.turns = outcome, 3
    made.episode.end.reason, made.episode.end.fault = ep.END_REASON_RESOLVED, fault
    made.episode.messages.add(role=CUSTOMER, content=text)
    return made


def rubric() -> judge_pb2.Rubric:
    made = judge_pb2.Rubric(min_scale_mass=0.5)
    made.ref.name, made.ref.version = "small", 1
    metrics = (
        ("support", "policy", (AGENT,)),
        ("reasoning", "policy", (AGENT,)),
        ("drift", "dialogue", (AGENT, CUSTOMER)),
        ("customer_tone", "behaviour", (CUSTOMER,)),
    )
    for key, dimension, subjects in metrics:
        made.metrics.add(key=key, dimension=dimension, panel="main", subjects=subjects, title=key.title())
    for key in ("policy", "dialogue", "behaviour"):
        made.dimensions.add(key=key, title=key.title())
    made.panels.add(key="main", title="Main", digest="digest-main")
    return made


def criteria() -> Criteria:
    return Criteria(rubric())


def verdict(unit_id: str = "fair-0", judge: str = "j") -> run_pb2.VerdictRecord:
    made = run_pb2.VerdictRecord(unit_id=unit_id, judge=judge)
    made.rubric.name, made.rubric.version = "small", 1
    made.verdict.panel, made.verdict.panel_digest = "main", "digest-main"
    return made


def score(
    made: run_pb2.VerdictRecord,
    metric: str,
    value: float | None,
    subject: ep.Role.ValueType = AGENT,
    reason: judge_pb2.AbsentReason.ValueType = judge_pb2.ABSENT_REASON_UNSPECIFIED,
    turn: int | None = None,
) -> run_pb2.VerdictRecord:
    added = made.verdict.scores.add(metric=metric, subject=subject, absent_reason=reason)
    if value is not None:
        added.value = value
    if turn is not None:
        added.message_index = turn
    return made


def judged(unit_id: str, judge: str = "j") -> run_pb2.VerdictRecord:
    made = verdict(unit_id, judge)
    for metric, subject in (("support", AGENT), ("reasoning", AGENT), ("customer_tone", CUSTOMER)):
        score(made, metric, 1.0 + len(unit_id) % 5, subject)
    score(made, "drift", 4.0, turn=1)
    return made


def manifest(rehearsal: bool = False, agents: Sequence[str] = AGENTS) -> run_pb2.RunManifest:
    made = run_pb2.RunManifest(run="demo", trials=1, rehearsal=rehearsal)
    made.persona_assignment = run_pb2.PERSONA_ASSIGNMENT_BALANCED
    made.dataset.name, made.dataset.digest = "builtin", "ab" * 32
    for name in agents:
        made.agents.add(name=name).info.model = f"{name}-model"
    return made


def inputs(
    records: Sequence[run_pb2.UnitRecord],
    scenarios: Sequence[scenario_pb2.Scenario],
    verdicts: Iterable[run_pb2.VerdictRecord] | None = None,
    planned: Sequence[run_pb2.Unit] | None = None,
    rehearsal: bool = False,
) -> ReportInputs:
    units = [made.unit for made in records] if planned is None else list(planned)
    taken = None
    if verdicts is not None:
        taken = Verdicts(rubric(), {"j": judge_pb2.JudgeInfo(model="judge-model")}).extend(verdicts)
    agents = list(dict.fromkeys(unit.agent for unit in units))
    summary = summarise(
        [row(made) for made in records],
        Counter(unit.agent for unit in units),
        [],
        manifest(rehearsal, agents),
        verdicts=taken,
        scenarios=scenarios,
    )
    return ReportInputs(summary, scenarios, units, rubric() if taken else None)


class Files:
    """Writes a report into a dictionary and notes what was read together."""

    def __init__(
        self,
        records: Sequence[run_pb2.UnitRecord],
        verdicts: Sequence[run_pb2.VerdictRecord] = (),
    ) -> None:
        self._records = records
        self._verdicts = verdicts
        self.files: dict[str, bytes] = {}
        self.reads: list[Sequence[str]] = []

    async def read(
        self, ids: Sequence[str]
    ) -> AsyncIterator[tuple[run_pb2.UnitRecord, Sequence[run_pb2.VerdictRecord]]]:
        self.reads.append(ids)
        # Records come in the order of their names, whatever was asked for first.
        for made in sorted(self._records, key=lambda each: each.unit.unit_id):
            if made.unit.unit_id in ids:
                yield made, [each for each in self._verdicts if each.unit_id == made.unit.unit_id]

    async def write(self, name: str, data: bytes) -> None:
        self.files[name] = data

    def report(self, of: ReportInputs) -> str:
        """Write the report; returns the page."""
        asyncio.run(write_report(of, self.read, self.write))
        return self.files["report.html"].decode()


def data_of(page: str) -> Any:
    """The data inside a page."""
    start = page.index('type="application/json">') + len('type="application/json">')
    return orjson.loads(page[start : page.index("</script>", start)])
