from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from policysweep.domains.returns.arguments import GetPolicyInfo
from policysweep.domains.returns.policy_text import MAX_CHARACTERS, get_policy_info
from policysweep.v1 import scenario_pb2

from .support import policy

SHARED = Path(os.environ.get("POLICYSWEEP_SHARED_DATA", Path(__file__).parents[4] / "shared" / "data"))


def headings(policy_type: str, **more: str) -> list[str]:
    found = get_policy_info(policy(), GetPolicyInfo.model_validate({"policy_type": policy_type, **more}))
    return [section["heading"] for section in found["sections"]]


def plain(*texts: str) -> scenario_pb2.Policy:
    documents = [scenario_pb2.PolicyDocument(text=text) for text in texts]
    return scenario_pb2.Policy(primary=documents[0], related=documents[1:])


def test_subjects_lead_to_their_sections() -> None:
    assert "16. Exchanges and replacements" in headings("exchanges")
    assert "14. Refund methods and timing" in headings("refunds")
    assert "11. Damaged, defective, and wrong items" in headings("damaged_items")
    assert "15. Gift cards and store credit" in headings("gift_cards")
    assert "8. Bundles and promotions" in headings("discounts")
    assert "10. Late deliveries and split shipments" in headings("shipping")


def test_category_and_query_choose_sections() -> None:
    assert "5. Electronics and accessories" in headings("returns", product_category="Electronics")
    assert headings("all", query="holiday period") == ["18. Holiday period"]


def test_a_query_without_a_match_names_the_sections() -> None:
    found = get_policy_info(policy(), GetPolicyInfo(policy_type="all", query="xylophone"))
    assert found["sections"] == []
    assert "9. Gifts" in found["other_sections"]


def test_the_answer_is_bounded_and_quotes_verbatim() -> None:
    found = get_policy_info(policy(), GetPolicyInfo(policy_type="all"))
    texts = [section["text"] for section in found["sections"]]
    assert sum(map(len, texts)) <= MAX_CHARACTERS
    assert all(text in policy().primary.text + policy().related[0].text for text in texts)
    long = get_policy_info(plain("word " * 5000), GetPolicyInfo(policy_type="all"))
    assert len(long["sections"][0]["text"]) <= MAX_CHARACTERS + 4


def test_a_plain_text_is_cut_at_its_short_lines() -> None:
    text = (
        "Shop Policy\nYou may return most things within 30 days.\n\nRefund timing\nWe refund within a week.\n"
        "| 3 days | card |\nNot returnable\nGift cards\nLive plants\n"
    )
    found = get_policy_info(
        plain(text, "No heading here, but each refund, fee and payment is named."),
        GetPolicyInfo(policy_type="refunds"),
    )
    assert [(s["document"], s["heading"]) for s in found["sections"]] == [
        ("Shop Policy", "Refund timing"),
        ("No heading here, but each refund, fee and payment is named.", ""),
    ]
    assert "| 3 days | card |" in found["sections"][0]["text"]
    everything = json.dumps(get_policy_info(plain(text), GetPolicyInfo(policy_type="all")))
    assert all(line in everything for line in ("Gift cards", "Live plants", "Not returnable"))


@pytest.mark.parametrize("text", ["", "\n\n", "# Only a title", "Only a title"])
def test_a_policy_without_text_has_an_answer(text: str) -> None:
    assert "sections" in get_policy_info(plain(text), GetPolicyInfo(policy_type="returns"))


def test_public_policies_have_sections() -> None:
    path = SHARED / "dripr" / "sample_scenarios.jsonl"
    if not path.exists():
        pytest.skip("the public sample scenarios are not at POLICYSWEEP_SHARED_DATA")
    scenario = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
    texts = [scenario["Policy"]["Primary Policy"]["text"]]
    texts += [related["text"] for related in scenario["Policy"]["Related policies"]]
    for subject in ("returns", "exchanges", "refunds", "shipping", "warranties"):
        found = get_policy_info(plain(*texts), GetPolicyInfo(policy_type=subject))
        assert all(section["heading"] for section in found["sections"])
        assert found["sections"]
