"""The error tree: every failure that the project distinguishes, named by the boundary that it crossed.

    PolicysweepError
    ├── InputError                 what a person or a caller gave us is wrong
    │   ├── ManifestMismatch       a run is resumed with something that changes its results
    │   ├── BankNotFound           no policy bank of this id, or no such revision or snapshot of it
    │   ├── BankConflict           an id that is taken: by another bank, snapshot or request
    │   ├── RevisionConflict       the bank has moved on since the caller looked
    │   └── EmbedderMismatch       the bank was made with another embedder
    ├── InfrastructureError        no result; the unit is run again
    │   ├── ModelServerError       between us and a model server
    │   │   ├── ModelServerUnavailable
    │   │   ├── ModelServerTimeout
    │   │   ├── ModelServerBusy            429 or 503 with Retry-After
    │   │   ├── ModelServerRejected        any other 4xx: configuration, credentials
    │   │   └── ModelServerGarbled         an answer that is not a chat completion
    │   ├── AgentServiceError      between simulator and agent
    │   │   ├── AgentUnavailable
    │   │   ├── AgentTimeout
    │   │   └── AgentUnimplemented
    │   ├── ServiceUnavailable     between driver and simulator or judge
    │   ├── ServiceTimeout
    │   ├── ServiceContractError   a simulator or judge that breaks the contract
    │   ├── MessageTooLarge        a request or an answer beyond the limit of one gRPC message
    │   └── StoreError             between driver and store
    │       └── StoreUnavailable           it cannot be reached, or is not well: sat out before it is raised
    ├── AgentContractError         an agent service that breaks the contract: a fault of the agent
    ├── ContextOverflow            the prompt does not fit: a result of its own class, tried once
    ├── JudgeUnusable              a judge model whose answers cannot be used: a fault of the judge
    ├── CuratorUnusable            a curator model whose answers cannot be used: a fault of the curator
    └── ToolFault                  a tool of ours failed for a reason of its own

What each class counts as is stated here and nowhere else: `code` on the wire, `reason` in
`google.rpc.ErrorInfo`, `party` in a record, `retryable` for the driver.
"""

from __future__ import annotations

from typing import ClassVar

import grpc

from policysweep.v1 import episode_pb2 as ep

DOMAIN = "policysweep"
"""The `domain` of every ErrorInfo."""


class PolicysweepError(Exception):
    """Base of all errors that the project raises on purpose. `str()` is one sentence for a reader."""

    code: ClassVar[grpc.StatusCode] = grpc.StatusCode.INTERNAL
    reason: ClassVar[str] = "INTERNAL"
    party: ClassVar[ep.FaultParty.ValueType] = ep.FAULT_PARTY_INFRASTRUCTURE
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds that the other side asked us to wait; None when it did not."""


class InputError(PolicysweepError):
    """Something that a person or a caller gave us is wrong; the message says what, where and what to do."""

    code = grpc.StatusCode.INVALID_ARGUMENT
    reason = "INVALID_INPUT"
    exit_code: ClassVar[int] = 2
    """Exit code of a command or service that stops because of it."""


class ManifestMismatch(InputError):
    """A run is resumed with something that changes its results."""

    code = grpc.StatusCode.FAILED_PRECONDITION
    reason = "MANIFEST_MISMATCH"


class InfrastructureError(PolicysweepError):
    """A fault that is no result."""

    code = grpc.StatusCode.UNAVAILABLE
    reason = "INFRASTRUCTURE"
    retryable = True


class ModelServerError(InfrastructureError):
    """Between us and a model server."""

    reason = "MODEL_SERVER_ERROR"


class ModelServerUnavailable(ModelServerError):
    """Refused, reset, closed in mid-body, or a 5xx."""

    reason = "MODEL_SERVER_UNAVAILABLE"


class ModelServerTimeout(ModelServerError):
    """No complete answer before the deadline."""

    code = grpc.StatusCode.DEADLINE_EXCEEDED
    reason = "MODEL_SERVER_TIMEOUT"


class ModelServerBusy(ModelServerError):
    """The server asks us to come back later."""

    reason = "MODEL_SERVER_BUSY"


class ModelServerRejected(ModelServerError):
    """A 4xx that repeating cannot mend: unknown model, credentials, unsupported parameter."""

    code = grpc.StatusCode.FAILED_PRECONDITION
    reason = "MODEL_SERVER_REJECTED"
    retryable = False


class ModelServerGarbled(ModelServerError):
    """An answer that is not a chat completion, for example half a JSON object."""

    reason = "MODEL_SERVER_GARBLED"


class AgentServiceError(InfrastructureError):
    """Between simulator and agent."""

    reason = "AGENT_SERVICE_ERROR"


class AgentUnavailable(AgentServiceError):
    """The agent service cannot be reached, or died in mid-call."""

    reason = "AGENT_UNAVAILABLE"


class AgentTimeout(AgentServiceError):
    """The agent service did not answer before the deadline."""

    code = grpc.StatusCode.DEADLINE_EXCEEDED
    reason = "AGENT_TIMEOUT"


class AgentUnimplemented(AgentServiceError):
    """What listens at the agent's address does not serve AgentService."""

    code = grpc.StatusCode.FAILED_PRECONDITION
    reason = "AGENT_UNIMPLEMENTED"
    retryable = False


class ServiceUnavailable(InfrastructureError):
    """Between driver and simulator or judge."""

    reason = "SERVICE_UNAVAILABLE"


class ServiceTimeout(InfrastructureError):
    """A simulator or judge did not answer before the deadline."""

    code = grpc.StatusCode.DEADLINE_EXCEEDED
    reason = "SERVICE_TIMEOUT"


class ServiceContractError(InfrastructureError):
    """A simulator or judge that breaks the contract, for example with a record of another unit."""

    code = grpc.StatusCode.FAILED_PRECONDITION
    reason = "SERVICE_CONTRACT"
    retryable = False


class MessageTooLarge(InfrastructureError):
    """A request or an answer beyond the limit of one gRPC message. It would be as large the next time."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED
    reason = "MESSAGE_TOO_LARGE"
    retryable = False


class StoreError(InfrastructureError):
    """The results store refused or lost a read or write; the old state stands."""

    reason = "STORE_ERROR"


class StoreUnavailable(StoreError):
    """The results store cannot be reached, or says itself that it is not well. It may pass."""

    reason = "STORE_UNAVAILABLE"


class AgentContractError(PolicysweepError):
    """An agent service that breaks the contract, for example with an answer of the wrong role."""

    code = grpc.StatusCode.FAILED_PRECONDITION
    reason = "AGENT_CONTRACT"
    party = ep.FAULT_PARTY_AGENT


class ContextOverflow(PolicysweepError):
    """The prompt does not fit into the model's context. A result, not a reason to try again."""

    code = grpc.StatusCode.FAILED_PRECONDITION
    reason = "CONTEXT_OVERFLOW"
    party = ep.FAULT_PARTY_AGENT

    def __init__(self, message: str, *, retry_after: float | None = None, sent: bool = True) -> None:
        super().__init__(message, retry_after=retry_after)
        self.sent = sent
        """Whether a model call was made of it; False when it was found before."""


class JudgeUnusable(PolicysweepError):
    """A judge model whose answers cannot be used."""

    code = grpc.StatusCode.FAILED_PRECONDITION
    reason = "JUDGE_UNUSABLE"
    party = ep.FAULT_PARTY_JUDGE


class ToolFault(PolicysweepError):
    """A tool of ours failed for a reason of its own."""

    reason = "TOOL_FAULT"
    party = ep.FAULT_PARTY_TOOLS


class BankNotFound(InputError):
    """No bank of this id, or no such revision or snapshot of it."""

    code = grpc.StatusCode.NOT_FOUND
    reason = "BANK_NOT_FOUND"


class BankConflict(InputError):
    """An id that is taken: a bank, a snapshot or a request of the same id and another content."""

    code = grpc.StatusCode.ALREADY_EXISTS
    reason = "BANK_CONFLICT"


class RevisionConflict(InputError):
    """The bank has moved on since the caller looked. Look again, and decide anew."""

    code = grpc.StatusCode.ABORTED
    reason = "REVISION_CONFLICT"


class EmbedderMismatch(InputError):
    """The bank was made with another embedder; its vectors and ours cannot be compared."""

    code = grpc.StatusCode.FAILED_PRECONDITION
    reason = "EMBEDDER_MISMATCH"


class CuratorUnusable(PolicysweepError):
    """A curator model whose answers cannot be used. Nothing is recorded: an OMIT would be a judgement."""

    code = grpc.StatusCode.FAILED_PRECONDITION
    reason = "CURATOR_UNUSABLE"
    party = ep.FAULT_PARTY_CURATOR


def _tree(root: type[PolicysweepError]) -> dict[str, type[PolicysweepError]]:
    found = {root.reason: root}
    for child in root.__subclasses__():
        found.update(_tree(child))
    return found


def by_reason(reason: str) -> type[PolicysweepError]:
    """The class that carries this `reason`; PolicysweepError for one that we do not know."""
    return _tree(PolicysweepError).get(reason, PolicysweepError)
