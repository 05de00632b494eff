"""Which family a model belongs to, by its name: a judge may prefer the writing of its own kind.

Models have been found to favour what they wrote themselves (Panickssery et al. 2024, arXiv 2404.13076), and
the models of one maker share data and training, so a family is a maker's line of models. A distilled or
merged model is of each family that its name tells of: DeepSeek-R1-Distill-Qwen-7B of two. A model that we do
not know is of a family named after its first word, so that acme-7b and acme-70b belong together.
"""

from __future__ import annotations

import re
from functools import cache

_STEMS = {
    "openai": ("gpt", "chatgpt", "o1", "o3", "o4", "openai"),
    "anthropic": ("claude", "anthropic"),
    "google": ("gemini", "gemma", "palm"),
    "meta": ("llama", "codellama"),
    "mistral": (
        "mistral",
        "mistralai",
        "mixtral",
        "ministral",
        "magistral",
        "codestral",
        "devstral",
        "pixtral",
    ),
    "alibaba": ("qwen", "qwq", "qvq"),
    "deepseek": ("deepseek",),
    "microsoft": ("phi",),
    "cohere": ("command", "aya"),
    "xai": ("grok",),
    "zhipu": ("glm", "chatglm"),
    "moonshot": ("kimi",),
    "01-ai": ("yi",),
    "ibm": ("granite",),
    "nvidia": ("nemotron",),
    "minimax": ("minimax",),
    "ai21": ("jamba",),
    "amazon": ("nova", "titan"),
    "allenai": ("olmo", "tulu"),
}
_FAMILY = {stem: family for family, stems in _STEMS.items() for stem in stems}

# A stem is a whole word or is followed by a version: "qwen", "qwen2", "gpt4o", "llama3", but not "gptist".
_VERSION = re.compile(r"(?:v?\d.*)?")


@cache
def model_families(model: str) -> frozenset[str]:
    """The families of a model by its served name, in any case and with any path; empty for no name."""
    words = re.split(r"[^a-z0-9]+", model.lower())
    known = {family for word in words for stem, family in _FAMILY.items() if _is(word, stem)}
    if known:
        return frozenset(known)
    last = re.findall(r"[a-z0-9]+", model.lower().rsplit("/", 1)[-1])
    return frozenset(last[:1])


def _is(word: str, stem: str) -> bool:
    return word.startswith(stem) and _VERSION.fullmatch(word, len(stem)) is not None
