from __future__ import annotations

import pytest

from policysweep.config import load_config
from policysweep.errors import InputError
from services.judge.config import JudgeConfig

MODEL = ["--model-url", "http://h:1", "--model", "m"]


def test_defaults_leave_room_for_forty_turns_and_find_the_shipped_rubrics() -> None:
    config = load_config(JudgeConfig, "judge", MODEL)
    assert (config.samples, config.parse_attempts, config.use_logprobs) == (1, 2, "auto")
    assert config.max_tokens >= 6_000
    assert list(config.rubrics.glob("*.toml"))


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (MODEL[:2], "--model is missing"),
        ([*MODEL, "--samples", "0"], "--samples"),
        ([*MODEL, "--parse-attempts", "0"], "--parse-attempts"),
        ([*MODEL, "--top-logprobs", "4"], "--top-logprobs"),
        ([*MODEL, "--use-logprobs", "maybe"], "--use-logprobs"),
    ],
)
def test_wrong_settings_are_refused_by_name(flags: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        load_config(JudgeConfig, "judge", flags)
