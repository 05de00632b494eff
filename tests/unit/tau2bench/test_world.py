"""Calls of a domain's tools, and that one episode's changes are nobody else's."""

from __future__ import annotations

import hashlib
import json

import pytest

from policysweep.datasets.tau2 import DOMAINS, load_tau2
from policysweep.domains.returns.results import ErrorKind
from policysweep.domains.tau2 import INITIAL_HASHES, Domain, load_domain
from policysweep.domains.tau2.package import module
from policysweep.errors import InputError
from policysweep.v1 import episode_pb2 as ep

from .support import act, call, needs_tau2

pytestmark = needs_tau2

CERTIFICATE = {"user_id": "noah_muller_9847", "amount": 50}


@pytest.mark.parametrize("name", DOMAINS)
def test_the_initial_state_is_the_published_one(name: str) -> None:
    assert load_domain(name).world().hashes() == (INITIAL_HASHES[name], "")


@pytest.mark.parametrize("name", DOMAINS)
def test_every_answer_and_the_final_state_are_those_of_the_package(name: str) -> None:
    """All gold actions of a domain, one after the other, on the package's environment and on a world."""
    theirs = module(f"tau2.domains.{name}.environment").get_environment()
    tool_call = module("tau2.data_model.message").ToolCall
    world = load_domain(name).world()
    compared = 0
    for task in load_tau2(name).tasks:
        for action in task.criteria.gold.actions:
            arguments = json.loads(action.arguments_json)
            expected = theirs.get_response(tool_call(id="1", name=action.name, arguments=arguments))
            got = world.call(call(action.name, action.arguments_json))
            assert got.content == expected.content
            assert (got.status == ep.TOOL_STATUS_ERROR) == expected.error
            compared += 1
    assert compared > 200
    assert world.hashes()[0] == theirs.get_db_hash() != INITIAL_HASHES[name]


@pytest.mark.parametrize("name", DOMAINS)
def test_no_world_reaches_the_original(name: str) -> None:
    domain = load_domain(name)
    for task in load_tau2(name).tasks:
        world = domain.world()
        for action in task.criteria.gold.actions:
            act(world, action)
    text = json.dumps(domain.agent_box.data(), sort_keys=True, default=str)
    assert hashlib.sha256(text.encode()).hexdigest() == INITIAL_HASHES[name]


def test_worlds_do_not_see_one_another() -> None:
    domain = load_domain("airline")
    changed, other = domain.world(), domain.world()
    assert changed.call(call("send_certificate", CERTIFICATE)).status == ep.TOOL_STATUS_OK
    looked_up = call("get_user_details", {"user_id": "noah_muller_9847"})
    assert "certificate_3221322" in changed.call(looked_up).content
    assert "certificate_3221322" not in other.call(looked_up).content
    assert other.hashes()[0] == INITIAL_HASHES["airline"]


def test_a_booking_adds_a_record_and_its_hash_is_that_of_the_package() -> None:
    name = "airline"
    task = next(
        task
        for task in load_tau2(name).tasks
        if any(action.name == "book_reservation" for action in task.criteria.gold.actions)
    )
    theirs = module(f"tau2.domains.{name}.environment").get_environment()
    world = load_domain(name).world()
    for action in task.criteria.gold.actions:
        theirs.tools.use_tool(action.name, **json.loads(action.arguments_json))
        act(world, action)
    assert "HATHAT" in theirs.tools.db.reservations
    assert world.hashes()[0] == theirs.get_db_hash()


@pytest.mark.parametrize("amount", [50, 50.0, "50", "50.0"])
def test_one_amount_in_every_spelling_leads_to_one_state(amount: object) -> None:
    world = load_domain("airline").world()
    outcome = world.call(call("send_certificate", {"user_id": "noah_muller_9847", "amount": amount}))
    assert outcome.content.endswith("with amount 50.")
    assert world.hashes()[0].startswith("d9e9d254b5cacd1e")


def test_one_number_of_bags_in_every_spelling_leads_to_one_state() -> None:
    """The package stores these numbers without looking at their type, and hashes them as they are spelt."""
    states = set()
    for bags in (1, 1.0, "1"):
        world = load_domain("airline").world()
        arguments = {
            "reservation_id": "VA5SGQ",
            "total_baggages": bags,
            "nonfree_baggages": 0,
            "payment_id": "credit_card_8003957",
        }
        assert world.call(call("update_reservation_baggages", arguments)).status == ep.TOOL_STATUS_OK
        states.add(world.hashes()[0])
    assert len(states) == 1
    assert states != {INITIAL_HASHES["airline"]}


@pytest.mark.parametrize(
    ("asked", "kind", "content"),
    [
        (call("get_user_details", {"user_id": "nobody"}), ErrorKind.REFUSED, "Error: User nobody not found"),
        (call("get_user_details", {}), ErrorKind.MALFORMED, "missing 1 required positional argument"),
        (call("get_user_details", {"user_id": "a", "b": 1}), ErrorKind.MALFORMED, "unexpected keyword"),
        (call("get_user_details", {"user_id": "a", "requestor": "user"}), ErrorKind.MALFORMED, "multiple"),
        (call("get_user_details", "{"), ErrorKind.MALFORMED, "Error: The arguments are not valid JSON"),
        (call("get_user_details", "[]"), ErrorKind.MALFORMED, "Error: The arguments are not a JSON object."),
        (call("drop_table", {}), ErrorKind.UNKNOWN_TOOL, "Error: Tool 'drop_table' not found."),
        (call("_get_user", {"user_id": "a"}), ErrorKind.UNKNOWN_TOOL, "Error: Tool '_get_user' not found."),
    ],
)
def test_what_cannot_be_done_is_an_answer(asked: ep.ToolCall, kind: ErrorKind, content: str) -> None:
    world = load_domain("airline").world()
    outcome = world.call(asked)
    assert (outcome.status, outcome.error_kind) == (ep.TOOL_STATUS_ERROR, kind)
    assert outcome.content.startswith("Error: ")
    assert content in outcome.content
    assert world.hashes()[0] == INITIAL_HASHES["airline"]


def test_a_value_of_another_type_than_declared_is_stored_and_hashed() -> None:
    world = load_domain("airline").world()
    arguments = {
        "reservation_id": "VA5SGQ",
        "total_baggages": "as many as fit",
        "nonfree_baggages": 0,
        "payment_id": "credit_card_8003957",
    }
    assert "as many as fit" in world.call(call("update_reservation_baggages", arguments)).content
    assert world.hashes()[0] != INITIAL_HASHES["airline"]


@pytest.mark.parametrize(
    ("expression", "content"),
    [
        ("2 + 2", "4.0"),
        ("1.05 ** 2 * 100", "110.25"),
        ("2 ** -1", "0.5"),
        ("9**9**9**9", "too large"),
        ("9**(9*9*9*9*9*9)", "too large"),
        ("9**999999999", "too large"),
        ("+".join(["1"] * 400), "too large"),
        ("(" * 300 + "1" + ")" * 300, "too large"),
        ("9" * 380 + "**99", "Error: "),
        ("1/0", "Error: division by zero"),
        ("__import__('os')", "Error: Invalid characters"),
    ],
)
def test_the_calculator_ends(expression: str, content: str) -> None:
    """9**9**9**9 would never."""
    for name in DOMAINS:
        asked = call("calculate", {"expression": expression})
        assert content in load_domain(name).world().call(asked).content


def test_customer_tools_act_on_the_customers_own_database() -> None:
    """Airline and retail have none; the package's telecom domain has, and any domain could."""
    telecom = Domain(module("tau2.domains.telecom.environment").get_environment())
    assert telecom.user_box is not None
    assert "toggle_airplane_mode" in {tool.name for tool in telecom.user_box.definitions}
    world, untouched = telecom.world(), telecom.world()
    outcome = world.call(call("toggle_airplane_mode"), ep.ROLE_CUSTOMER)
    assert outcome.status == ep.TOOL_STATUS_OK
    assert world.hashes()[0] == untouched.hashes()[0]
    assert world.hashes()[1] != untouched.hashes()[1]
    assert world.call(call("toggle_airplane_mode")).error_kind is ErrorKind.UNKNOWN_TOOL
    theirs = module("tau2.domains.telecom.environment").get_environment()
    assert untouched.hashes() == (theirs.get_db_hash(), theirs.get_user_db_hash())


def test_the_schema_of_a_database_tells_fields_and_no_records() -> None:
    schema = json.loads(load_domain("retail").agent_box.database_schema())
    assert set(schema["properties"]) == {"products", "users", "orders"}
    assert "cancel_reason" in schema["$defs"]["Order"]["properties"]
    assert len(json.dumps(schema)) < 20_000


def test_a_domain_that_is_not_served_is_named() -> None:
    with pytest.raises(InputError, match=r"no tau2-bench domain 'bank': use one of airline, retail"):
        load_domain("bank")
