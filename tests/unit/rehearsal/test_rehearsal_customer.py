from __future__ import annotations

from typing import Any

import pytest

from policysweep.models.rehearsal.customer.brief import read_brief
from policysweep.models.rehearsal.customer.offers import Offer, read_offer
from policysweep.models.rehearsal.customer.voice import contracted, first_person
from policysweep.models.rehearsal.draft import Draft

from .support import CUSTOMER_TOOLS, Json, arguments, ask, assistant, result, system, tool, user

PRIVATE = (
    "The customer wore the coat to two interviews. Inside the collar there is a brownish stain. "
    "The belt cannot be found. The customer would accept a deduction of $40."
)
BASIC = "The customer bought the Ravenna Wool Overcoat for $248.00. The sleeves are too long."
OPENING = "My order number is ORD-1-2. The sleeves of my coat are too long, I want my money back."
STATE = "In what state is the coat: has it been used or worn, and is anything damaged or missing?"
DENIAL = "I am not able to approve a return of the coat, and I have to decline the refund."
INSISTENCE = "The answer is no: I cannot refund the coat."
FULL = "I can offer a full refund of $248.00 for the coat. Shall I go ahead?"


def brief(register: str = "Casual", agreeableness: int = 3, behavior: str = "Opens with the sleeves.") -> str:
    return (
        f"You play a customer.\n\n## Persona\nName: Priyanka Deshmukh\nLanguage style: {register}\n"
        f"Personality (Big Five):\nAgreeableness: {agreeableness}\n\n## What you know and share freely\n"
        f"Your order number is ORD-1-2.\n{BASIC}\n\n## What you share only when asked\n{PRIVATE}\n\n"
        f"## How you behave\n{behavior}\n"
    )


def conversation(*turns: str, prompt: str | None = None) -> list[Json]:
    """The rules, who the customer is, then turns: the customer's opening, the agent, and so on."""
    messages = [system("You play a customer."), user(f"(Write your first message.)\n\n{prompt or brief()}")]
    for position, turn in enumerate(turns):
        messages.append(user(turn) if position % 2 else assistant(Draft(turn)))
    return messages


def reply(
    *turns: str, prompt: str | None = None, tools: tuple[str, ...] = CUSTOMER_TOOLS[:1], **fields: Any
) -> Draft:
    return ask(conversation(*turns, prompt=prompt), tools=[tool(name) for name in tools], **fields)


@pytest.mark.parametrize(
    ("sentence", "spoken"),
    [
        ("The customer wants $603.00 back.", "I want $603.00 back."),
        ("It suits the customer's phone.", "It suits my phone."),
        ("An app told the customer to wait.", "An app told me to wait."),
        ("The customer honestly does not know, and hopes.", "I honestly do not know, and hope."),
        ("The customer tries, washes and has no photo.", "I try, washes and have no photo."),
        ("Priyanka purchased a lamp.", "I purchased a lamp."),
        ("Priyanka Deshmukh purchased a lamp.", "I purchased a lamp."),
        ("The box was sealed.", "The box was sealed."),
    ],
)
def test_the_brief_is_spoken_in_the_first_person(sentence: str, spoken: str) -> None:
    assert first_person(sentence, "Priyanka Deshmukh") == spoken


def test_informal_registers_contract() -> None:
    assert contracted("I would say it is not so, I have seen it") == "I'd say it isn't so, I've seen it"


def test_the_brief_is_read() -> None:
    read = read_brief(brief("Frozen", 5))
    assert (read.register, read.agreeableness, read.order_id) == ("frozen", 5, "ORD-1-2")
    assert [fact.text for fact in read.private] == [
        "I wore the coat to two interviews.",
        "Inside the collar there is a brownish stain.",
        "The belt cannot be found.",
    ]
    assert read.preferences == ("I would accept a deduction of $40.",)
    assert read.acceptable == {"partial"}


def test_a_prompt_without_sections_is_survived() -> None:
    assert reply(OPENING, STATE, prompt="Play somebody.").text


@pytest.mark.parametrize(
    ("text", "offer"),
    [
        ("Could you give me the order number first, please?", None),
        (STATE, None),
        (FULL, Offer.FULL),
        ("I can offer a partial refund of $10: $20 less a deduction. Shall I go ahead?", Offer.PARTIAL),
        ("I cannot pay money, but I can offer $20 as a gift card.", Offer.DENY),
        ("Money does not fit that. I can offer $20 as a gift card.", Offer.GIFT_CARD),
        ("I can replace the lamp with a new one.", Offer.EXCHANGE),
        (DENIAL, Offer.DENY),
        ("I would like to hand your case over to our Resolutions Team.", Offer.ESCALATE),
    ],
)
def test_offers_are_read_from_the_agents_words(text: str, offer: Offer | None) -> None:
    assert read_offer(text) is offer


def test_nothing_private_is_said_before_it_is_asked_for() -> None:
    said = reply(OPENING, "Thank you. Could you give me the order number?").text
    assert "ORD-1-2" in said
    for secret in ("interviews", "stain", "belt", "$40"):
        assert secret not in said


def test_questions_bring_out_facts_on_their_topic_once() -> None:
    first = reply(OPENING, "Has the coat been worn?").text
    assert "I wore the coat to two interviews." in first
    assert "belt" not in first
    second = reply(
        OPENING, "Has the coat been worn?", first, "Is anything missing or lost, and was it worn?"
    ).text
    assert "belt" in second
    assert "interviews" not in second


def test_a_general_question_brings_out_two_facts_and_several_questions_more() -> None:
    assert sum(word in reply(OPENING, STATE).text for word in ("interviews", "stain", "belt")) == 2
    pressed = reply(OPENING, "Was it worn? Is it damaged? Is anything missing?").text
    assert all(word in pressed for word in ("interviews", "stain", "belt"))


def test_registers_differ_and_texts_are_of_natural_length() -> None:
    texts = {
        style: reply(OPENING, STATE, prompt=brief(style)).text for style in ("Frozen", "Casual", "Terse")
    }
    assert len(set(texts.values())) == 3
    assert all(15 <= len(text.split()) <= 90 for text in texts.values())


def test_a_good_offer_is_accepted() -> None:
    accepted = [
        "go ahead" in reply(OPENING, FULL, prompt=brief(behavior=f"Case {case}.")).text.lower()
        for case in range(20)
    ]
    assert sum(accepted) >= 17


def test_a_refusal_is_objected_to_first_and_later_accepted_or_not() -> None:
    objection = reply(OPENING, DENIAL).text
    outcomes = set()
    for case in range(40):
        prompt = brief(agreeableness=1 + case % 5, behavior=f"Case {case}.")
        draft = reply(OPENING, DENIAL, objection, INSISTENCE, prompt=prompt)
        outcomes.add("leaves" if draft.tool_uses else "accepts" if "accept" in draft.text else "asks")
    assert outcomes == {"leaves", "accepts", "asks"}


def test_only_customers_of_little_patience_leave() -> None:
    objection = reply(OPENING, DENIAL).text
    for case in range(30):
        prompt = brief(agreeableness=5, behavior=f"Case {case}.")
        assert not reply(OPENING, DENIAL, objection, INSISTENCE, prompt=prompt).tool_uses


def test_leaving_says_why() -> None:
    objection = reply(OPENING, DENIAL).text
    left = [
        draft
        for case in range(40)
        if (
            draft := reply(OPENING, DENIAL, objection, INSISTENCE, prompt=brief("Formal", 1, f"Case {case}."))
        ).tool_uses
    ]
    assert left
    assert left[0].tool_uses[0].name == "withdraw_from_conversation"
    assert arguments(left[0])["reason"]


def test_some_customers_look_at_their_order_once_and_then_answer() -> None:
    for case in range(60):
        messages = conversation(OPENING, STATE, prompt=brief(behavior=f"Case {case}."))
        looked = ask(messages, tools=[tool(name) for name in CUSTOMER_TOOLS])
        if looked.tool_uses and looked.tool_uses[0].name == "customer_view_order_details":
            break
    else:
        pytest.fail("nobody looked")
    assert arguments(looked) == {"order_id": "ORD-1-2"}
    messages += [assistant(looked), result("call0", {"status": "ok"})]
    after = ask(messages, tools=[tool(name) for name in CUSTOMER_TOOLS])
    assert not after.tool_uses
    assert "interviews" in after.text


def test_a_reminder_is_not_taken_for_the_agent() -> None:
    messages = [*conversation(OPENING, "Has the coat been worn?"), user("(That was no message. Try again.)")]
    assert "interviews" in ask(messages, tools=[tool(CUSTOMER_TOOLS[0])]).text


def test_a_long_conversation_ends() -> None:
    turns = [OPENING, *[turn for _ in range(9) for turn in (INSISTENCE, "I cannot agree.")], INSISTENCE]
    assert "accept" in reply(*turns).text
