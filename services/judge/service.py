"""JudgeService on the wire. Translates between the contract and the judge; holds no logic."""

from __future__ import annotations

import hashlib
from typing import Any, Protocol

import grpc

from policysweep import __version__
from policysweep.domains.tau2 import installed
from policysweep.errors import InputError, ModelServerRejected
from policysweep.models.chat import ChatModel
from policysweep.models.observed import ObservedModel
from policysweep.models.openai_api import ModelDescription
from policysweep.rpc.deadlines import budget
from policysweep.rpc.server import Service
from policysweep.v1 import agent_pb2, judge_pb2, judge_pb2_grpc, scenario_pb2
from services.judge import prompt, tau2_assertions
from services.judge.asking import Interrogator
from services.judge.config import JudgeConfig
from services.judge.goals import extract_goals
from services.judge.panels import Case, judge_panels
from services.judge.rubric_files import RubricLibrary
from services.judge.tau2 import judge_tau2

_NAME = judge_pb2.DESCRIPTOR.services_by_name["JudgeService"].full_name
_Context = grpc.aio.ServicerContext[Any, Any]
_PROMPT_DIGEST = hashlib.sha256(f"{prompt.PROMPT_DIGEST}{prompt.GOALS_DIGEST}".encode()).hexdigest()


class ServedModel(ChatModel, Protocol):
    """A chat model that can say how it is served."""

    async def describe(self, timeout_seconds: float) -> ModelDescription:
        """What the server says about the model. Raises ModelServerError when it does not serve it."""
        ...


class Judge(judge_pb2_grpc.JudgeServiceServicer):
    """Judges episodes. Holds no state but the model's connections."""

    def __init__(self, config: JudgeConfig, model: ServedModel, rubrics: RubricLibrary) -> None:
        self._config = config
        self._served = model
        self._rubrics = rubrics
        self._sampling = agent_pb2.Sampling(
            temperature=config.temperature, top_p=config.top_p, max_tokens=config.max_tokens
        )
        self._interrogator = Interrogator(
            ObservedModel(model, role="judge", name=config.model),
            self._sampling,
            use_logprobs=config.use_logprobs,
            top_logprobs=config.top_logprobs,
            samples=config.samples,
            parse_attempts=config.parse_attempts,
        )

    async def JudgeEpisode(  # noqa: N802 - the contract's name
        self, request: judge_pb2.JudgeEpisodeRequest, context: _Context
    ) -> judge_pb2.JudgeEpisodeResponse:
        """Verdicts of the panels asked for."""
        check_request(request)
        rubric = self._rubrics.find(request.rubric)
        panels = self._rubrics.panels(rubric, request.panels)
        if any(panel.goals for panel in panels) and not request.goals:
            raise InputError(
                "JudgeEpisode: goals must not be empty for a panel that judges them: "
                "ask ExtractGoals once per task"
            )
        case = Case(
            rubric=rubric,
            scenario=request.scenario,
            episode=request.episode,
            goals=request.goals,
            seed=request.seed,
            text=prompt.episode_text(rubric, request.scenario, request.episode),
            timeout=lambda: budget(context, self._config.model_timeout_seconds),
        )
        return await judge_panels(self._interrogator, case, panels)

    async def ExtractGoals(  # noqa: N802 - the contract's name
        self, request: judge_pb2.ExtractGoalsRequest, context: _Context
    ) -> judge_pb2.ExtractGoalsResponse:
        """The customer's goals of a task."""
        _check_task("ExtractGoals", request.scenario)
        return await extract_goals(
            self._interrogator,
            request.scenario,
            request.seed,
            lambda: budget(context, self._config.model_timeout_seconds),
        )

    async def JudgeTau2(  # noqa: N802 - the contract's name
        self, request: judge_pb2.JudgeTau2Request, context: _Context
    ) -> judge_pb2.JudgeTau2Response:
        """The grade of a tau2-bench episode."""
        found = await judge_tau2(
            self._interrogator, request, lambda: budget(context, self._config.model_timeout_seconds)
        )
        return judge_pb2.JudgeTau2Response(grade=found)

    async def ListRubrics(  # noqa: N802 - the contract's name
        self, request: judge_pb2.ListRubricsRequest, context: _Context
    ) -> judge_pb2.ListRubricsResponse:
        """The rubrics served, with all their metrics."""
        return judge_pb2.ListRubricsResponse(
            rubrics=[
                rubric.message(prompt.PROMPT_DIGEST, prompt.rubric_characters(rubric))
                for rubric in self._rubrics
            ]
        )

    async def GetJudgeInfo(  # noqa: N802 - the contract's name
        self, request: judge_pb2.GetJudgeInfoRequest, context: _Context
    ) -> judge_pb2.GetJudgeInfoResponse:
        """All that changes behaviour; fails while the model is not served."""
        timeout = budget(context, self._config.model_timeout_seconds)
        served = await self._served.describe(timeout)
        if served.max_model_len is not None and self._config.max_tokens >= served.max_model_len:
            raise ModelServerRejected(
                f"max_tokens is {self._config.max_tokens}, but {served.model!r} is served with a context of "
                f"{served.max_model_len} tokens, prompt included: lower --max-tokens"
            )
        logprobs = await self._interrogator.uses_logprobs(timeout)
        tau2 = {"tau2_prompt_digest": tau2_assertions.PROMPT_DIGEST, "tau2_package": installed()}
        return judge_pb2.GetJudgeInfoResponse(
            info=judge_pb2.JudgeInfo(
                model=self._config.model,
                prompt_digest=_PROMPT_DIGEST,
                sampling=self._sampling,
                logprobs=logprobs,
                top_logprobs=self._config.top_logprobs if logprobs else 0,
                rehearsal=served.rehearsal,
                version=__version__,
                samples=self._config.samples,
                parse_attempts=self._config.parse_attempts,
                **(tau2 if request.include_tau2 else {}),
            )
        )


def check_request(request: judge_pb2.JudgeEpisodeRequest) -> None:
    """Refuse what cannot be judged. Raises InputError that names the field."""
    _check_task("JudgeEpisode", request.scenario)
    scenario, episode = request.scenario, request.episode
    if not scenario.policy.primary.text:
        raise InputError("JudgeEpisode: scenario.policy.primary.text must not be empty")
    if not episode.messages:
        raise InputError("JudgeEpisode: episode.messages must not be empty: there is nothing to judge")
    if episode.scenario_id != scenario.scenario_id:
        raise InputError(
            f"JudgeEpisode: the episode is of scenario {episode.scenario_id!r}, not of the scenario that "
            f"came with it, {scenario.scenario_id!r}"
        )
    for index, goal in enumerate(request.goals):
        if not goal.text.strip():
            raise InputError(f"JudgeEpisode: goals[{index}].text must not be empty")


def _check_task(method: str, scenario: scenario_pb2.Scenario) -> None:
    if not scenario.task.detail:
        raise InputError(
            f"{method}: scenario.task.detail must not be empty: the judge needs the task's design"
        )


def judge_service(judge: Judge) -> Service:
    """The gRPC service of a judge."""
    return Service(_NAME, lambda server: judge_pb2_grpc.add_JudgeServiceServicer_to_server(judge, server))
