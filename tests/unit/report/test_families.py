from __future__ import annotations

import pytest

from policysweep.report.families import model_families


@pytest.mark.parametrize(
    ("model", "families"),
    [
        ("gpt-4o-2024-08-06", {"openai"}),
        ("gpt4o", {"openai"}),
        ("o3-mini", {"openai"}),
        ("openai/gpt-oss-120b", {"openai"}),
        ("claude-sonnet-4-5", {"anthropic"}),
        ("models/gemini-2.5-pro", {"google"}),
        ("google/gemma-3-27b-it", {"google"}),
        ("meta-llama/Llama-3.1-8B-Instruct", {"meta"}),
        ("Llama3", {"meta"}),
        ("Qwen/Qwen3-32B", {"alibaba"}),
        ("qwen2.5-72b", {"alibaba"}),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", {"mistral"}),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", {"deepseek", "alibaba"}),
        ("nvidia/Llama-3.1-Nemotron-70B", {"meta", "nvidia"}),
        ("microsoft/phi-4", {"microsoft"}),
        ("grok-4", {"xai"}),
        ("acme-7b", {"acme"}),
        ("models/acme_70b", {"acme"}),
        ("", set()),
        ("///", set()),
    ],
)
def test_families(model: str, families: set[str]) -> None:
    assert model_families(model) == families


@pytest.mark.parametrize("model", ["gptist-1", "phind-34b", "novasky", "yield-1", "command-line"])
def test_a_name_that_begins_like_a_known_one_is_not_of_its_family(model: str) -> None:
    known = {"openai", "microsoft", "amazon", "01-ai"}
    assert not model_families(model) & known


def test_unknown_models_of_one_line_are_one_family() -> None:
    assert model_families("acme-7b") & model_families("ACME-70b-chat")
    assert not model_families("acme-7b") & model_families("other-7b")
