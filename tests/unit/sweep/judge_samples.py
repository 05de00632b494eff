"""A rubric, verdicts and a judge that plays a script, for the small run of `samples`."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence

from google.protobuf.timestamp_pb2 import Timestamp

from policysweep.errors import PolicysweepError
from policysweep.sweep.judge_client import JudgeClient
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, run_pb2, scenario_pb2

REF = judge_pb2.RubricRef(name="small", version=1)
PANELS = ("policy", "talk", "interest")
UNIT = "0123456789abcdef" * 2
USAGE = ep.Usage(model_calls=1, prompt_tokens=100, completion_tokens=10)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def rubric(**texts: str) -> judge_pb2.Rubric:
    """Three panels; a keyword gives one of them another text. `interest` judges the goals."""
    made = judge_pb2.Rubric(ref=REF, digest=digest(str(texts)), prompt_characters=1000)
    for key in PANELS:
        made.panels.add(key=key, digest=digest(texts.get(key, key)), weighted=key == "policy")
        made.metrics.add(key=f"{key}_score", panel=key, derived=key == "interest")
    return made


def info(model: str = "rehearsal-judge", **changes: object) -> judge_pb2.JudgeInfo:
    fields: dict[str, object] = {"model": model, "samples": 1, "parse_attempts": 2, "version": "1"}
    return judge_pb2.JudgeInfo(**{**fields, **changes})  # type: ignore[arg-type]  # any field of the message


def judging(*names: str, of: judge_pb2.Rubric | None = None) -> run_pb2.Judging:
    return run_pb2.Judging(
        rubric=of or rubric(),
        judges=[run_pb2.JudgeEntry(name=name, info=info()) for name in sorted(names)],
    )


def verdict(
    unit: str = UNIT, panel: str = "policy", judge: str = "ada", text: str | None = None
) -> run_pb2.VerdictRecord:
    return run_pb2.VerdictRecord(
        unit_id=unit,
        judge=judge,
        rubric=REF,
        verdict=judge_pb2.PanelVerdict(panel=panel, panel_digest=digest(text or panel), usage=USAGE),
        recorded_at=Timestamp(seconds=1_790_000_000),
    )


def goals(task: str = "t0", text: str = "Money back", judge: str = "ada") -> run_pb2.TaskGoals:
    return run_pb2.TaskGoals(
        task_id=task, goals=[judge_pb2.Goal(text=text)], judge=info(), judge_name=judge, usage=USAGE
    )


Script = Callable[[str, str], PolicysweepError | judge_pb2.PanelFailure | None]
"""What goes wrong with a unit's panel this time: the whole call's error, the panel's failure, or nothing."""


class FakeJudge(JudgeClient):
    """A judge without a service. Keeps what it was asked; `script` says what goes wrong."""

    def __init__(
        self,
        name: str = "ada",
        script: Script | None = None,
        *,
        serves: judge_pb2.Rubric | None = None,
        described: judge_pb2.JudgeInfo | None = None,
        goal_script: Callable[[str], PolicysweepError | None] | None = None,
    ) -> None:
        self.name = name
        self.serves = serves or rubric()
        self.described = described or info()
        self.script = script
        self.goal_script = goal_script
        self.asked: list[judge_pb2.JudgeEpisodeRequest] = []
        self.goals_asked: list[str] = []

    @property
    def panels_asked(self) -> list[tuple[str, str]]:
        """Unit and panel of all that was asked, in order."""
        return [(each.episode.episode_id, panel) for each in self.asked for panel in each.panels]

    async def info(self) -> judge_pb2.JudgeInfo:
        return self.described

    async def rubric(self, ref: judge_pb2.RubricRef, panels: Sequence[str]) -> judge_pb2.Rubric:
        assert ref == self.serves.ref
        self._check_panels(self.serves, panels)
        return self.serves

    async def extract_goals(
        self, scenario: scenario_pb2.Scenario, seconds: float
    ) -> judge_pb2.ExtractGoalsResponse:
        self.goals_asked.append(scenario.task_id)
        await asyncio.sleep(0.01)
        if self.goal_script and (error := self.goal_script(scenario.task_id)):
            raise error
        return judge_pb2.ExtractGoalsResponse(
            goals=[judge_pb2.Goal(text=f"{self.name} on {scenario.task_id}")], usage=USAGE
        )

    async def judge(
        self, request: judge_pb2.JudgeEpisodeRequest, seconds: float
    ) -> judge_pb2.JudgeEpisodeResponse:
        self.asked.append(request)
        await asyncio.sleep(0)
        response = judge_pb2.JudgeEpisodeResponse()
        digests = {panel.key: panel.digest for panel in self.serves.panels}
        for panel in request.panels:
            trouble = self.script(request.episode.episode_id, panel) if self.script else None
            if isinstance(trouble, PolicysweepError):
                raise trouble
            if trouble is None:
                response.panels.add(panel=panel, panel_digest=digests[panel], usage=USAGE)
            else:
                response.failures.append(trouble)
        return response


def panel_failure(panel: str, error: PolicysweepError) -> judge_pb2.PanelFailure:
    return judge_pb2.PanelFailure(
        panel=panel,
        party=error.party,
        reason=error.reason,
        message=str(error),
        retryable=error.retryable,
        retry_after_seconds=error.retry_after,
    )
