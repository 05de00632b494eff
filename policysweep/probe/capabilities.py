"""The capabilities that are asked for, in the order in which they are reported."""

from __future__ import annotations

from collections.abc import Sequence

from policysweep.probe import flags
from policysweep.probe.checks import caching, context, repeating, structured, talking, tools
from policysweep.probe.finding import ROLES, Capability, Verdict

SERVED = Capability(
    "served",
    talking.served,
    "everything else rests on it",
    needed_by=dict.fromkeys(ROLES, Verdict.YES),
)
CHAT = Capability(
    "chat",
    talking.chat,
    "everything else rests on it",
    needed_by=dict.fromkeys(ROLES, Verdict.PARTLY),
)

TOOLS_AUTO = Capability(
    "tools auto",
    tools.tools_auto,
    "how agents and customers act; without it tool_mode: prompted puts the tools into the prompt",
    mend=flags.TOOL_CALLING,
)
TOOLS_REQUIRED = Capability(
    "tools required",
    tools.tools_required,
    "nothing needs it; it tells a server without tools from a model that would rather talk",
    mend=flags.TOOL_CALLING,
)
TOOLS_STRICT = Capability(
    "tools strict",
    tools.tools_strict,
    "nothing needs it; malformed calls are scored",
    mend=flags.TOOL_CALLING,
)
TOOLS_PARALLEL = Capability(
    "tools parallel", tools.tools_parallel, "fewer calls of the model per conversation"
)
TOOL_RESULTS = Capability(
    "tool results",
    tools.tool_results,
    "conversations go on after a call",
    mend="--chat-template=FILE with one that knows tool messages",
)
TOOLS_PROMPTED = Capability(
    "tools prompted",
    tools.tools_prompted,
    "how agents and customers act where the server has no tool calling",
)
THOUGHTS = Capability(
    "thoughts apart",
    talking.thoughts_apart,
    "thoughts in the text would be read by the customer and judged",
    needed_by={"agent": Verdict.PARTLY, "customer": Verdict.PARTLY},
    mend=flags.REASONING,
)
JSON_SCHEMA = Capability(
    "json schema",
    structured.json_schema,
    "how judges and the policy bank's curator answer",
    needed_by={"judge": Verdict.YES},
    mend=flags.STRUCTURED_OUTPUT,
)
LOGPROBS = Capability(
    "logprobs",
    structured.logprobs,
    "scores weighted by probability; without them the judge takes the score as written",
    mend=flags.LOGPROBS,
)
CONTEXT = Capability(
    "context length",
    context.context_length,
    "a conversation that no longer fits ends as a fault of the agent",
    needed_by={"agent": Verdict.YES, "customer": Verdict.PARTLY, "judge": Verdict.YES},
    mend=flags.CONTEXT,
)
USAGE = Capability("usage", talking.usage, "token limits and cost count it")
PREFIX_CACHE = Capability(
    "prefix cache",
    caching.prefix_cache,
    "prompts are laid out for it; without it every turn pays for the whole conversation",
    mend=flags.PREFIX_CACHE,
)
REPEATABILITY = Capability(
    "repeatability", repeating.repeatability, "no promise is made; trials tell noise from difference"
)

TOGETHER: Sequence[Capability] = (
    TOOLS_AUTO,
    TOOLS_REQUIRED,
    TOOL_RESULTS,
    JSON_SCHEMA,
    THOUGHTS,
    CONTEXT,
    LOGPROBS,
    TOOLS_PROMPTED,
    USAGE,
    TOOLS_STRICT,
    TOOLS_PARALLEL,
)
"""Asked at once, what matters most first."""
ALONE: Sequence[Capability] = (PREFIX_CACHE, REPEATABILITY)
"""Asked one after the other: they measure."""
ALL: Sequence[Capability] = (SERVED, CHAT, *TOGETHER, *ALONE)
