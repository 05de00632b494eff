"""Checks the tasks that this project adds to tau2-bench against the real databases and tools.

Of each sister and control: every fact that it rests on is in the database (its preconditions), its gold
actions work and lead to the recorded state, and a policy read literally leads to the other recorded state. Of
each parent: its gold actions work and lead to the recorded state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from policysweep.datasets.tau2 import added_source, load_tau2, overreach, parent_gold_hash
from policysweep.domains.tau2 import INITIAL_HASHES, Domain, load_domain
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import tau2_pb2

Data: TypeAlias = Mapping[str, Any]
_MISSING = object()


def problems(domain_name: str) -> list[str]:
    """All that is wrong with the parents, sisters and controls of a domain, one sentence each.

    Raises InputError for a domain without tasks and when the tau2-bench package is missing.
    """
    domain, dataset = load_domain(domain_name), load_tau2(domain_name)
    data = domain.agent_box.data()
    found: list[str] = []
    for task in dataset.tasks:
        if task.kind != tau2_pb2.TAU2_TASK_KIND_ORIGINAL:
            source = added_source(task.task_id, domain_name)
            found += [f"{task.task_id}: {what}" for what in added_problems(domain, data, task, source)]
        elif task.gap_id:
            found += [f"{task.task_id}: {what}" for what in _parent_problems(domain, task)]
    return found


def added_problems(domain: Domain, data: Data, task: tau2_pb2.Tau2Task, source: Data) -> Iterator[str]:
    """What is wrong with a sister or control. `data` is the domain's database, `source` the file's entry."""
    for precondition in source["preconditions"]:
        if problem := _precondition_problem(data, precondition):
            yield problem
    recorded = source["verification"]
    if recorded["initial_db_hash"] != INITIAL_HASHES[domain.name]:
        yield f"was verified on another database, {recorded['initial_db_hash'][:16]}..."
    yield from _gold_problems(domain, task, recorded["gold_db_hash"])
    if task.kind == tau2_pb2.TAU2_TASK_KIND_CONTROL:
        reached, errors = replay(domain, overreach(task))
        if errors or reached == recorded["gold_db_hash"]:
            yield f"its overreach changes nothing: {errors}"
    if "literal_policy_db_hash" in recorded:
        reached, _ = replay(domain, [action for action in _actions(task) if not action.support])
        if reached != recorded["literal_policy_db_hash"]:
            yield f"a literal reading of the policy leads to {reached[:16]}..., not to the recorded state"


def _parent_problems(domain: Domain, task: tau2_pb2.Tau2Task) -> Iterator[str]:
    yield from _gold_problems(domain, task, parent_gold_hash(task.task_id, domain.name))
    if not any(action.support == tau2_pb2.TAU2_SUPPORT_CLARIFICATION for action in _actions(task)):
        yield "is a parent without an action that its gap forbids"


def _gold_problems(domain: Domain, task: tau2_pb2.Tau2Task, recorded: str) -> Iterator[str]:
    reached, errors = replay(domain, _actions(task))
    yield from errors
    if reached != recorded:
        yield f"its gold actions lead to {reached[:16]}..., not to the recorded {recorded[:16]}..."


def _actions(task: tau2_pb2.Tau2Task) -> list[tau2_pb2.Tau2Action]:
    return list(task.criteria.gold.actions)


def replay(domain: Domain, actions: list[tau2_pb2.Tau2Action]) -> tuple[str, list[str]]:
    """The hash of the agent's database after `actions`, and the errors that they met."""
    world, errors = domain.world(), []
    for action in actions:
        call = ep.ToolCall(id=action.action_id, name=action.name, arguments_json=action.arguments_json)
        outcome = world.call(call, action.requestor)
        if outcome.status != ep.TOOL_STATUS_OK:
            errors.append(f"gold action {action.action_id} ({action.name}) answers {outcome.content}")
    return world.hashes()[0], errors


# ------------------------------------------------------------------ preconditions


def _precondition_problem(data: Data, precondition: Data) -> str:
    path, wanted = precondition["path"], precondition["value"]
    holds = _OPERATIONS.get(precondition["op"])
    if holds is None:
        return f"there is no precondition {precondition['op']!r}"
    if holds(data, path, wanted):
        return ""
    return f"{'/'.join(map(str, path))}: {precondition['op']} {wanted!r} does not hold"


def _at(data: Data, path: list[Any]) -> Any:
    """The value at a path; _MISSING when there is none."""
    value: Any = data
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return _MISSING
        value = value[key]
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _comparable(left: Any, right: Any) -> bool:
    return (_is_number(left) and _is_number(right)) or (isinstance(left, str) and isinstance(right, str))


def _ordered(compare: Callable[[Any, Any], bool]) -> Operation:
    def holds(data: Data, path: list[Any], wanted: Any) -> bool:
        value = _at(data, path)
        return _comparable(value, wanted) and compare(value, wanted)

    return holds


def _contains(data: Data, path: list[Any], wanted: Any) -> bool:
    value = _at(data, path)
    return isinstance(value, list) and wanted in value


def _has_length(data: Data, path: list[Any], wanted: int) -> bool:
    value = _at(data, path)
    return isinstance(value, list | dict) and len(value) == wanted


def _has_flight(data: Data, path: list[Any], wanted: list[str]) -> bool:
    return wanted in [[leg["flight_number"], leg["date"]] for leg in _rows(data, path)]


def _has_item(data: Data, path: list[Any], wanted: list[Any]) -> bool:
    """An item with this id, product and price."""
    return wanted in [[item["item_id"], item["product_id"], item["price"]] for item in _rows(data, path)]


def _sums_to(data: Data, path: list[Any], wanted: float) -> bool:
    return bool(round(sum(row["amount"] for row in _rows(data, path)), 2) == wanted)


def _all_segments(data: Data, path: list[Any], wanted: str) -> bool:
    """Every flight of a reservation has this status on its day."""
    legs = _rows(data, path)
    found = [_at(data, ["flights", leg["flight_number"], "dates", leg["date"], "status"]) for leg in legs]
    return bool(found) and set(found) == {wanted}


def _rows(data: Data, path: list[Any]) -> list[Any]:
    value = _at(data, path)
    return value if isinstance(value, list) else []


def _direct_flights(data: Data, path: list[Any], latest_departure: str) -> list[str]:
    """Numbers of the flights of `path` (origin, destination, date, cabin, seats) that leave before then."""
    origin, destination, date, cabin, seats = path
    return sorted(
        number
        for number, flight in data["flights"].items()
        if (flight["origin"], flight["destination"]) == (origin, destination)
        and flight["scheduled_departure_time_est"] < latest_departure
        and (day := flight["dates"].get(date, {})).get("status") == "available"
        and day["available_seats"][cabin] >= seats
    )


Operation: TypeAlias = Callable[[Data, list[Any], Any], bool]

_OPERATIONS: Mapping[str, Operation] = {
    "eq": lambda data, path, wanted: _at(data, path) == wanted,
    "ne": lambda data, path, wanted: _at(data, path) not in (wanted, _MISSING),
    "lt": _ordered(lambda value, wanted: value < wanted),
    "ge": _ordered(lambda value, wanted: value >= wanted),
    "len": _has_length,
    "contains": _contains,
    "absent_or_null": lambda data, path, wanted: _at(data, path) in (None, _MISSING),
    "missing_key": lambda data, path, wanted: _at(data, path) is _MISSING,
    "has_flight": _has_flight,
    "has_item": _has_item,
    "sum_amount": _sums_to,
    "all_segments_status": _all_segments,
    "direct_flights": lambda data, path, wanted: _direct_flights(data, path, "24") == sorted(wanted),
    "direct_before_noon": lambda data, path, wanted: _direct_flights(data, path, "12") == sorted(wanted),
    "no_email": lambda data, path, wanted: all(
        user["email"].lower() != wanted for user in _at(data, path).values()
    ),
}
