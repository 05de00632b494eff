"""The curator's prompts, laid out for the prefix cache of the model server; pure but for reading templates.

first bank   system   rules, policy, schema, tools      equal for all calls of a bank
             user     which tool                        the last few words
feedback     system   rules, policy                     equal for all feedback of a domain
             user     the bank, oldest entries first    changes by one entry a task
                      task, trajectory, feedback
workflows,   system   rules                             equal for all calls
reasoning    user     task, trajectory, feedback
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from string import Template

from policysweep.bank_text import entry_text
from policysweep.models.chat import Json
from policysweep.quoting import quoted
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import scenario_pb2
from services.policybank import transcript

_PROMPTS = Path(__file__).with_name("prompts")
_NAMES = (
    "first_bank",
    "first_bank_tool",
    "first_bank_general",
    "feedback",
    "feedback_case",
    "task",
    "workflows",
    "reasoning_success",
    "reasoning_failure",
)
_TEXTS = {name: (_PROMPTS / f"{name}.md").read_text(encoding="utf-8").strip() for name in _NAMES}
_AGAIN = "\n\nAn earlier answer could not be used: {}. Answer anew, with the JSON object alone."
_EXPLAINED = "The developer's explanation:"
_UNEXPLAINED = "No explanation was given."
_EMPTY_BANK = "The bank is empty."
_NOTHING = "None was given."

PROMPT_DIGEST = hashlib.sha256(
    "\0".join([*_TEXTS.values(), _AGAIN, _EXPLAINED, _UNEXPLAINED, _EMPTY_BANK, _NOTHING]).encode()
    + f"\0{transcript.MESSAGE_CHARACTERS} {transcript.RESULT_CHARACTERS}".encode()
).hexdigest()
"""SHA-256 over the templates, hex."""


def again(problem: str) -> str:
    """What is added when an answer could not be used. Greedy sampling would repeat it word for word."""
    return _AGAIN.format(problem)


def first_bank(request: pb.CreateBankRequest, tool: str) -> list[Json]:
    """Asks for the capabilities of one tool, or of none for ""."""
    system = Template(_TEXTS["first_bank"]).substitute(
        policy=policy_text(request.policy),
        schema=quoted(request.database_schema) if request.database_schema else _NOTHING,
        tools="\n".join(
            quoted(f"{each.name}: {each.description}\n{each.parameters_json}") for each in request.tools
        )
        or _NOTHING,
    )
    ask = _TEXTS["first_bank_general"]
    if tool:
        ask = Template(_TEXTS["first_bank_tool"]).substitute(tool=tool)
    return _messages(system, ask)


def feedback(
    policy: scenario_pb2.Policy, entries: Iterable[pb.Entry], request: pb.RecordFeedbackRequest
) -> list[Json]:
    """Asks for the one change that a feedback leads to."""
    oldest_first = sorted(entries, key=lambda entry: (entry.revision, entry.capability_id))
    case = Template(_TEXTS["feedback_case"]).substitute(
        entries="\n".join(map(_listed, oldest_first)) or _EMPTY_BANK,
        task=_task(request),
        reward=f"{request.reward:g}",
        explanation=_explanation(request),
    )
    return _messages(Template(_TEXTS["feedback"]).substitute(policy=policy_text(policy)), case)


def workflows(request: pb.RecordFeedbackRequest) -> list[Json]:
    """Asks for the workflows of a task that went well."""
    return _messages(_TEXTS["workflows"], _task(request))


def reasoning(request: pb.RecordFeedbackRequest, *, success: bool) -> list[Json]:
    """Asks for memory items from a task."""
    if success:
        return _messages(_TEXTS["reasoning_success"], _task(request))
    case = f"{_task(request)}\n\n# The feedback\n\n{_explanation(request)}"
    return _messages(_TEXTS["reasoning_failure"], case)


def policy_text(policy: scenario_pb2.Policy) -> str:
    """A policy with the policies that it refers to, quoted."""
    documents: Sequence[scenario_pb2.PolicyDocument] = [policy.primary, *policy.related]
    return "\n\n".join(quoted(document.text) for document in documents if document.text) or _NOTHING


def _task(request: pb.RecordFeedbackRequest) -> str:
    return Template(_TEXTS["task"]).substitute(
        query=quoted(request.task_query), transcript=transcript.transcript(request.episode)
    )


def _explanation(request: pb.RecordFeedbackRequest) -> str:
    return f"{_EXPLAINED}\n{quoted(request.explanation)}" if request.explanation else _UNEXPLAINED


def _listed(entry: pb.Entry) -> str:
    return f"Entry:\n{quoted(entry.capability_id)}\n{quoted(entry_text(entry))}"


def _messages(system: str, user: str) -> list[Json]:
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]
