"""Trajectories of gold actions, and ways to spoil them: what the reward is compared on."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from policysweep.domains.tau2 import Domain
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import tau2_pb2

STOP, TRANSFER, LIMIT = ep.END_REASON_USER_STOP, ep.END_REASON_USER_TRANSFER, ep.END_REASON_STEP_LIMIT
FOREIGN: Mapping[str, tuple[str, dict[str, Any]]] = {
    "airline": ("send_certificate", {"user_id": "sara_doe_496", "amount": 1}),
    "retail": ("cancel_pending_order", {"order_id": "#W0000000", "reason": "no longer needed"}),
}
"""A write that fails in each domain."""


@dataclass
class Plot:
    """What happens in a trajectory: calls, what the agent says at the end, and the end."""

    calls: list[tuple[str, dict[str, Any]]]
    closing: str
    end: ep.EndReason.ValueType = STOP
    beside: str = ""
    """Text in the messages that make the calls."""
    parallel: bool = False


def plot(task: tau2_pb2.Tau2Task) -> Plot:
    """The gold actions, one call a message, and all information at the end."""
    calls = [(action.name, json.loads(action.arguments_json)) for action in task.criteria.gold.actions]
    told = " and ".join(task.criteria.communicate_info)
    return Plot(calls, f"It is done: {told}." if told else "It is done.")


def episode(task: tau2_pb2.Tau2Task, domain: Domain, told: Plot) -> ep.Episode:
    """Play a plot with the domain's tools."""
    world = domain.world()
    made = [
        ep.ToolCall(id=f"c{number}", name=name, arguments_json=json.dumps(arguments))
        for number, (name, arguments) in enumerate(told.calls)
    ]
    messages = [
        ep.Message(role=ep.ROLE_AGENT, content="Hello!"),
        ep.Message(role=ep.ROLE_CUSTOMER, content="I need help."),
    ]
    for calls in [made] if told.parallel and made else [[each] for each in made]:
        messages.append(ep.Message(role=ep.ROLE_AGENT, content=told.beside, tool_calls=calls))
        for each in calls:
            outcome = world.call(each)
            messages.append(
                ep.Message(
                    role=ep.ROLE_TOOL,
                    content=outcome.content,
                    tool_call_id=each.id,
                    tool_name=each.name,
                    tool_status=outcome.status,
                )
            )
    messages.append(ep.Message(role=ep.ROLE_AGENT, content=told.closing))
    return ep.Episode(
        episode_id="e",
        scenario_id=f"{task.domain}-{task.task_id}",
        task_id=task.task_id,
        messages=messages,
        end=ep.EpisodeEnd(reason=told.end),
    )


# ------------------------------------------------------------------ ways to spoil them

Spoil = Callable[[Plot, Domain], None]


def _last_write(told: Plot, domain: Domain) -> int | None:
    found = [at for at, (name, _) in enumerate(told.calls) if name in domain.agent_box.writes]
    return found[-1] if found else None


def gold(told: Plot, domain: Domain) -> None:
    """Nothing is spoilt."""


def dropped_write(told: Plot, domain: Domain) -> None:
    if (at := _last_write(told, domain)) is not None:
        del told.calls[at]


def dropped_first(told: Plot, domain: Domain) -> None:
    del told.calls[:1]


def changed_argument(told: Plot, domain: Domain) -> None:
    """The first argument that can be is changed in the last write; many calls then fail."""
    if (at := _last_write(told, domain)) is None:
        return
    name, arguments = told.calls[at]
    arguments = copy.deepcopy(arguments)
    key = list(arguments)[-1]
    value = arguments[key]
    arguments[key] = value + 1 if isinstance(value, int) else f"{value}x" if isinstance(value, str) else []
    told.calls[at] = (name, arguments)


def extra_reads(told: Plot, domain: Domain) -> None:
    user = {"airline": "noah_muller_9847", "retail": "yusuf_rossi_9620"}[domain.name]
    told.calls.insert(0, ("get_user_details", {"user_id": user}))
    told.calls.append(("calculate", {"expression": "2 * (3 + 4)"}))
    told.calls.append(("get_user_details", {"user_id": "nobody"}))


def extra_write(told: Plot, domain: Domain) -> None:
    extra: Mapping[str, tuple[str, dict[str, Any]]] = {
        "airline": ("send_certificate", {"user_id": "sofia_kim_8433", "amount": 75}),
        "retail": (
            "modify_user_address",
            {
                "user_id": "yusuf_rossi_9620",
                **dict.fromkeys(("address1", "address2", "city", "state", "country", "zip"), "x"),
            },
        ),
    }
    told.calls.append(extra[domain.name])


def failing_write(told: Plot, domain: Domain) -> None:
    told.calls.append(FOREIGN[domain.name])


def repeated_writes(told: Plot, domain: Domain) -> None:
    told.calls += [call for call in told.calls if call[0] in domain.agent_box.writes]


def reversed_calls(told: Plot, domain: Domain) -> None:
    told.calls.reverse()


def silent(told: Plot, domain: Domain) -> None:
    told.closing = "It is done."


def misspelt(told: Plot, domain: Domain) -> None:
    """Every number is another one, and it contains the right one here and there."""
    told.closing = told.closing.replace("1", "17").replace("0", "08")


def written_out(told: Plot, domain: Domain) -> None:
    """Upper case, thousands separators where a number has four digits before its point."""
    words = [
        f"${float(word.rstrip('.')):,.2f}" if word.rstrip(".").replace(".", "").isdigit() else word.upper()
        for word in told.closing.split()
    ]
    told.closing = " ".join(words)


def told_beside_calls(told: Plot, domain: Domain) -> None:
    told.beside, told.closing = told.closing, "It is done."


def parallel(told: Plot, domain: Domain) -> None:
    told.parallel = True


def stopped_by_a_limit(told: Plot, domain: Domain) -> None:
    told.end = LIMIT


def transferred(told: Plot, domain: Domain) -> None:
    told.end = TRANSFER


def only_names(told: Plot, domain: Domain) -> None:
    """Calls without arguments: all fail, and by tools' names alone they equal the gold actions."""
    told.calls = [(name, {}) for name, _ in told.calls]


SPOILED: Sequence[Spoil] = (
    dropped_write,
    changed_argument,
    extra_reads,
    extra_write,
    silent,
    misspelt,
    dropped_first,
    failing_write,
    repeated_writes,
    reversed_calls,
    written_out,
    told_beside_calls,
    parallel,
    stopped_by_a_limit,
    transferred,
    only_names,
)


@dataclass
class Spoiled:
    """A task with a spoilt trajectory."""

    task: tau2_pb2.Tau2Task
    how: Spoil
    episode: ep.Episode = field(repr=False)


def spoiled(task: tau2_pb2.Tau2Task, domain: Domain, how: Spoil) -> Spoiled:
    """Tell the plot of a task, spoil it, play it."""
    told = plot(task)
    how(told, domain)
    return Spoiled(task, how, episode(task, domain, told))
