"""A small case, a judge model that plays a script, and helpers to run the judge on them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import orjson

from policysweep.errors import PolicysweepError
from policysweep.models.chat import ChatReply, ChatRequest, TokenLogprob
from policysweep.v1 import agent_pb2, judge_pb2, scenario_pb2
from policysweep.v1 import episode_pb2 as ep
from services.judge import prompt
from services.judge.asking import Interrogator
from services.judge.panels import Case, judge_panels
from services.judge.rubric import Panel, Rubric
from services.judge.rubric_files import RubricLibrary, read_rubric
from services.judge.score_sheet import ScoreSheet, score_sheet

RUBRICS = Path(__file__).parents[3] / "services/judge/rubrics"
DRIP_R = read_rubric(RUBRICS / "drip-r-1.toml")
LIBRARY = RubricLibrary([DRIP_R])
GOALS = [judge_pb2.Goal(text="Money back", explicit=True), judge_pb2.Goal(text="No fee", explicit=False)]

SMALL = """
name = "small"
version = 2
discipline = "Be sober."

[agent_personas]
DIRECT = "short"
FAIR = "even"
AGREEABLE = "warm"
HELPFUL = "thorough"
VERY_HELPFUL = "customer first"

[[dimensions]]
key = "craft"
title = "Craft"

[[panels]]
key = "talk"
title = "Talk"
instruction = "Look at the talk."

[[panels.metrics]]
key = "clarity"
title = "Clarity"
dimension = "craft"
level = "conversation"
question = "Is it clear?"
anchors = ["a", "b", "c", "d", "e"]

[[panels]]
key = "end"
title = "End"
instruction = "Look at the end."
outcome = true

[[panels.metrics]]
key = "manner"
title = "Manner"
dimension = "craft"
level = "conversation"
requires = ["agent_persona"]
question = "Does the manner fit the persona?"
anchors = ["a", "b", "c", "d", "e"]
"""
"""A rubric file with two panels."""


def panel(key: str, rubric: Rubric = DRIP_R) -> Panel:
    return next(each for each in rubric.panels if each.key == key)


def scenario(**changes: Any) -> scenario_pb2.Scenario:
    found = scenario_pb2.Scenario(
        scenario_id="s-1",
        task_id="task_1",
        policy=scenario_pb2.Policy(
            primary=scenario_pb2.PolicyDocument(text="Items may come back within 30 days."),
            related=[scenario_pb2.PolicyDocument(text="Sellers have rules of their own.")],
        ),
        persona=scenario_pb2.Persona(name="Ada Lind", language_style="Frozen", personality={"Openness": 2}),
        task=scenario_pb2.Task(
            detail="The kettle was used once.", reason="Too loud.", related_policy_issues=["What is used?"]
        ),
        case_brief="Customer asks to return a kettle.",
        customer_brief=scenario_pb2.CustomerBrief(behavior="Insists twice."),
    )
    found.MergeFrom(scenario_pb2.Scenario(**changes))
    return found


def episode(**changes: Any) -> ep.Episode:
    """A resolved episode: turns 0 and 4 are the customer's, 3 and 5 the agent's, 1 calls a tool."""
    found = ep.Episode(
        episode_id="e-1",
        scenario_id="s-1",
        agent_persona=ep.AGENT_PERSONA_FAIR,
        messages=[
            ep.Message(role=ep.ROLE_CUSTOMER, content="My kettle is too loud."),
            ep.Message(
                role=ep.ROLE_AGENT,
                tool_calls=[ep.ToolCall(id="1", name="get_order_details", arguments_json='{"order_id":"O"}')],
            ),
            ep.Message(
                role=ep.ROLE_TOOL,
                tool_call_id="1",
                tool_name="get_order_details",
                content='{"status":"ok"}',
                tool_status=ep.TOOL_STATUS_OK,
            ),
            ep.Message(role=ep.ROLE_AGENT, content="Was it used?"),
            ep.Message(role=ep.ROLE_CUSTOMER, content="Once."),
            ep.Message(role=ep.ROLE_AGENT, content="Then I take off 10%."),
        ],
        resolution=ep.Resolution(outcome=ep.OUTCOME_RETURN_REFUND_PARTIAL_BANK, description="Used once."),
        outcome=ep.OUTCOME_RETURN_REFUND_PARTIAL_BANK,
        end=ep.EpisodeEnd(reason=ep.END_REASON_RESOLVED),
    )
    found.MergeFrom(ep.Episode(**changes))
    return found


def unresolved() -> ep.Episode:
    """The customer withdrew after the agent's first message; no tool was called and no persona assigned."""
    return ep.Episode(
        episode_id="e-2",
        scenario_id="s-1",
        messages=[
            ep.Message(role=ep.ROLE_CUSTOMER, content="My kettle is too loud."),
            ep.Message(role=ep.ROLE_AGENT, content="Kettles are loud."),
        ],
        outcome=ep.OUTCOME_USER_ABORT,
        end=ep.EpisodeEnd(reason=ep.END_REASON_CUSTOMER_WITHDREW, detail="no_help"),
    )


def sheet(key: str, of: ep.Episode | None = None, rubric: Rubric = DRIP_R) -> ScoreSheet:
    return score_sheet(panel(key, rubric), episode() if of is None else of, GOALS)


def good_answer(schema: Any, score: int = 4) -> Any:
    """A value that fits a schema without lists."""
    if "enum" in schema:
        return score if schema["type"] == "integer" else schema["enum"][0]
    if schema["type"] == "object":
        return {name: good_answer(part, score) for name, part in schema["properties"].items()}
    return {"string": "because of [3]", "boolean": True, "integer": 0}[schema["type"]]


def answer_to(of: ScoreSheet, score: int = 4) -> dict[str, Any]:
    """A complete answer to a sheet."""
    found: dict[str, Any] = {}
    for name, part in of.schema()["properties"].items():
        if part["type"] != "array":
            found[name] = good_answer(part, score)
            continue
        entry = good_answer(part["items"], score)
        if name == "goals":
            found[name] = [{**entry, "goal": number} for number in range(1, len(of.goals) + 1)]
        else:
            side = ep.ROLE_AGENT if name == "agent_turns" else ep.ROLE_CUSTOMER
            found[name] = [{**entry, "turn": turn} for turn in of.turns[side]]
    return found


def reply(content: Any, **changes: Any) -> ChatReply:
    """A reply with `content` as its text; anything but text is written as JSON."""
    fields: dict[str, Any] = {
        "text": content if isinstance(content, str) else orjson.dumps(content).decode(),
        "tool_calls": (),
        "finish_reason": ep.FINISH_REASON_STOP,
        "usage": ep.Usage(prompt_tokens=100, completion_tokens=20, latency_seconds=0.5, model_calls=1),
        "rehearsal": False,
    }
    return ChatReply(**{**fields, **changes})


Line = ChatReply | PolicysweepError | Callable[[ChatRequest], ChatReply]


class ScriptedModel:
    """Plays replies, errors and functions in turn; the last one for ever. Keeps the requests."""

    def __init__(self, *script: Line) -> None:
        self._script = list(script)
        self.requests: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        line = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        await asyncio.sleep(0)
        if isinstance(line, PolicysweepError):
            raise line
        return line if isinstance(line, ChatReply) else line(request)


def panel_of(request: ChatRequest) -> str:
    """The panel that a request asks for."""
    return str(request.messages[-1]["content"]).rpartition("Judge the panel `")[2].partition("`")[0]


def answering(request: ChatRequest) -> ChatReply:
    """A good answer to any panel of DRIP_R about `episode()`."""
    return reply(answer_to(sheet(panel_of(request))))


def interrogator(model: ScriptedModel, **settings: Any) -> Interrogator:
    defaults: dict[str, Any] = {
        "use_logprobs": "off",
        "top_logprobs": 5,
        "samples": 1,
        "parse_attempts": 2,
    }
    sampling = agent_pb2.Sampling(max_tokens=500)
    return Interrogator(model, sampling, **{**defaults, **settings})


def case(of: ep.Episode | None = None, rubric: Rubric = DRIP_R, **changes: Any) -> Case:
    of = episode() if of is None else of
    fields: dict[str, Any] = {
        "rubric": rubric,
        "scenario": scenario(),
        "episode": of,
        "goals": GOALS,
        "seed": 11,
        "text": prompt.episode_text(rubric, scenario(), of),
        "timeout": lambda: 9.0,
    }
    return Case(**{**fields, **changes})


async def judged(
    model: ScriptedModel, *panels: str, of: ep.Episode | None = None, **settings: Any
) -> judge_pb2.JudgeEpisodeResponse:
    chosen = LIBRARY.panels(DRIP_R, panels)
    return await judge_panels(interrogator(model, **settings), case(of), chosen)


def scores_by(verdict: judge_pb2.PanelVerdict) -> dict[tuple[str, int, int | None], judge_pb2.Score]:
    """Scores by metric, subject and message index."""
    return {
        (
            score.metric,
            score.subject,
            score.message_index if score.HasField("message_index") else None,
        ): score
        for score in verdict.scores
    }


def tokens(*texts: str, at: dict[int, dict[str, float]] | None = None) -> Sequence[TokenLogprob]:
    """Tokens with certainty, but for those at the positions of `at`, whose alternatives are given."""
    alternatives = at or {}
    return [
        TokenLogprob(token=text, alternatives=alternatives.get(index, {text: 0.0}))
        for index, text in enumerate(texts)
    ]


def joined(entries: Iterable[TokenLogprob]) -> str:
    return "".join(entry.token for entry in entries)
