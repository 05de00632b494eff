"""What the judge can be told."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from policysweep.config import ModelEndpoint, ServiceConfig


class JudgeConfig(ServiceConfig, ModelEndpoint):
    """Scores episodes by the rubrics of a folder.

    The model settings are those of the judge's model.
    """

    # Forty turns with a justification each are several thousand tokens.
    max_tokens: int = Field(6_000, ge=1, description="Limit on the tokens of one answer.")
    rubrics: Path = Field(
        Path(__file__).with_name("rubrics"), description="Folder with the rubric files (*.toml)."
    )
    use_logprobs: Literal["auto", "on", "off"] = Field(
        "auto",
        description="Weight the scores of the panels that want it by token probabilities; auto asks the "
        "model server once whether it tells them.",
    )
    top_logprobs: int = Field(
        5, ge=5, le=20, description="Alternatives asked for at each token of a weighted answer."
    )
    samples: int = Field(1, ge=1, le=100, description="Answers per panel whose scores are not weighted.")
    parse_attempts: int = Field(
        2,
        ge=1,
        le=10,
        description="Answers asked for per sample until one can be used in full, the first included.",
    )
