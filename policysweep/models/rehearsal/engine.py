"""From a request's bytes to a finished answer: everything but HTTP and time.

An engine serves all dispositions as models. Each model has its own prefix cache, slots and metrics, as
each would have its own server.
"""

from __future__ import annotations

from policysweep.models.rehearsal import prompted, tokens
from policysweep.models.rehearsal.config import RehearsalConfig
from policysweep.models.rehearsal.dispositions import DISPOSITIONS
from policysweep.models.rehearsal.draft import Draft
from policysweep.models.rehearsal.faults import MODEL_FAULTS, FaultKind, FaultPlan
from policysweep.models.rehearsal.latency import LatencyModel, Slots
from policysweep.models.rehearsal.metrics import Metrics
from policysweep.models.rehearsal.request import ApiError, Json, ParsedRequest, read_messages, read_tools
from policysweep.models.rehearsal.roles import respond
from policysweep.models.rehearsal.tau2.gold import GoldBook, read_gold
from policysweep.models.rehearsal.wire import Completion, limited


class ServedModel:
    """One model's state."""

    def __init__(self, name: str, config: RehearsalConfig, metrics: Metrics) -> None:
        self.name = name
        self.cache = tokens.PrefixCache(config.prefix_cache_tokens)
        self.slots = Slots(config.max_concurrency)
        self.metrics = metrics.add_model(name, lambda: self.slots.running, lambda: self.slots.waiting)


class Engine:
    """All models of a server."""

    def __init__(self, config: RehearsalConfig) -> None:
        self.metrics = Metrics()
        self.latency = LatencyModel(config.first_token, config.per_token, config.jitter)
        self.max_model_len = config.max_model_len
        self._tool_calling = config.tool_calling
        self.faults = FaultPlan(config.faults, config.fault_seed)
        self._fault_seed = config.fault_seed
        self._gold = read_gold(config.tau2_gold) if config.tau2_gold is not None else GoldBook()
        self.models = {name: ServedModel(name, config, self.metrics) for name in DISPOSITIONS}

    def set_faults(self, rates: dict[str, float]) -> None:
        """Replace the fault rates; counting starts anew. Raises InputError for unknown kinds."""
        self.faults = FaultPlan(rates, self._fault_seed)

    def model(self, name: str) -> ServedModel:
        """The served model of that name. Raises ApiError (404)."""
        served = self.models.get(name)
        if served is None:
            raise ApiError(f"The model `{name}` does not exist.", status=404, param="model")
        return served

    def complete(self, request: ParsedRequest, served: ServedModel, fault: FaultKind | None) -> Completion:
        """Answer a request; a fault of the model spoils the answer.

        Raises ApiError (400) when prompt and answer do not fit into the context.
        """
        self._check_tools(request)
        pieces = list(tokens.prompt_pieces(request.messages, request.tools))
        self._check_length(tokens.total(pieces), request.max_tokens)
        prompt = served.cache.measure(pieces)
        served.metrics.prompted(prompt.prompt, prompt.cached)
        draft = limited(self._draft(request, fault), request.max_tokens)
        return Completion(request, draft, prompt, tokens.count_draft(draft))

    def _draft(self, request: ParsedRequest, fault: FaultKind | None) -> Draft:
        asked = prompted.native_request(request)
        if asked is not None:
            return prompted.written(self._spoilt(asked, fault))
        return self._spoilt(request, fault)

    def _spoilt(self, request: ParsedRequest, fault: FaultKind | None) -> Draft:
        draft = respond(request, self._gold)
        return MODEL_FAULTS[fault](draft, request) if fault is not None and fault in MODEL_FAULTS else draft

    def _check_tools(self, request: ParsedRequest) -> None:
        """Refuse tools, in vLLM's words, when the server is started without tool calling."""
        if request.tools and not self._tool_calling:
            raise ApiError(
                '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
                param="tool_choice",
            )

    def _check_length(self, prompt_tokens: int, max_tokens: int | None) -> None:
        """Refuse what does not fit, in vLLM's words: clients recognise a context overflow by them."""
        limit = self.max_model_len
        if prompt_tokens >= limit:
            raise ApiError(
                f"This model's maximum context length is {limit} tokens. However, your request has "
                f"{prompt_tokens} input tokens. Please reduce the length of the input messages.",
                param="input_tokens",
            )
        if max_tokens is not None and prompt_tokens + max_tokens > limit:
            raise ApiError(
                f"'max_tokens' or 'max_completion_tokens' is too large: {max_tokens}. This model's maximum "
                f"context length is {limit} tokens and your request has {prompt_tokens} input tokens "
                f"({max_tokens} > {limit} - {prompt_tokens}).",
                param="max_tokens",
            )

    def tokenize(self, data: Json) -> Json:
        """The answer of POST /tokenize: how many tokens a prompt has here. Token ids are made up."""
        self.model(str(data.get("model", "")))
        if isinstance(prompt := data.get("prompt"), str):
            pieces = [prompt]
        else:
            pieces = list(tokens.prompt_pieces(read_messages(data), read_tools(data)))
        ids = [token for piece in pieces for token in tokens.identifiers(piece)]
        return {"count": len(ids), "max_model_len": self.max_model_len, "tokens": ids, "token_strs": None}
