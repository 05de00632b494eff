"""The judge over real gRPC, with a scripted model and with the rehearsal server."""

from __future__ import annotations

import json
import signal
import sys
from asyncio.subprocess import PIPE, create_subprocess_exec
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from policysweep import errors
from policysweep.models.chat import ChatReply, ChatRequest
from policysweep.models.openai_api import ModelDescription, OpenAIChatModel
from policysweep.models.rehearsal import RehearsalServer
from policysweep.models.rehearsal.request import parse
from policysweep.models.rehearsal.roles import respond
from policysweep.models.wire import request_body
from policysweep.rpc import status
from policysweep.rpc.client import Channels
from policysweep.rpc.server import serving
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, judge_pb2_grpc, scenario_pb2
from services.judge.config import JudgeConfig
from services.judge.rubric_files import RubricLibrary
from services.judge.service import Judge, ServedModel, judge_service

ROOT = Path(__file__).parents[2]
RUBRICS = ROOT / "services/judge/rubrics"
LIBRARY = RubricLibrary.read(RUBRICS)
RUBRIC = judge_pb2.RubricRef(name="drip-r", version=1)
PANELS = ["policy_resolution", "dialogue", "behavioural", "turn_level", "interest"]
GOALS = [judge_pb2.Goal(text="A full refund", explicit=True), judge_pb2.Goal(text="An explanation")]
CUSTOMER, AGENT, TOOL = ep.ROLE_CUSTOMER, ep.ROLE_AGENT, ep.ROLE_TOOL


def scenario() -> scenario_pb2.Scenario:
    return scenario_pb2.Scenario(
        scenario_id="s-1",
        task_id="task_1",
        policy=scenario_pb2.Policy(primary=scenario_pb2.PolicyDocument(text="Returns within 30 days.")),
        persona=scenario_pb2.Persona(name="Ada Lind", language_style="Frozen"),
        task=scenario_pb2.Task(detail="The customer wants $20.00 back for a kettle.", reason="Too loud."),
        customer_brief=scenario_pb2.CustomerBrief(behavior="Insists twice."),
    )


def episode() -> ep.Episode:
    return ep.Episode(
        episode_id="e-1",
        scenario_id="s-1",
        agent_persona=ep.AGENT_PERSONA_FAIR,
        messages=[
            ep.Message(role=CUSTOMER, content="My kettle is too loud."),
            ep.Message(role=AGENT, tool_calls=[ep.ToolCall(id="1", name="find", arguments_json="{}")]),
            ep.Message(role=TOOL, tool_name="find", content="{}", tool_status=ep.TOOL_STATUS_OK),
            ep.Message(role=AGENT, content="Was it used?"),
            ep.Message(role=CUSTOMER, content="Once."),
            ep.Message(role=AGENT, content="Then the policy lets me take off 10%."),
        ],
        resolution=ep.Resolution(outcome=ep.OUTCOME_RETURN_REFUND_PARTIAL_BANK, description="Used."),
        end=ep.EpisodeEnd(reason=ep.END_REASON_RESOLVED),
    )


def withdrawn() -> ep.Episode:
    found = episode()
    found.ClearField("resolution")
    found.end.reason = ep.END_REASON_CUSTOMER_WITHDREW
    return found


class FakeModel:
    """The rehearsal model's scripts without its server. `failing` maps a panel to the error that it gets."""

    def __init__(self, failing: Mapping[str, errors.PolicysweepError] | None = None) -> None:
        self.failing = dict(failing or {})
        self.asked: list[str] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        body = request_body("rehearsal-judge", request)
        panel = str(request.messages[-1]["content"]).rpartition("Judge the panel `")[2].partition("`")[0]
        self.asked.append(panel)
        if panel in self.failing:
            raise self.failing[panel]
        text = respond(parse(body)).text
        return ChatReply(text, (), ep.FINISH_REASON_STOP, ep.Usage(model_calls=1), rehearsal=True)

    async def describe(self, timeout_seconds: float) -> ModelDescription:
        return ModelDescription("m", rehearsal=False, max_model_len=32_768)


def config(**settings: Any) -> JudgeConfig:
    return JudgeConfig(**{"model_url": "http://unused", "model": "m", "use_logprobs": "off", **settings})


@asynccontextmanager
async def judge(
    served: ServedModel, rubrics: RubricLibrary = LIBRARY, **settings: Any
) -> AsyncIterator[judge_pb2_grpc.JudgeServiceAsyncStub]:
    servicer = Judge(config(**settings), served, rubrics)
    async with serving("127.0.0.1:0", [judge_service(servicer)]) as address, Channels() as channels:
        stub: Any = judge_pb2_grpc.JudgeServiceStub(channels.get(address))
        yield stub


@asynccontextmanager
async def rehearsed(
    model: str = "rehearsal-judge", faults: dict[str, float] | None = None, **settings: Any
) -> AsyncIterator[tuple[judge_pb2_grpc.JudgeServiceAsyncStub, RehearsalServer]]:
    async with (
        RehearsalServer() as server,
        OpenAIChatModel(base_url=server.url, model=model) as chat,
        judge(chat, model=model, **{"use_logprobs": "auto", **settings}) as stub,
    ):
        if faults:
            server.set_faults(faults)
        yield stub, server


def request(of: ep.Episode | None = None, **changes: Any) -> judge_pb2.JudgeEpisodeRequest:
    fields = {"scenario": scenario(), "episode": of or episode(), "rubric": RUBRIC, "goals": GOALS, "seed": 5}
    return judge_pb2.JudgeEpisodeRequest(**{**fields, **changes})


OTHER = ep.Episode(scenario_id="s-2", messages=episode().messages)


async def refusal(stub: judge_pb2_grpc.JudgeServiceAsyncStub, asked: Any) -> errors.PolicysweepError:
    call = stub.ExtractGoals if isinstance(asked, judge_pb2.ExtractGoalsRequest) else stub.JudgeEpisode
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call(asked, timeout=10)
    return status.error_from(raised.value, status.SERVICE, "here")


# ------------------------------------------------------------------ requests


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"rubric": judge_pb2.RubricRef(name="drip", version=1)},
            "unknown rubric drip@1; this judge serves drip-r@1",
        ),
        ({"rubric": judge_pb2.RubricRef()}, "unknown rubric @0; this judge serves drip-r@1"),
        (
            {"panels": ["tone"]},
            "unknown panel 'tone'; the panels of drip-r@1 are policy_resolution, dialogue",
        ),
        ({"episode": ep.Episode(scenario_id="s-1")}, "episode.messages must not be empty"),
        ({"episode": OTHER}, "the episode is of scenario 's-2', not of"),
        ({"goals": []}, "goals must not be empty for a panel that judges them: ask ExtractGoals"),
        ({"goals": [judge_pb2.Goal(text=" ")]}, r"goals[0].text must not be empty"),
    ],
)
async def test_a_request_that_cannot_be_judged_is_refused(changes: dict[str, Any], said: str) -> None:
    model = FakeModel()
    async with judge(model) as stub:
        error = await refusal(stub, request(**changes))
    assert isinstance(error, errors.InputError)
    assert said in str(error)
    assert not model.asked


@pytest.mark.parametrize("field", ["task", "policy"])
async def test_a_scenario_without_its_design_or_policy_is_refused(field: str) -> None:
    asked = request()
    asked.scenario.ClearField(field)  # type: ignore[arg-type]  # both are fields of a scenario
    async with judge(FakeModel()) as stub:
        error = await refusal(stub, asked)
        assert isinstance(error, errors.InputError)
        assert f"scenario.{field}" in str(error)


async def test_goals_need_the_design() -> None:
    async with judge(FakeModel()) as stub:
        error = await refusal(stub, judge_pb2.ExtractGoalsRequest())
    assert "ExtractGoals: scenario.task.detail must not be empty" in str(error)


async def test_panels_without_goals_need_none() -> None:
    async with judge(FakeModel()) as stub:
        response = await stub.JudgeEpisode(request(goals=[], panels=["dialogue"]), timeout=10)
    assert [verdict.panel for verdict in response.panels] == ["dialogue"]


# ------------------------------------------------------------------ verdicts and failures


async def test_all_panels_in_one_call() -> None:
    model = FakeModel()
    async with judge(model) as stub:
        response = await stub.JudgeEpisode(request(), timeout=10)
        (rubric,) = (await stub.ListRubrics(judge_pb2.ListRubricsRequest(), timeout=10)).rubrics
    assert not response.failures
    assert [(verdict.panel, verdict.panel_digest) for verdict in response.panels] == [
        (panel.key, panel.digest) for panel in rubric.panels
    ]
    assert {score.metric for verdict in response.panels for score in verdict.scores} == {
        metric.key for metric in rubric.metrics
    }
    assert len(rubric.metrics) == 25
    assert response.panels[0].HasField("outcome")


async def test_n_failures_lead_to_exactly_n_re_scores() -> None:
    """A driver that asks for the failed panels again makes exactly as many calls."""
    error = errors.ModelServerRejected("the model server answered 403: no")
    model = FakeModel({"dialogue": error, "turn_level": error})
    async with judge(model) as stub:
        first = await stub.JudgeEpisode(request(), timeout=10)
        assert [failure.panel for failure in first.failures] == ["dialogue", "turn_level"]
        assert {failure.reason for failure in first.failures} == {"MODEL_SERVER_REJECTED"}
        model.failing.clear()
        failed = [failure.panel for failure in first.failures]
        second = await stub.JudgeEpisode(request(panels=failed), timeout=10)
    assert {verdict.panel for verdict in (*first.panels, *second.panels)} == set(PANELS)
    assert Counter(model.asked) == Counter(PANELS) + Counter(failed)


async def test_a_fault_of_all_panels_is_a_status_with_its_class() -> None:
    busy = errors.ModelServerBusy("429", retry_after=3.0)
    async with judge(FakeModel(dict.fromkeys(PANELS, busy))) as stub:
        error = await refusal(stub, request())
    assert isinstance(error, errors.ModelServerBusy)
    assert error.retry_after == 3.0


async def test_a_call_without_a_deadline_is_refused() -> None:
    async with judge(FakeModel()) as stub:
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await stub.JudgeEpisode(request())
    assert "needs a deadline" in (raised.value.details() or "")


async def test_the_judge_tells_all_that_changes_its_behaviour() -> None:
    model = FakeModel()
    async with judge(model, samples=3, parse_attempts=4, temperature=0.7, max_tokens=900) as stub:
        info = (await stub.GetJudgeInfo(judge_pb2.GetJudgeInfoRequest(), timeout=10)).info
    assert (info.model, info.samples, info.parse_attempts, info.logprobs) == ("m", 3, 4, False)
    assert (info.sampling.temperature, info.sampling.max_tokens) == (0.7, 900)
    assert len(info.prompt_digest) == 64


async def test_a_limit_beyond_the_context_is_told_before_judging() -> None:
    async with judge(FakeModel(), max_tokens=40_000) as stub:
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await stub.GetJudgeInfo(judge_pb2.GetJudgeInfoRequest(), timeout=10)
    assert "lower --max-tokens" in (raised.value.details() or "")


async def test_a_rubric_file_more_is_served_without_code(tmp_path: Path) -> None:
    for path in RUBRICS.glob("*.toml"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    added = (RUBRICS / "drip-r-1.toml").read_text(encoding="utf-8").replace("version = 1", "version = 2", 1)
    added = added.replace('key = "verbosity"', 'key = "brevity"', 1)
    (tmp_path / "drip-r-2.toml").write_text(added, encoding="utf-8")
    async with judge(FakeModel(), RubricLibrary.read(tmp_path)) as stub:
        listed = await stub.ListRubrics(judge_pb2.ListRubricsRequest(), timeout=10)
        second = judge_pb2.RubricRef(name="drip-r", version=2)
        response = await stub.JudgeEpisode(request(rubric=second, panels=["dialogue"]), timeout=10)
    assert [rubric.ref.version for rubric in listed.rubrics] == [1, 2]
    one, two = ({panel.key: panel.digest for panel in rubric.panels} for rubric in listed.rubrics)
    assert {key for key in one if one[key] != two[key]} == {"dialogue"}
    assert "brevity" in {score.metric for score in response.panels[0].scores if score.value}


# ------------------------------------------------------------------ with the rehearsal server


async def test_the_rehearsal_judge_answers_everything_and_is_marked() -> None:
    async with rehearsed() as (stub, _):
        info = (await stub.GetJudgeInfo(judge_pb2.GetJudgeInfoRequest(), timeout=20)).info
        goals = await stub.ExtractGoals(judge_pb2.ExtractGoalsRequest(scenario=scenario()), timeout=20)
        response = await stub.JudgeEpisode(request(goals=goals.goals), timeout=20)
    assert info.rehearsal
    assert info.logprobs
    assert 2 <= len(goals.goals) <= 8
    assert goals.rehearsal
    assert len(response.panels) == 5
    for verdict in response.panels:
        assert verdict.rehearsal
        assert verdict.unusable_answers == 0
        assert verdict.usage.model_calls == 1
        assert verdict.usage.prompt_tokens > 1_000
        for score in verdict.scores:
            assert 1.0 <= score.value <= 5.0
            assert score.justification
            assert score.HasField("scale_mass") == (verdict.panel == "policy_resolution")
    cached = [verdict.usage.cached_prompt_tokens / verdict.usage.prompt_tokens for verdict in response.panels]
    assert sum(share > 0.8 for share in cached) >= 4


async def test_equal_episodes_get_equal_verdicts() -> None:
    async with rehearsed() as (stub, _):
        first, second = [await stub.JudgeEpisode(request(), timeout=20) for _ in range(2)]
    for one, other in zip(first.panels, second.panels, strict=True):
        one.ClearField("usage")
        other.ClearField("usage")
        assert one == other


async def test_the_lenient_judge_scores_higher() -> None:
    means = {}
    for model in ("rehearsal-judge", "rehearsal-judge-lenient"):
        async with rehearsed(model) as (stub, _):
            response = await stub.JudgeEpisode(request(), timeout=20)
        values = [score.value for verdict in response.panels for score in verdict.scores]
        means[model] = sum(values) / len(values)
    assert means["rehearsal-judge-lenient"] > means["rehearsal-judge"] + 0.2


async def test_the_rehearsal_judge_sees_the_real_text() -> None:
    async with rehearsed() as (stub, _):
        gone = await stub.JudgeEpisode(request(withdrawn()), timeout=20)
        resolved = await stub.JudgeEpisode(request(), timeout=20)
    assert gone.panels[0].outcome.outcome == ep.OUTCOME_USER_ABORT
    assert resolved.panels[0].outcome.outcome == ep.OUTCOME_RETURN_REFUND_PARTIAL_BANK
    turns = {score.message_index for score in resolved.panels[3].scores}
    assert turns == {0, 3, 4, 5}


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("score_off_scale", judge_pb2.ABSENT_REASON_OUT_OF_SCALE),
        ("score_nan", judge_pb2.ABSENT_REASON_OUT_OF_SCALE),
        ("prose", judge_pb2.ABSENT_REASON_UNPARSEABLE),
        ("empty_message", judge_pb2.ABSENT_REASON_UNPARSEABLE),
        ("length", judge_pb2.ABSENT_REASON_TRUNCATED),
        ("refusal", judge_pb2.ABSENT_REASON_REFUSED),
        ("content_filter", judge_pb2.ABSENT_REASON_REFUSED),
    ],
)
async def test_a_judge_told_to_misbehave_leaves_scores_absent_with_the_reason(
    fault: str, reason: int
) -> None:
    async with rehearsed(faults={fault: 1.0}, use_logprobs="off") as (stub, _):
        response = await stub.JudgeEpisode(request(), timeout=20)
    assert not response.failures
    for verdict in response.panels:
        asked = [score for score in verdict.scores if score.metric != "customer_goal_alignment"]
        assert {score.absent_reason for score in asked} == {reason}
        assert not any(score.HasField("value") for score in asked)
        assert verdict.unusable_answers == verdict.usage.model_calls == 2


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("http_500", "MODEL_SERVER_UNAVAILABLE"),
        ("http_429", "MODEL_SERVER_BUSY"),
        ("reset_mid_body", "MODEL_SERVER_UNAVAILABLE"),
        ("truncated_json", "MODEL_SERVER_GARBLED"),
    ],
)
async def test_a_server_that_fails_gives_no_verdict(fault: str, reason: str) -> None:
    async with rehearsed(faults={fault: 1.0}, use_logprobs="off") as (stub, _):
        error = await refusal(stub, request())
    assert error.reason == reason
    assert isinstance(error, errors.InfrastructureError)


async def test_a_prompt_beyond_the_context_is_a_result() -> None:
    async with rehearsed(use_logprobs="off") as (stub, _):
        long = request()
        long.scenario.policy.primary.text = "All sales are final. " * 8_000
        response = await stub.JudgeEpisode(long, timeout=20)
    reasons = {score.absent_reason for verdict in response.panels for score in verdict.scores}
    assert reasons == {judge_pb2.ABSENT_REASON_CONTEXT_OVERFLOW}
    assert {verdict.usage.model_calls for verdict in response.panels} == {0}


# ------------------------------------------------------------------ the process


async def test_the_process_serves_health_and_drains() -> None:
    async with RehearsalServer() as server:
        flags = ["--model-url", server.url, "--model", "rehearsal-judge", "--stop-on-stdin-eof"]
        process = await create_subprocess_exec(
            sys.executable, "-m", "services.judge", *flags, stdin=PIPE, stdout=PIPE, cwd=ROOT
        )
        try:
            assert process.stdout is not None
            address = json.loads(await process.stdout.readline())["address"]
            async with Channels() as channels:
                health: Any = health_pb2_grpc.HealthStub(channels.get(address))
                asked = health_pb2.HealthCheckRequest(service="policysweep.v1.JudgeService")
                assert (
                    await health.Check(asked, timeout=10)
                ).status == health_pb2.HealthCheckResponse.SERVING
                stub: Any = judge_pb2_grpc.JudgeServiceStub(channels.get(address))
                response = await stub.JudgeEpisode(request(panels=["dialogue"]), timeout=20)
                assert len(response.panels[0].scores) == 6
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


async def test_wrong_settings_end_the_process_with_one_line() -> None:
    flags = ["--model-url", "http://h:1", "--model", "m", "--rubrics", "/nowhere"]
    process = await create_subprocess_exec(
        sys.executable, "-m", "services.judge", *flags, stdout=PIPE, stderr=PIPE, cwd=ROOT
    )
    _, complaint = await process.communicate()
    assert process.returncode == 2
    assert complaint.decode() == "error: /nowhere: holds no rubric (*.toml)\n"
