"""Judges one episode: its panels at the same time, each by itself, from sheet to verdict."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from policysweep.errors import PolicysweepError
from policysweep.models.chat import ResponseSchema
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, scenario_pb2
from services.judge import prompt
from services.judge.answer import Absent, Answer, absent_answer, read_answer
from services.judge.asking import Interrogator, Question, Tally, failure
from services.judge.counting import count_answers, count_scores
from services.judge.rubric import Panel, Rubric
from services.judge.score_sheet import ScoreSheet, score_sheet
from services.judge.verdict import fill_verdict


@dataclass(frozen=True, slots=True)
class Case:
    """What is to be judged. `text` is the part of the prompt that its panels share; see `prompt`.

    `timeout` gives the seconds that the next model call may take.
    """

    rubric: Rubric
    scenario: scenario_pb2.Scenario
    episode: ep.Episode
    goals: Sequence[judge_pb2.Goal]
    seed: int
    text: str
    timeout: Callable[[], float]


async def judge_panels(
    interrogator: Interrogator, case: Case, panels: Sequence[Panel]
) -> judge_pb2.JudgeEpisodeResponse:
    """Verdicts and failures of `panels`, in their order. Raises the first panel's error when all failed."""
    logprobs = any(panel.weighted for panel in panels) and await interrogator.uses_logprobs(case.timeout())
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_attempt(interrogator, case, panel, logprobs)) for panel in panels]
    response = judge_pb2.JudgeEpisodeResponse()
    errors: list[PolicysweepError] = []
    for panel, task in zip(panels, tasks, strict=True):
        found = task.result()
        if isinstance(found, PolicysweepError):
            errors.append(found)
            response.failures.append(failure(panel.key, found))
        else:
            response.panels.append(found)
    if errors and not response.panels:
        raise errors[0]
    return response


async def _attempt(
    interrogator: Interrogator, case: Case, panel: Panel, logprobs: bool
) -> judge_pb2.PanelVerdict | PolicysweepError:
    """The verdict, or the error as a value: one panel's failure is not to end the others."""
    try:
        return await _judge(interrogator, case, panel, panel.weighted and logprobs)
    except PolicysweepError as error:
        return error


async def _judge(
    interrogator: Interrogator, case: Case, panel: Panel, weighted: bool
) -> judge_pb2.PanelVerdict:
    sheet = score_sheet(panel, case.episode, case.goals)
    tally = Tally()
    answers: Sequence[Answer] = ()
    if not sheet.empty:
        answers = await interrogator.ask_scores(_question(case, sheet), tally, weighted=weighted)
    verdict = judge_pb2.PanelVerdict(
        panel=panel.key,
        usage=tally.usage,
        panel_digest=case.rubric.panel_digest(panel, prompt.PROMPT_DIGEST),
        rehearsal=tally.rehearsal,
        unusable_answers=tally.unusable,
    )
    fill_verdict(verdict, sheet, answers)
    count_answers(panel.key, tally)
    count_scores(verdict)
    return verdict


def _question(case: Case, sheet: ScoreSheet) -> Question[Answer]:
    ask = prompt.panel_ask(sheet)

    def overflow(absent: Absent) -> Answer:
        return absent_answer(sheet, absent.reason, absent.detail)

    return Question(
        messages=lambda addition: prompt.panel_messages(
            case.rubric, case.scenario.policy, case.text, ask + addition
        ),
        again=prompt.again,
        schema=ResponseSchema("judge_panel", sheet.schema()),
        seed=case.seed,
        # The same for all panels of the episode: they share most of their prompt.
        session_id=f"{case.episode.episode_id}-judge",
        timeout=case.timeout,
        read=partial(read_answer, sheet=sheet),
        overflow=overflow,
    )
