"""Is the model there, does it talk, and does it keep its thoughts apart?"""

from __future__ import annotations

from policysweep.errors import ModelServerError, ModelServerGarbled, ModelServerRejected
from policysweep.models.chat import ChatRequest
from policysweep.probe import flags
from policysweep.probe.finding import Finding, no, partly, yes
from policysweep.probe.server import ModelServer
from policysweep.v1 import agent_pb2
from policysweep.v1 import episode_pb2 as ep

_NAMES_SHOWN = 8
_LIMITS = (64, 1024)
_MORE_ROOM = "max_tokens of the agent, customer or judge, well above the length of its thoughts"
_THOUGHT_TAGS = ("<think>", "</think>", "<reasoning>", "<|channel|>analysis")
_FIELDS = ("reasoning_content", "reasoning")
"""Where servers put thoughts: the older and the newer name."""


async def served(server: ModelServer) -> Finding:
    """The server is reached, accepts the key, and lists the model."""
    try:
        await server.list_models()
    except ModelServerRejected as error:
        return no(str(error), "--api-key-env VARIABLE with the server's key, or the URL that ends at /v1")
    except ModelServerGarbled as error:
        return no(str(error), "the address of a model server: it lists its models at URL/models")
    except ModelServerError as error:
        return no(str(error), "the server, if it is not up, or the URL")
    names = [str(card.get("id")) for card in server.cards]
    more = len(names) - _NAMES_SHOWN
    listed = ", ".join(names[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "") or "no model"
    if not server.card:
        return no(f"the server lists {listed}", "--model NAME with one that is listed")
    return yes(f"{server.model}; the server lists {listed}", models=len(names))


async def chat(server: ModelServer) -> Finding:
    """A short question gets a text. A model that thinks first is asked again, with room for its thoughts."""
    for limit in _LIMITS:
        reply = await server.complete(
            ChatRequest(
                messages=[{"role": "user", "content": "Say hello in one short sentence."}],
                sampling=agent_pb2.Sampling(max_tokens=limit),
            )
        )
        speed = {"seconds": round(reply.usage.latency_seconds, 3), "tokens": reply.usage.completion_tokens}
        if reply.text.strip():
            return yes(f"{speed['tokens']} tokens in {speed['seconds']:g} s", **speed)
        if reply.finish_reason != ep.FINISH_REASON_LENGTH:
            return no("the answer was empty", f"for a model that thinks, {flags.REASONING}")
    return partly(f"no text within {limit} tokens: the model thinks longer than that", _MORE_ROOM, **speed)


async def usage(server: ModelServer) -> Finding:
    """Answers say how many tokens they took."""
    reply = await server.complete(
        ChatRequest(
            messages=[{"role": "user", "content": "Say yes."}], sampling=agent_pb2.Sampling(max_tokens=8)
        )
    )
    if not (reply.usage.HasField("prompt_tokens") and reply.usage.HasField("completion_tokens")):
        return no("answers do not say how many tokens they took")
    return yes(
        f"{reply.usage.prompt_tokens} prompt and {reply.usage.completion_tokens} written tokens counted"
    )


async def thoughts_apart(server: ModelServer) -> Finding:
    """What a reasoning model thinks comes in a field of its own, and a text comes too."""
    question = "A parcel left on 3 March and was due 38 days later. On which date was it due? Answer shortly."
    choice = await server.raw_message(
        {
            "messages": [{"role": "user", "content": question}],
            "max_tokens": server.answer_tokens,
            "temperature": 0,
        }
    )
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    text = message.get("content") or ""
    if any(tag in str(text) for tag in _THOUGHT_TAGS):
        return no("thoughts stand in the text, where a customer would read them", flags.REASONING)
    field = next((name for name in _FIELDS if message.get(name)), None)
    if field is None:
        return yes("the model wrote no thoughts", thinks=0)
    if text:
        return yes(f"thoughts come in {field}, beside a text", thinks=1)
    if choice.get("finish_reason") == "length":
        return partly(
            f"thoughts come in {field}, but no text within {server.answer_tokens} tokens",
            _MORE_ROOM,
            thinks=1,
        )
    return no(f"the whole answer came in {field}: the parser waits for an end of thoughts in vain", thinks=1)
