"""The branch of the error tree that a policy bank adds: what is wrong with a call on a bank.

InputError
├── BankNotFound           no bank of this id, or no such revision or snapshot of it
├── BankConflict           an id that is taken: by another bank, snapshot or request
├── RevisionConflict       the bank has moved on since the caller looked
└── EmbedderMismatch       the bank was made with another embedder
PolicysweepError
└── CuratorUnusable        a curator model whose answers cannot be used; nothing was recorded
"""

from __future__ import annotations

import grpc

from policysweep.errors import InputError, PolicysweepError


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
