"""The flags of `vllm serve` that the project counts on; deploy/k8s/base/vllm sets the same, as a test holds.

A word in capitals is to be filled in for the model.
"""

from __future__ import annotations

TOOL_CALLING = "--enable-auto-tool-choice --tool-call-parser=PARSER"
"""PARSER belongs to the model: hermes (Qwen), llama3_json, mistral, openai (gpt-oss), ..."""
REASONING = "--reasoning-parser=PARSER"
"""PARSER belongs to the model: qwen3, deepseek_r1, openai_gptoss, ..."""
STRUCTURED_OUTPUT = '--structured-outputs-config={"backend":"xgrammar","disable_any_whitespace":true}'
"""Without it a model may fill an answer with blanks up to its limit."""
LOGPROBS = "--max-logprobs=20"
CONTEXT = "--max-model-len=TOKENS"
PREFIX_CACHE = "--enable-prefix-caching"
CACHED_TOKENS = "--enable-prompt-tokens-details"

ALL = (TOOL_CALLING, REASONING, STRUCTURED_OUTPUT, LOGPROBS, CONTEXT, PREFIX_CACHE, CACHED_TOKENS)


def tool_calling_refused(said: str) -> bool:
    """Whether a refusal says that the server was started without tool calling; vLLM then names the flag."""
    return "--tool-call-parser" in said
