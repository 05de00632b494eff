"""A judge service as the driver sees it."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Sequence
from typing import TypeVar

import grpc

from policysweep.errors import InputError, JudgeUnusable
from policysweep.rpc import status
from policysweep.rpc.client import Channels
from policysweep.sweep.judge_plan import rubric_name
from policysweep.v1 import judge_pb2, judge_pb2_grpc, scenario_pb2

_INFO_SECONDS = 60.0

Answer = TypeVar("Answer")


class JudgeClient:
    """One judge by name and gRPC target. Every method raises the error that the service raised."""

    def __init__(self, name: str, target: str, channels: Channels) -> None:
        self.name = name
        self._target = target
        self._channels = channels
        self._info: judge_pb2.JudgeInfo | None = None

    @property
    def _stub(self) -> judge_pb2_grpc.JudgeServiceAsyncStub:
        # Anew for each call: the channel is another one once the certificate was renewed.
        return judge_pb2_grpc.JudgeServiceStub(self._channels.get(self._target))

    async def info(self) -> judge_pb2.JudgeInfo:
        """What the judge says of itself; asked for once."""
        if self._info is None:
            request = judge_pb2.GetJudgeInfoRequest()
            answer = await self._call(self._stub.GetJudgeInfo(request, timeout=_INFO_SECONDS))
            self._info = answer.info
        return self._info

    async def rubric(self, ref: judge_pb2.RubricRef, panels: Sequence[str]) -> judge_pb2.Rubric:
        """The rubric of this name and version. InputError when the judge lacks it or one of `panels`."""
        request = judge_pb2.ListRubricsRequest()
        answer = await self._call(self._stub.ListRubrics(request, timeout=_INFO_SECONDS))
        for rubric in answer.rubrics:
            if rubric.ref == ref:
                self._check_panels(rubric, panels)
                return rubric
        known = ", ".join(map(rubric_name, answer.rubrics)) or "none"
        raise InputError(f"judge {self.name} has no rubric {ref.name}@{ref.version}; it has {known}")

    @staticmethod
    def _check_panels(rubric: judge_pb2.Rubric, panels: Sequence[str]) -> None:
        known = [panel.key for panel in rubric.panels]
        for panel in panels:
            if panel not in known:
                close = difflib.get_close_matches(panel, known, n=1)
                hint = f"did you mean {close[0]}?" if close else f"it has {', '.join(known)}"
                raise InputError(f"rubric {rubric_name(rubric)} has no panel {panel}; {hint}")

    async def judge(
        self, request: judge_pb2.JudgeEpisodeRequest, seconds: float
    ) -> judge_pb2.JudgeEpisodeResponse:
        """Verdicts and failures of the panels asked for."""
        return await self._call(self._stub.JudgeEpisode(request, timeout=seconds))

    async def extract_goals(
        self, scenario: scenario_pb2.Scenario, seconds: float
    ) -> judge_pb2.ExtractGoalsResponse:
        """The customer's goals of a task. JudgeUnusable when the judge's answers hold none."""
        request = judge_pb2.ExtractGoalsRequest(scenario=scenario)
        response = await self._call(self._stub.ExtractGoals(request, timeout=seconds))
        if not response.goals:
            raise JudgeUnusable(
                f"judge {self.name} gave no goals of {scenario.task_id}: {response.absent_detail}"
            )
        return response

    async def tau2_info(self) -> judge_pb2.JudgeInfo:
        """What the judge says of itself, with all that changes a tau2-bench grade."""
        request = judge_pb2.GetJudgeInfoRequest(include_tau2=True)
        return (await self._call(self._stub.GetJudgeInfo(request, timeout=_INFO_SECONDS))).info

    async def grade(self, request: judge_pb2.JudgeTau2Request, seconds: float) -> judge_pb2.Tau2Grade:
        """The grade of a tau2-bench episode."""
        return (await self._call(self._stub.JudgeTau2(request, timeout=seconds))).grade

    async def _call(self, call: Awaitable[Answer]) -> Answer:
        try:
            return await call
        except grpc.aio.AioRpcError as error:
            known = status.error_from(error, status.SERVICE, self._target)
            raise type(known)(f"judge {self.name}: {known}", retry_after=known.retry_after) from error
