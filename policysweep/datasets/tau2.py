"""tau2-bench tasks as contract messages: the originals, and the tasks that this project adds to them.

    originals   airline 50, retail 114: from the tau2-bench package (v0.2.0), see policysweep.domains.tau2
    sisters     airline 21, retail 9: three for each original that a policy gap makes unsolvable, its parent
    controls    airline 3, retail 1: solved by keeping to the written policy where a lesson does not hold

Sisters, controls and gaps are this project's data (tau2_data/). They are not those of PolicyBank
(arXiv 2604.15505), which were not published; they follow its description.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from policysweep.domains.tau2 import package
from policysweep.domains.tau2.domain import INITIAL_HASHES
from policysweep.errors import InputError
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import tau2_pb2

DATA = Path(__file__).with_name("tau2_data")
DOMAINS = tuple(INITIAL_HASHES)
"""The domains that have tasks."""

_SCENARIO = ("reason_for_call", "known_info", "unknown_info", "task_instructions")
_REQUESTORS = {"assistant": ep.ROLE_AGENT, "user": ep.ROLE_CUSTOMER}
_SISTER_TYPES = {
    "simplified_edit": tau2_pb2.TAU2_SISTER_TYPE_SIMPLIFIED_EDIT,
    "different_instance": tau2_pb2.TAU2_SISTER_TYPE_DIFFERENT_INSTANCE,
    "complex_variant": tau2_pb2.TAU2_SISTER_TYPE_COMPLEX_VARIANT,
}


@dataclass(frozen=True)
class Tau2Dataset:
    """The tasks of one domain.

    `tasks` are the originals in the package's order, then the sisters in the order of their parents, then
    the controls; ids are unique. `digest` is SHA-256, hex, over tasks and gaps.
    """

    domain: str
    tasks: tuple[tau2_pb2.Tau2Task, ...]
    gaps: tuple[tau2_pb2.Tau2Gap, ...]
    digest: str

    def of_kind(self, kind: tau2_pb2.Tau2TaskKind.ValueType) -> tuple[tau2_pb2.Tau2Task, ...]:
        """The originals, the sisters or the controls."""
        return tuple(task for task in self.tasks if task.kind == kind)

    def task(self, task_id: str) -> tau2_pb2.Tau2Task:
        """The task of that id. Raises InputError."""
        for task in self.tasks:
            if task.task_id == task_id:
                return task
        raise InputError(f"{self.domain} has no task {task_id!r}")

    def gap(self, gap_id: str) -> tau2_pb2.Tau2Gap:
        """The gap of that id. Raises InputError."""
        for gap in self.gaps:
            if gap.gap_id == gap_id:
                return gap
        raise InputError(f"{self.domain} has no policy gap {gap_id!r}")


@functools.cache
def load_tau2(domain: str) -> Tau2Dataset:
    """The tasks of a domain; shared by all callers, which must not change them.

    Raises InputError for a domain without tasks and when the tau2-bench package is missing.
    """
    if domain not in DOMAINS:
        raise InputError(f"there is no tau2-bench domain {domain!r}: use one of {', '.join(DOMAINS)}")
    notes = _read(DATA / "gap_actions.json")[domain]
    added = _read(DATA / "sister_tasks.json")
    gaps = tuple(_gap(domain, gap_id, added) for gap_id in _gaps_of(domain, added))
    parents = {parent: gap.gap_id for gap in gaps for parent in gap.parent_task_ids}
    sources = [
        *(_original(raw, domain, parents, notes) for raw in _package_tasks(domain)),
        *(_added(raw, notes) for raw in added["sister_tasks"] if raw["domain"] == domain),
        *(_added(raw, notes) for raw in added["controls"] if raw["domain"] == domain),
    ]
    return Tau2Dataset(domain, tuple(sources), gaps, _digest(sources, gaps))


def added_source(task_id: str, domain: str) -> Mapping[str, Any]:
    """A sister or control as its file has it, with preconditions and verification. Raises InputError."""
    added = _read(DATA / "sister_tasks.json")
    for raw in (*added["sister_tasks"], *added["controls"]):
        if (raw["id"], raw["domain"]) == (task_id, domain):
            return dict(raw)
    raise InputError(f"{domain} has no sister or control {task_id!r}")


def parent_gold_hash(task_id: str, domain: str) -> str:
    """The recorded hash of the database after a parent's gold actions, hex. Raises InputError."""
    for raw in _read(DATA / "sister_tasks.json")["parents"]:
        if (raw["id"], raw["domain"]) == (task_id, domain):
            return str(raw["gold_db_hash_v0.2.0"])
    raise InputError(f"{domain} task {task_id!r} is no parent")


def overreach(task: tau2_pb2.Tau2Task) -> list[tau2_pb2.Tau2Action]:
    """What somebody does to a control who applies its gap's clarification where it does not hold."""
    notes = _read(DATA / "gap_actions.json")[task.domain].get(task.task_id, {})
    return [
        _action({"action_id": f"{task.task_id}_overreach_{number}", **raw}, {})
        for number, raw in enumerate(notes.get("overreach", ()))
    ]


@functools.cache
def _read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = orjson.loads(path.read_bytes())
    return content


def _package_tasks(domain: str) -> list[dict[str, Any]]:
    paths = package.module(f"tau2.domains.{domain}.utils")
    tasks: list[dict[str, Any]] = orjson.loads(
        Path(getattr(paths, f"{domain.upper()}_TASK_SET_PATH")).read_bytes()
    )
    return tasks


def _gaps_of(domain: str, added: Mapping[str, Any]) -> list[str]:
    here = {raw["policy_gap"] for raw in added["sister_tasks"] if raw["domain"] == domain}
    return [gap_id for gap_id in added["gaps"] if gap_id in here]


def _gap(domain: str, gap_id: str, added: Mapping[str, Any]) -> tau2_pb2.Tau2Gap:
    raw = added["gaps"][gap_id]
    sister = next(each for each in added["sister_tasks"] if each["policy_gap"] == gap_id)
    return tau2_pb2.Tau2Gap(
        gap_id=gap_id,
        domain=domain,
        dimension=raw["dimension"],
        parent_task_ids=raw["parents"],
        policy_sentence=raw["policy_sentence"],
        also_relevant=raw["also_relevant"],
        clarification=raw["clarification_own_words"],
        lesson=sister["annotations"]["expected_learning"],
    )


def _original(
    raw: Mapping[str, Any], domain: str, parents: Mapping[str, str], notes: Mapping[str, Any]
) -> tau2_pb2.Tau2Task:
    task = tau2_task(raw, domain, notes.get(raw["id"], {}))
    task.kind = tau2_pb2.TAU2_TASK_KIND_ORIGINAL
    task.gap_id = parents.get(task.task_id, "")
    task.developer_explanation = notes.get(task.task_id, {}).get("developer_explanation", "")
    return task


def _added(raw: Mapping[str, Any], notes: Mapping[str, Any]) -> tau2_pb2.Tau2Task:
    task = tau2_task(raw, raw["domain"], notes.get(raw["id"], {}))
    task.gap_id = raw["policy_gap"]
    task.developer_explanation = raw["annotations"]["developer_explanation"]
    if raw["sister_task_type"] == "control":
        task.kind = tau2_pb2.TAU2_TASK_KIND_CONTROL
    else:
        task.kind = tau2_pb2.TAU2_TASK_KIND_SISTER
        task.parent_task_id = raw["parent_task_id"]
        task.sister_type = _SISTER_TYPES[raw["sister_task_type"]]
    return task


def tau2_task(raw: Mapping[str, Any], domain: str, notes: Mapping[str, Any]) -> tau2_pb2.Tau2Task:
    """A task in tau2-bench's JSON as a message, without what this project knows about it.

    `notes` names gold actions that the written policy does not allow. Raises InputError for a task with a
    state of its own or assertions in code: no task of airline and retail has any.
    """
    criteria = raw["evaluation_criteria"] or {}
    if raw.get("initial_state") is not None or criteria.get("env_assertions"):
        raise InputError(
            f"{domain} task {raw['id']!r} has an initial state or assertions in code, which are not supported"
        )
    return tau2_pb2.Tau2Task(
        task_id=raw["id"],
        domain=domain,
        user_scenario=_scenario(raw["user_scenario"]),
        criteria=_criteria(criteria, notes),
    )


def _scenario(raw: Mapping[str, Any]) -> tau2_pb2.Tau2UserScenario:
    told = raw["instructions"]
    fields = {"task_instructions": told} if isinstance(told, str) else {key: told[key] for key in _SCENARIO}
    return tau2_pb2.Tau2UserScenario(
        persona=raw.get("persona") or "", **{key: value or "" for key, value in fields.items()}
    )


def _criteria(raw: Mapping[str, Any], notes: Mapping[str, Any]) -> tau2_pb2.Tau2Criteria:
    criteria = tau2_pb2.Tau2Criteria(
        communicate_info=raw.get("communicate_info") or (),
        nl_assertions=raw.get("nl_assertions") or (),
        reward_basis=[
            tau2_pb2.Tau2Criterion.Value(f"TAU2_CRITERION_{name}") for name in raw.get("reward_basis") or ()
        ],
    )
    if (actions := raw.get("actions")) is not None:
        criteria.gold.CopyFrom(tau2_pb2.Tau2GoldActions(actions=[_action(each, notes) for each in actions]))
    return criteria


def _action(raw: Mapping[str, Any], notes: Mapping[str, Any]) -> tau2_pb2.Tau2Action:
    action = tau2_pb2.Tau2Action(
        action_id=raw["action_id"],
        requestor=_REQUESTORS[raw.get("requestor") or "assistant"],
        name=raw["name"],
        arguments_json=json.dumps(raw["arguments"]),
    )
    if (compared := raw.get("compare_args")) is not None:
        action.compared.CopyFrom(tau2_pb2.Tau2ComparedArguments(names=compared))
    if action.action_id in notes.get("gap_actions", ()):
        action.support = tau2_pb2.TAU2_SUPPORT_CLARIFICATION
    elif action.action_id in notes.get("unsupported_actions", ()):
        action.support = tau2_pb2.TAU2_SUPPORT_NONE
    return action


def _digest(tasks: list[tau2_pb2.Tau2Task], gaps: tuple[tau2_pb2.Tau2Gap, ...]) -> str:
    digest = hashlib.sha256()
    for message in (*tasks, *gaps):
        text = message.SerializeToString(deterministic=True)
        digest.update(len(text).to_bytes(4, "big") + text)
    return digest.hexdigest()
