"""The policy banks that the agents of a sweep read, frozen in the manifest.

Every unit reads its bank at the revision that the sweep file names, so a bank may learn on while a sweep
runs. The digest tells whether another bank has come to stand under the same name and number.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Mapping

from policysweep.bank_client import BankClient
from policysweep.errors import InputError, PolicysweepError
from policysweep.rpc.client import Channels
from policysweep.sweep.model_spec import AgentBankSpec, AgentSpec
from policysweep.v1 import agent_pb2, run_pb2
from policysweep.v1 import policybank_pb2 as pb


async def agent_banks(agents: Iterable[AgentSpec], channels: Channels) -> dict[str, run_pb2.AgentBank]:
    """The banks by the names of the agents that read them.

    Raises the error of the first that cannot be read, BankNotFound when there is no such bank or revision.
    """
    named = {agent.name: agent.bank for agent in agents if agent.bank is not None}
    banks = await asyncio.gather(*(_read(name, bank, channels) for name, bank in named.items()))
    return dict(zip(named, banks, strict=True))


async def _read(agent: str, bank: AgentBankSpec, channels: Channels) -> run_pb2.AgentBank:
    client = BankClient(channels, bank.target)
    try:
        contents, described = await asyncio.gather(
            client.read(pb.BankRef(bank_id=bank.id, revision=bank.revision)), client.describe(bank.id)
        )
    except PolicysweepError as error:
        raise type(error)(f"agent {agent}: {error}") from error
    return run_pb2.AgentBank(
        bank_id=bank.id,
        revision=bank.revision,
        digest=entries_digest(contents.entries.values()),
        method=contents.info.method,
        embedder=contents.info.embedder,
        recall_limit=described.recall_limit,
        rehearsal=contents.rehearsal,
    )


def entries_digest(entries: Iterable[pb.Entry]) -> str:
    """SHA-256 over entries in any order, hex."""
    digest = hashlib.sha256()
    for entry in sorted(entries, key=lambda each: each.capability_id):
        content = entry.SerializeToString(deterministic=True)
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()


def check_memories(agents: Mapping[str, agent_pb2.AgentInfo], banks: Mapping[str, run_pb2.AgentBank]) -> None:
    """Hold what agents say of their memory against the banks that the sweep file names, both by agent.

    InputError for a memory without a bank, a bank without a memory, and an agent that would read the latest
    revision whatever it is asked for.
    """
    for name, info in agents.items():
        remembers, named = info.memory_mode not in ("", "none"), name in banks
        if remembers and not named:
            raise InputError(
                f"agent {name} reads a policy bank (memory {info.memory_mode}), but the sweep file names "
                "none: add bank: {id: BANK, revision: N, target: HOST:PORT}"
            )
        if named and not remembers:
            raise InputError(
                f"agent {name} has no memory, but the sweep file names bank {banks[name].bank_id!r} for it: "
                "start the agent service with --memory, or leave bank out"
            )
        if named and not info.reads_bank_revision:
            raise InputError(
                f"agent {name} does not say that it reads a bank at the revision that a request names "
                "(reads_bank_revision), so its units might read different ones: update the agent service"
            )
