"""PolicyBankService on the wire. Translates between the contract and the banks; holds no logic."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Protocol

import grpc

from policysweep import __version__
from policysweep.errors import InputError, ModelServerRejected
from policysweep.models.chat import ChatModel
from policysweep.models.openai_api import ModelDescription
from policysweep.rpc.deadlines import budget
from policysweep.rpc.server import Service
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import policybank_pb2_grpc
from services.policybank.banks import Banks
from services.policybank.config import PolicyBankConfig
from services.policybank.strategies.registry import PARAMETERS
from services.policybank.transfer import Arrivals, exported

_NAME = pb.DESCRIPTOR.services_by_name["PolicyBankService"].full_name
_PAGE = 100
_PAGE_BYTES = 4 * 1024 * 1024
_Context = grpc.aio.ServicerContext[Any, Any]


class ServedModel(ChatModel, Protocol):
    """A chat model that can say how it is served."""

    async def describe(self, timeout_seconds: float) -> ModelDescription:
        """What the server says about the model. Raises ModelServerError when it does not serve it."""
        ...


class PolicyBankServicer(policybank_pb2_grpc.PolicyBankServiceServicer):
    """Serves banks."""

    def __init__(
        self,
        config: PolicyBankConfig,
        model: ServedModel,
        banks: Banks,
        template: pb.BankInfo,
        needs: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`needs` raises StoreError while the store does not answer."""
        self.needs = needs
        self._config = config
        self._model = model
        self._banks = banks
        self._template = template

    def _seconds(self, context: _Context) -> Callable[[], float]:
        return lambda: budget(context, self._config.model_timeout_seconds)

    async def CreateBank(  # noqa: N802 - the contract's name
        self, request: pb.CreateBankRequest, context: _Context
    ) -> pb.CreateBankResponse:
        """The first revision of a new bank."""
        self._check_create(request)
        revision, replayed = await self._banks.create(request, self._seconds(context))
        return pb.CreateBankResponse(revision=revision, usage=revision.usage, replayed=replayed)

    def _check_create(self, request: pb.CreateBankRequest) -> None:
        _check_bank("CreateBank", request.bank_id)
        if request.HasField("fork_of"):
            _check_bank("CreateBank: fork_of", request.fork_of.bank_id)
            return
        if self._banks.strategy(request.method).starts_from_policy and not request.policy.primary.text:
            raise InputError(
                f"CreateBank: policy.primary.text must not be empty: "
                f"{pb.MemoryMethod.Name(request.method)} begins with the policy"
            )
        for index, tool in enumerate(request.tools):
            if not tool.name:
                raise InputError(f"CreateBank: tools[{index}].name must not be empty")

    async def GetBank(  # noqa: N802 - the contract's name
        self, request: pb.GetBankRequest, context: _Context
    ) -> pb.GetBankResponse:
        """What a bank is and where it stands."""
        _check_bank("GetBank", request.bank_id)
        bank, snapshots = await self._banks.look(request.bank_id)
        latest = bank.latest
        return pb.GetBankResponse(
            info=bank.info,
            revision=latest.number,
            entries=len(latest.entries),
            snapshots=snapshots,
            recall_limit=self._banks.strategy(bank.info.method).recall_limit,
        )

    async def ListBanks(  # noqa: N802 - the contract's name
        self, request: pb.ListBanksRequest, context: _Context
    ) -> pb.ListBanksResponse:
        """A page of the banks."""
        if request.page_size < 0:
            raise InputError("ListBanks: page_size must not be negative")
        found, more = await self._banks.summaries(request.after_bank_id, request.page_size or _PAGE)
        return pb.ListBanksResponse(banks=found, more=more)

    async def Recall(  # noqa: N802 - the contract's name
        self, request: pb.RecallRequest, context: _Context
    ) -> pb.RecallResponse:
        """Texts for the prompt."""
        _check_bank("Recall", request.bank.bank_id)
        return await self._banks.recall(request, self._seconds(context))

    async def ListHeaders(  # noqa: N802 - the contract's name
        self, request: pb.ListHeadersRequest, context: _Context
    ) -> pb.ListHeadersResponse:
        """The headers of all entries."""
        _check_bank("ListHeaders", request.bank.bank_id)
        _, state = await self._banks.at(request.bank)
        headers = [
            pb.Header(capability_id=entry.capability_id, header=entry.header, tool_names=entry.tool_names)
            for entry in state.sorted_entries()
        ]
        return pb.ListHeadersResponse(headers=headers, revision=state.number)

    async def BatchGetSpecs(  # noqa: N802 - the contract's name
        self, request: pb.BatchGetSpecsRequest, context: _Context
    ) -> pb.BatchGetSpecsResponse:
        """The chosen entries in full."""
        _check_bank("BatchGetSpecs", request.bank.bank_id)
        _, state = await self._banks.at(request.bank)
        ids = request.capability_ids
        return pb.BatchGetSpecsResponse(
            entries=[state.entries[each] for each in ids if each in state.entries],
            unknown_ids=[each for each in ids if each not in state.entries],
            revision=state.number,
        )

    async def RecordFeedback(  # noqa: N802 - the contract's name
        self, request: pb.RecordFeedbackRequest, context: _Context
    ) -> pb.RecordFeedbackResponse:
        """The one revision that a feedback leads to."""
        check_feedback(request)
        revision, replayed = await self._banks.learn(request, self._seconds(context))
        return pb.RecordFeedbackResponse(revision=revision, replayed=replayed, usage=revision.usage)

    async def ListRevisions(  # noqa: N802 - the contract's name
        self, request: pb.ListRevisionsRequest, context: _Context
    ) -> pb.ListRevisionsResponse:
        """A page of the history."""
        _check_bank("ListRevisions", request.bank_id)
        if request.after_revision < 0 or request.page_size < 0:
            raise InputError("ListRevisions: after_revision and page_size must not be negative")
        bank, _ = await self._banks.at(pb.BankRef(bank_id=request.bank_id))
        found = page(bank.revisions[request.after_revision :], request.page_size or _PAGE)
        end = request.after_revision + len(found)
        return pb.ListRevisionsResponse(revisions=found, more=end < len(bank.revisions))

    async def CreateSnapshot(  # noqa: N802 - the contract's name
        self, request: pb.CreateSnapshotRequest, context: _Context
    ) -> pb.CreateSnapshotResponse:
        """Name a revision."""
        _check_bank("CreateSnapshot", request.bank.bank_id)
        if not request.name:
            raise InputError("CreateSnapshot: name must not be empty")
        return pb.CreateSnapshotResponse(revision=await self._banks.name(request))

    async def RollbackBank(  # noqa: N802 - the contract's name
        self, request: pb.RollbackBankRequest, context: _Context
    ) -> pb.RollbackBankResponse:
        """Restore an earlier revision."""
        _check_bank("RollbackBank", request.bank_id)
        if bool(request.to_revision) == bool(request.to_snapshot):
            raise InputError("RollbackBank: give to_revision or to_snapshot, and not both")
        revision, replayed = await self._banks.roll_back(request)
        return pb.RollbackBankResponse(revision=revision, replayed=replayed)

    async def ExportBank(  # noqa: N802 - the contract's name
        self, request: pb.ExportBankRequest, context: _Context
    ) -> AsyncIterator[pb.ExportBankResponse]:
        """The bank, record by record."""
        _check_bank("ExportBank", request.bank.bank_id)
        bank, state = await self._banks.at(request.bank)
        _, snapshots = await self._banks.look(bank.bank_id)
        for record in exported(bank, state, snapshots):
            yield pb.ExportBankResponse(record=record)

    async def ImportBank(  # noqa: N802 - the contract's name
        self, request_iterator: AsyncIterator[pb.ImportBankRequest], context: _Context
    ) -> pb.ImportBankResponse:
        """Read a bank back."""
        bank_id, arrivals = "", Arrivals()
        async for request in request_iterator:
            bank_id = bank_id or request.bank_id
            arrivals.take(request.record)
        _check_bank("ImportBank", bank_id)
        arrivals.check()
        self._banks.strategy(arrivals.revisions[0].bank.method)
        replayed = await self._banks.restore(bank_id, arrivals.revisions, arrivals.snapshots)
        return pb.ImportBankResponse(
            entries=len(arrivals.entries),
            revisions=len(arrivals.revisions),
            snapshots=len(arrivals.snapshots),
            replayed=replayed,
        )

    async def GetBankServiceInfo(  # noqa: N802 - the contract's name
        self, request: pb.GetBankServiceInfoRequest, context: _Context
    ) -> pb.GetBankServiceInfoResponse:
        """All that changes behaviour; fails while the curator's model is not served."""
        served = await self._model.describe(budget(context, self._config.model_timeout_seconds))
        if served.max_model_len is not None and self._config.max_tokens >= served.max_model_len:
            raise ModelServerRejected(
                f"max_tokens is {self._config.max_tokens}, but {served.model!r} is served with a context of "
                f"{served.max_model_len} tokens, prompt included: lower --max-tokens"
            )
        return pb.GetBankServiceInfoResponse(
            info=pb.BankServiceInfo(
                curator=self._template.curator,
                embedder=self._template.embedder,
                parameters={name: str(getattr(self._config, name)) for name in PARAMETERS},
                rehearsal=served.rehearsal,
                version=__version__,
            )
        )


def page(revisions: Sequence[pb.Revision], size: int) -> Sequence[pb.Revision]:
    """The first `size` revisions, or fewer: a page is far smaller than a message may be, and not empty."""
    room = _PAGE_BYTES
    for count, revision in enumerate(revisions[:size]):
        room -= revision.ByteSize()
        if room < 0:
            return revisions[: max(1, count)]
    return revisions[:size]


def _check_bank(method: str, bank_id: str) -> None:
    if not bank_id:
        raise InputError(f"{method}: bank_id must not be empty")


def check_feedback(request: pb.RecordFeedbackRequest) -> None:
    """Refuse what nothing can be learnt from. Raises InputError that names the field."""
    _check_bank("RecordFeedback", request.bank_id)
    if not request.request_id:
        raise InputError("RecordFeedback: request_id must not be empty: a repetition is known by it")
    if not (math.isfinite(request.reward) and 0 <= request.reward <= 1):
        raise InputError(f"RecordFeedback: reward is {request.reward}: it lies between 0 and 1")
    if request.regime not in pb.FeedbackRegime.values() or not request.regime:
        raise InputError("RecordFeedback: regime must say how much the feedback tells")
    if request.regime == pb.FEEDBACK_REGIME_REWARD and request.explanation:
        raise InputError("RecordFeedback: explanation must be empty under the reward regime")
    if not request.episode.messages:
        raise InputError("RecordFeedback: episode.messages must not be empty: there is nothing to learn from")
    if not request.task_query.strip():
        raise InputError("RecordFeedback: task_query must not be empty: memories are found again by it")


def policybank_service(servicer: PolicyBankServicer) -> Service:
    """The gRPC service of a policy bank, which serves while its store answers."""
    return Service(
        _NAME,
        lambda server: policybank_pb2_grpc.add_PolicyBankServiceServicer_to_server(servicer, server),
        needs=servicer.needs,
    )
