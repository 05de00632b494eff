from __future__ import annotations

from typing import Any

import pytest

from policysweep.models.rehearsal.dispositions import DISPOSITIONS
from policysweep.models.rehearsal.draft import Draft
from policysweep.models.rehearsal.returns import agent as script
from policysweep.models.rehearsal.returns.case_file import read_case
from policysweep.models.rehearsal.returns.wording import persona_of

from .support import AGENT_TOOLS, Json, arguments, ask, assistant, result, system, tool, user

PROMPT = "An agent.\n\n## How you are asked to behave\n\nDIRECT: You are direct.\n\n## This case\n\nA return."
OPENING = "My order number is ORD-400-318652. I want to return my lamp, I changed my mind."
USED = "I used the lamp for two weeks, it has a scratch, and everything is there."
ORDER: Json = {
    "status": "ok",
    "order_id": "ORD-400-318652",
    "customer_id": "CUST-1",
    "placed_at": "2026-01-02",
    "today": "2026-01-27",
    "items": [
        {
            "item_id": "I-1",
            "product_id": "P-1",
            "name": "Corrin Lamp",
            "category": "Home, kitchen, and garden",
            "quantity": 1,
            "unit_price": 80.0,
            "seller": {"type": "first_party"},
            "tags": [],
        }
    ],
    "delivery_dates": [{"items": ["I-1"], "promised_by": "2026-01-07", "delivered_at": "2026-01-05"}],
    "payment": {"method": "credit_card", "amount": 80.0},
}
ANSWERS: dict[str, Json] = {
    "get_order_details": ORDER,
    "check_inventory": {
        "status": "ok",
        "product_id": "P-1",
        "name": "Corrin Lamp",
        "available": 3,
        "in_stock": True,
    },
    "get_return_frequency_assessment": {
        "status": "ok",
        "abuse_risk_level": "LOW",
        "recommended_deduction_percentage": 0,
    },
    "process_return": {"status": "ok", "refundable_at_most": 80.0},
}
FAILED_CHECK: Json = {"status": "verification_required", "questions": ["In what state is the lamp?"]}


@pytest.fixture(autouse=True)
def _no_blunders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "_slip_of", lambda judge: "")


class Talk:
    """A conversation with the agent: tools answer at once, the customer says what the test says."""

    def __init__(self, model: str = "rehearsal-fair", prompt: str = PROMPT, **answers: Json) -> None:
        self.model = model
        self.messages = [system(prompt)]
        self.answers = {**ANSWERS, **answers}
        self.calls: list[tuple[str, Json]] = []
        self.rounds: list[tuple[str, ...]] = []

    def say(self, text: str) -> Draft:
        """The agent's message or declaration after the customer's words."""
        self.messages.append(user(text))
        for _ in range(12):
            draft = ask(self.messages, self.model, tools=[tool(name) for name in AGENT_TOOLS])
            self.messages.append(assistant(draft, f"c{len(self.messages)}-"))
            if not draft.tool_uses or draft.tool_uses[0].name == "declare_resolution":
                return draft
            self._answer(draft)
        raise AssertionError(f"the agent goes on calling: {self.rounds}")

    def _answer(self, draft: Draft) -> None:
        self.rounds.append(tuple(use.name for use in draft.tool_uses))
        for call, (position, use) in zip(
            self.messages[-1]["tool_calls"], enumerate(draft.tool_uses), strict=True
        ):
            self.calls.append((use.name, arguments(draft, position)))
            self.messages.append(result(call["id"], self.answers.get(use.name, {"status": "ok"})))


def declared(draft: Draft) -> Json:
    """The declaration's arguments."""
    assert draft.tool_uses[0].name == "declare_resolution"
    return arguments(draft)


def test_personas_are_read_from_the_system_message() -> None:
    assert persona_of(PROMPT) == "DIRECT"
    assert persona_of("## How you are asked to behave\n\nVERY_HELPFUL: serve") == "VERY_HELPFUL"
    assert persona_of("Be HELPFUL.") == "FAIR"


def test_looks_up_the_order_then_the_rest_then_asks() -> None:
    talk = Talk()
    question = talk.say(OPENING)
    assert talk.rounds == [("get_order_details",), ("get_policy_info", "get_return_frequency_assessment")]
    assert talk.calls[0][1]["order_id"] == "ORD-400-318652"
    assert "Corrin Lamp" in question.text
    assert "?" in question.text


def test_asks_for_a_number_that_is_missing_and_gives_up_in_the_end() -> None:
    talk = Talk()
    assert "order number" in talk.say("I want to return my lamp.").text
    assert "order number" in talk.say("Which number?").text
    assert declared(talk.say("I have none."))["resolution_type"] == "ESCALATE_HUMAN_AGENT"


def test_some_find_the_current_order_without_a_number() -> None:
    schema = {
        "type": "object",
        "properties": {"order_id": {"description": 'Number; "current" is this order.'}},
    }
    tools = [tool("get_order_details", schema), tool("declare_resolution")]
    messages = [system(PROMPT), user("I want to return my lamp.")]
    assert arguments(ask(messages, "rehearsal-lenient", tools=tools)) == {"order_id": "current"}
    assert "order number" in ask(messages, "rehearsal-strict", tools=tools).text


def test_an_order_that_is_not_found_is_asked_for_again() -> None:
    talk = Talk(get_order_details={"status": "error", "error": "unknown order"})
    assert "order number" in talk.say(OPENING).text
    assert talk.rounds == [("get_order_details",), ("get_order_details",)]


def test_an_order_without_items_is_escalated() -> None:
    talk = Talk(get_order_details={"status": "ok", "order_id": "ORD-400-318652", "items": []})
    assert declared(talk.say(OPENING))["resolution_type"] == "ESCALATE_HUMAN_AGENT"


def decided(model: str) -> tuple[Talk, Json]:
    """A talk to its end, the customer accepting everything."""
    talk = Talk(model)
    talk.say(OPENING)
    proposal = talk.say(USED)
    assert proposal.text
    end = talk.say("Yes, please go ahead.")
    return talk, declared(end)


@pytest.mark.parametrize("model", list(DISPOSITIONS))
def test_every_disposition_ends_with_the_writes_that_its_outcome_needs(model: str) -> None:
    talk, end = decided(model)
    writes = [
        name for name, _ in talk.calls if name in ("process_return", "process_exchange", "issue_refund")
    ]
    needed = {
        "RETURN_REFUND_FULL_BANK": ["process_return"],
        "RETURN_REFUND_GIFT_CARD": ["process_return"],
        "RETURN_REFUND_PARTIAL_BANK": ["process_return", "issue_refund"],
        "REPLACEMENT_EXCHANGE": ["process_exchange"],
        "DENY_REFUND": [],
        "ESCALATE_HUMAN_AGENT": [],
    }
    assert writes == needed[end["resolution_type"]]
    assert all(end[key] for key in ("description", "customer_next_steps", "message"))


def force(monkeypatch: pytest.MonkeyPatch, outcome: str, **changes: Any) -> None:
    """Let every judgement come out as `outcome`."""
    from policysweep.models.rehearsal.returns import deciding
    from policysweep.models.rehearsal.returns.judgement import Decision, priced

    def decide(judge: Any, order: Any, statements: Any, abuse: str, deduction: int) -> Decision:
        from policysweep.models.rehearsal.returns.statements import read_statements

        stated = read_statements(statements, order.lines)
        return priced(Decision(outcome, order.lines, stated.conditions, 0.0, 25, **changes))

    monkeypatch.setattr(deciding, "decide", decide)


def test_a_partial_refund_pays_what_was_proposed(monkeypatch: pytest.MonkeyPatch) -> None:
    force(monkeypatch, "RETURN_REFUND_PARTIAL_BANK")
    talk = Talk()
    talk.say(OPENING)
    assert "$60.00" in talk.say(USED).text
    talk.say("I accept.")
    returned, refunded = talk.calls[-2], talk.calls[-1]
    assert returned[1]["items_to_return"] == [{"item_id": "I-1", "quantity": 1, "condition": "opened_used"}]
    assert (refunded[0], refunded[1]["amount"]) == ("issue_refund", 60.0)


def test_never_more_than_the_return_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    force(monkeypatch, "RETURN_REFUND_PARTIAL_BANK")
    talk = Talk(process_return={"status": "ok", "refundable_at_most": 41.5})
    talk.say(OPENING)
    talk.say(USED)
    talk.say("I accept.")
    assert talk.calls[-1][1]["amount"] == 41.5


def test_an_exchange_looks_at_the_stock_first(monkeypatch: pytest.MonkeyPatch) -> None:
    force(monkeypatch, "REPLACEMENT_EXCHANGE")
    other = {"product_id": "P-9", "name": "Corrin Lamp Mini", "price": 70.0, "available": 2}
    talk = Talk(check_inventory={"status": "ok", "available": 0, "in_stock": False, "alternatives": [other]})
    talk.say(OPENING)
    assert "Corrin Lamp Mini" in talk.say(USED).text
    talk.say("I accept.")
    assert talk.calls[-1][1]["items_to_exchange"][0]["new_product_id"] == "P-9"


def test_without_stock_there_is_no_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    force(monkeypatch, "REPLACEMENT_EXCHANGE")
    talk = Talk(check_inventory={"status": "ok", "available": 0, "in_stock": False, "alternatives": []})
    talk.say(OPENING)
    talk.say(USED)
    assert declared(talk.say("I accept."))["resolution_type"] != "REPLACEMENT_EXCHANGE"


def test_a_refusal_stays_one_for_the_strict(monkeypatch: pytest.MonkeyPatch) -> None:
    force(monkeypatch, "DENY_REFUND")
    talk = Talk("rehearsal-strict")
    talk.say(OPENING)
    assert "decline" in talk.say(USED).text
    assert "The answer is no" in talk.say("I cannot agree with that.").text
    assert declared(talk.say("I must object."))["resolution_type"] == "DENY_REFUND"


def test_who_asks_for_a_person_gets_one_from_the_fair(monkeypatch: pytest.MonkeyPatch) -> None:
    force(monkeypatch, "DENY_REFUND")
    talk = Talk("rehearsal-fair")
    for text in (OPENING, USED, "I cannot agree with that."):
        talk.say(text)
    assert declared(talk.say("Let me talk to a real person."))["resolution_type"] == "ESCALATE_HUMAN_AGENT"


def test_a_customer_who_gives_up_in_words_is_an_abort(monkeypatch: pytest.MonkeyPatch) -> None:
    force(monkeypatch, "DENY_REFUND")
    talk = Talk()
    talk.say(OPENING)
    talk.say(USED)
    assert declared(talk.say("ok forget it, I'm out"))["resolution_type"] == "USER_ABORT"


def test_a_failed_check_asks_the_customer_and_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    force(monkeypatch, "RETURN_REFUND_FULL_BANK")
    talk = Talk(process_return=FAILED_CHECK)
    talk.say(OPENING)
    talk.say("The lamp is sealed, I changed my mind.")
    assert "In what state is the lamp?" in talk.say("I accept.").text
    assert talk.calls[-1][1]["items_to_return"][0]["condition"] == "unopened"
    talk.answers["process_return"] = {"status": "ok"}
    end = declared(talk.say("Well, I used the lamp for a week."))
    assert talk.calls[-1][1]["items_to_return"][0]["condition"] == "opened_used"
    assert end["resolution_type"] == "RETURN_REFUND_FULL_BANK"


def test_two_failed_checks_escalate(monkeypatch: pytest.MonkeyPatch) -> None:
    force(monkeypatch, "RETURN_REFUND_FULL_BANK")
    talk = Talk(process_return=FAILED_CHECK)
    for text in (OPENING, "The lamp is sealed.", "I accept."):
        talk.say(text)
    assert declared(talk.say("It is sealed."))["resolution_type"] == "ESCALATE_HUMAN_AGENT"


def test_a_write_that_is_refused_twice_escalates(monkeypatch: pytest.MonkeyPatch) -> None:
    force(monkeypatch, "RETURN_REFUND_FULL_BANK")
    talk = Talk(process_return={"status": "error", "error": "not delivered"})
    talk.say(OPENING)
    talk.say(USED)
    assert declared(talk.say("I accept."))["resolution_type"] == "ESCALATE_HUMAN_AGENT"
    assert [name for name, _ in talk.calls].count("process_return") == 2


@pytest.mark.parametrize("blunder", ["invented", "repeated", "unwritten"])
def test_blunders_happen_once_and_the_case_goes_on(monkeypatch: pytest.MonkeyPatch, blunder: str) -> None:
    force(monkeypatch, "RETURN_REFUND_FULL_BANK")
    monkeypatch.setattr(script, "_slip_of", lambda judge: blunder)
    talk = Talk()
    talk.say(OPENING)
    talk.say(USED)
    end = declared(talk.say("I accept."))
    names = [name for name, _ in talk.calls]
    assert end["resolution_type"] == "RETURN_REFUND_FULL_BANK"
    assert (names.count("get_order_details") == 2) is (blunder == "repeated")
    assert any(name not in AGENT_TOOLS for name in names) is (blunder == "invented")
    assert ("process_return" in names) is (blunder != "unwritten")


def test_arguments_follow_the_schema_that_is_offered() -> None:
    schema = {
        "type": "object",
        "properties": {"order_id": {"type": "string"}, "detail_type": {"enum": ["summary", "items"]}},
    }
    tools = [tool("get_order_details", schema), tool("declare_resolution")]
    draft = ask([system(PROMPT), user(OPENING)], tools=tools)
    assert arguments(draft) == {"order_id": "ORD-400-318652", "detail_type": "summary"}


def test_tool_choice_is_obeyed() -> None:
    schema = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer", "minimum": 3}}}
    messages = [system(PROMPT), user(OPENING)]
    tools = [*(tool(name) for name in AGENT_TOOLS), tool("ping", schema)]
    named = ask(messages, tools=tools, tool_choice={"type": "function", "function": {"name": "ping"}})
    assert [use.name for use in named.tool_uses] == ["ping"]
    assert arguments(named)["id"] >= 3
    assert not ask(messages, tools=tools, tool_choice="none").tool_uses
    required = ask([user("hello")], tools=[tool("ping", schema)], tool_choice="required")
    assert required.tool_uses[0].name == "ping"


def test_parallel_calls_can_be_forbidden() -> None:
    talk = Talk()
    messages = [system(PROMPT), user(OPENING)]
    first = ask(messages, tools=[tool(name) for name in AGENT_TOOLS])
    messages += [assistant(first), result("call0", ORDER)]
    both = ask(messages, tools=[tool(name) for name in AGENT_TOOLS])
    one = ask(messages, tools=[tool(name) for name in AGENT_TOOLS], parallel_tool_calls=False)
    assert (len(both.tool_uses), len(one.tool_uses)) == (2, 1)
    assert talk.calls == []


@pytest.mark.parametrize(("temperature", "sampled"), [(0, False), (0.7, True)])
def test_trials_differ_only_when_sampling(temperature: float, sampled: bool) -> None:
    def differs(case: int) -> bool:
        talk = Talk(get_order_details={**ORDER, "order_id": f"ORD-400-{case}"})
        talk.say(OPENING)
        messages, tools = [*talk.messages, user(USED)], [tool(name) for name in AGENT_TOOLS]
        drafts = {ask(messages, tools=tools, seed=seed, temperature=temperature) for seed in range(6)}
        return len(drafts) > 1

    assert any(differs(case) for case in range(20)) is sampled


def test_a_conversation_without_tools_gets_a_chat_reply() -> None:
    reply = ask([user("Tell me about lighthouses")])
    assert reply.text
    assert "rehearsal model" in reply.text


def test_what_the_agent_is_told_of_the_case_is_not_the_customer_speaking() -> None:
    told = "## This case\n\nThe order ORD-9 is old.\n\n## The customer's first message\n\nIt is ORD-1-A."
    case = read_case([user(told), assistant(Draft("yes?")), user("## This case is bad")])
    assert (case.opening, case.order_number) == ("It is ORD-1-A.", "ORD-1-A")
    assert case.statements == ["It is ORD-1-A.", "## This case is bad"]
