"""The policy bank over real gRPC, with the rehearsal curator's scripts or scripted answers."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE, create_subprocess_exec
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import grpc
import numpy as np
import pytest

from policysweep import errors
from policysweep.models.chat import ChatReply, ChatRequest
from policysweep.models.openai_api import ModelDescription
from policysweep.models.rehearsal import RehearsalServer
from policysweep.models.rehearsal.request import parse
from policysweep.models.rehearsal.roles import respond
from policysweep.models.wire import request_body
from policysweep.rpc import status
from policysweep.rpc.client import Channels
from policysweep.rpc.server import serving
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import policybank_pb2_grpc, scenario_pb2
from services.policybank import transfer
from services.policybank.assembly import assembled, open_store, servicer
from services.policybank.config import PolicyBankConfig
from services.policybank.service import policybank_service
from services.policybank.store import BankStore, MemoryStore, Vector

from .qdrant_gateway import gateway

ROOT = Path(__file__).parents[2]
POLICY = """\
# Cancellations
A flight can be cancelled within 24 hours of booking. You must first obtain the reason for the cancellation.
Travel insurance enables a full refund for health or weather reasons.
# Compensation
Only gold members can be given a certificate when they complain about a delayed flight.
"""
LESSON = "With travel insurance any reason for the cancellation counts, not only health or weather."
Stub: TypeAlias = "policybank_pb2_grpc.PolicyBankServiceAsyncStub"
T = TypeVar("T")


class FakeModel:
    """Scripted answers while there are any, then the rehearsal scripts. An error among them is raised."""

    def __init__(self, *scripted: str | errors.PolicysweepError) -> None:
        self.scripted = list(scripted)
        self.asked: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.asked.append(request)
        await asyncio.sleep(0)
        text = (
            self.scripted.pop(0)
            if self.scripted
            else respond(parse(request_body("rehearsal-judge", request))).text
        )
        if isinstance(text, errors.PolicysweepError):
            raise text
        usage = ep.Usage(prompt_tokens=10, completion_tokens=2, model_calls=1)
        return ChatReply(text, (), ep.FINISH_REASON_STOP, usage, rehearsal=True)

    async def describe(self, timeout_seconds: float) -> ModelDescription:
        return ModelDescription("m", rehearsal=True, max_model_len=32_768)


class BagOfWords:
    """An embedder without a model: texts that share words are near."""

    def __init__(self, name: str = "bag") -> None:
        self.info = pb.Embedder(name=name, dimension=64)
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str], timeout_seconds: float) -> list[Vector]:
        self.asked += texts
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Vector:
        vector = np.zeros(64, dtype=np.float32)
        for word in text.lower().split():
            vector[sum(word.encode()) % 64] += 1
        return vector / max(np.float32(np.linalg.norm(vector)), np.float32(1))


def config(**settings: Any) -> PolicyBankConfig:
    return PolicyBankConfig(**{"model_url": "http://unused", "model": "m", "store": "memory", **settings})


@asynccontextmanager
async def bank_service(
    model: FakeModel | None = None,
    store: BankStore | None = None,
    embedder: BagOfWords | None = None,
    **settings: Any,
) -> AsyncIterator[Stub]:
    banks = assembled(
        config(**settings), model or FakeModel(), store or MemoryStore(), embedder or BagOfWords()
    )
    async with serving("127.0.0.1:0", [policybank_service(banks)]) as address, Channels() as channels:
        stub: Any = policybank_pb2_grpc.PolicyBankServiceStub(channels.get(address))
        yield stub


async def ask(call: Awaitable[T]) -> T:
    """Await a call, with its status turned back into the error."""
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        raise status.error_from(error, status.SERVICE, "bank") from error


def creation(
    bank_id: str = "b", method: pb.MemoryMethod.ValueType = pb.MEMORY_METHOD_POLICY_BANK, **fields: Any
) -> pb.CreateBankRequest:
    tools = [
        ep.ToolDefinition(name="cancel_reservation", description="Cancel a flight.", parameters_json="{}"),
        ep.ToolDefinition(name="send_certificate", description="Compensate.", parameters_json="{}"),
    ]
    policy = scenario_pb2.Policy(primary=scenario_pb2.PolicyDocument(text=POLICY))
    return pb.CreateBankRequest(bank_id=bank_id, method=method, policy=policy, tools=tools, **fields)


def episode(identifier: str = "e-1") -> ep.Episode:
    call = ep.ToolCall(id="1", name="get_order", arguments_json='{"order_id": "A1"}')
    second = ep.ToolCall(id="2", name="cancel_order", arguments_json='{"order_id": "A1", "reason": "x"}')
    return ep.Episode(
        episode_id=identifier,
        messages=[
            ep.Message(role=ep.ROLE_CUSTOMER, content="Cancel my flight, I lost my job."),
            ep.Message(role=ep.ROLE_AGENT, tool_calls=[call, second]),
            ep.Message(role=ep.ROLE_TOOL, tool_name="get_order", content="{}", tool_status=ep.TOOL_STATUS_OK),
            ep.Message(role=ep.ROLE_AGENT, content="I cannot cancel it."),
        ],
    )


def feedback(request_id: str = "r-1", expected: int = 1, **fields: Any) -> pb.RecordFeedbackRequest:
    given: dict[str, Any] = {
        "bank_id": "b",
        "episode": episode(f"e-{request_id}"),
        "task_id": "7",
        "task_query": "Cancel an insured flight after losing a job.",
        "reward": 0.0,
        "explanation": LESSON,
        "regime": pb.FEEDBACK_REGIME_EXPLANATION,
    }
    return pb.RecordFeedbackRequest(request_id=request_id, expected_revision=expected, **{**given, **fields})


async def create(stub: Stub, *args: Any, **fields: Any) -> pb.CreateBankResponse:
    return await ask(stub.CreateBank(creation(*args, **fields), timeout=20))


async def learn(stub: Stub, *args: Any, **fields: Any) -> pb.RecordFeedbackResponse:
    return await ask(stub.RecordFeedback(feedback(*args, **fields), timeout=20))


async def history(stub: Stub, bank_id: str = "b") -> list[pb.Revision]:
    asked = pb.ListRevisionsRequest(bank_id=bank_id)
    return list((await ask(stub.ListRevisions(asked, timeout=20))).revisions)


async def headers_of(stub: Stub, **ref: Any) -> pb.ListHeadersResponse:
    asked = pb.ListHeadersRequest(bank=pb.BankRef(bank_id="b", **ref))
    return await ask(stub.ListHeaders(asked, timeout=20))


async def recall(stub: Stub, query: str = "", **fields: Any) -> list[pb.RecalledItem]:
    request = pb.RecallRequest(bank=pb.BankRef(bank_id="b"), query=query, **fields)
    return list((await ask(stub.Recall(request, timeout=20))).items)


async def exported(stub: Stub, ref: pb.BankRef) -> list[pb.BankRecord]:
    return [each.record async for each in stub.ExportBank(pb.ExportBankRequest(bank=ref), timeout=20)]


def imports(bank_id: str, records: Sequence[pb.BankRecord]) -> list[pb.ImportBankRequest]:
    return [pb.ImportBankRequest(bank_id=bank_id, record=record) for record in records]


class TestPolicyBank:
    async def test_a_bank_begins_with_the_policy_as_capabilities(self) -> None:
        async with bank_service() as stub:
            made = await create(stub)
            headers = await headers_of(stub)
        assert made.revision.kind == pb.REVISION_KIND_CREATE
        assert made.usage.model_calls == 3  # one a tool, and one for what belongs to none
        assert made.revision.rehearsal
        assert made.revision.bank.embedder.name == "bag"
        ids = [header.capability_id for header in headers.headers]
        assert ids == sorted(ids)
        assert {"cancel_reservation_cancellations", "send_certificate_compensation"} <= set(ids)

    async def test_specs_come_in_the_order_asked_for(self) -> None:
        async with bank_service() as stub:
            made = await create(stub)
            ids = [entry.capability_id for entry in made.revision.entries]
            asked = pb.BatchGetSpecsRequest(
                bank=pb.BankRef(bank_id="b"), capability_ids=[ids[1], "no such", ids[0]]
            )
            specs = await ask(stub.BatchGetSpecs(asked, timeout=9))
        assert [entry.capability_id for entry in specs.entries] == [ids[1], ids[0]]
        assert list(specs.unknown_ids) == ["no such"]
        assert "24 hours" in str(specs.entries)

    async def test_an_explanation_revises_the_entry_that_it_is_about(self) -> None:
        async with bank_service() as stub:
            await create(stub)
            learnt = await learn(stub)
            headers = await headers_of(stub)
        revision = learnt.revision
        assert (revision.number, revision.kind) == (2, pb.REVISION_KIND_REVISE)
        assert (revision.failure_type, revision.gap_class) == (
            pb.FAILURE_TYPE_POLICY_GAP,
            pb.GAP_CLASS_AMBIGUOUS_SCOPE,
        )
        assert revision.capability_id == "cancel_reservation_cancellations"
        assert LESSON in revision.after.spec.key_insight
        assert f"+KEY INSIGHT: {LESSON}" in revision.diff
        assert revision.provenance == pb.Provenance(episode_id="e-r-1", task_id="7", request_id="r-1")
        assert list(revision.after.provenance) == [revision.provenance]
        assert (revision.regime, revision.explanation) == (pb.FEEDBACK_REGIME_EXPLANATION, LESSON)
        assert (headers.revision, learnt.replayed, learnt.usage.model_calls) == (2, False, 1)

    async def test_what_no_entry_covers_is_added_and_what_is_known_is_omitted(self) -> None:
        async with bank_service() as stub:
            await create(stub)
            news = "Bicycles travel free on Sundays."
            kinds = [
                (await learn(stub, "r-1", 1, explanation=news)).revision.kind,
                (await learn(stub, "r-2", 2, explanation=news)).revision.kind,
                (await learn(stub, "r-3", 3, reward=1.0, explanation="")).revision.kind,
            ]
        assert kinds == [pb.REVISION_KIND_ADD, pb.REVISION_KIND_OMIT, pb.REVISION_KIND_OMIT]

    async def test_the_curator_reads_policy_bank_trajectory_and_feedback(self) -> None:
        model = FakeModel()
        async with bank_service(model) as stub:
            await create(stub)
            await learn(stub)
        system, user = (str(message["content"]) for message in model.asked[-1].messages)
        assert "| Travel insurance enables a full refund" in system
        assert "| cancel_reservation_cancellations\n| Cancellations:" in user
        assert '| cancel_order {"order_id": "A1", "reason": "x"}' in user
        assert user.index("# The bank") < user.index("# The task") < user.index(f"| {LESSON}")

    async def test_later_feedback_shares_the_prompt_up_to_the_entry_that_changed(self) -> None:
        """The prefix cache of the model server then holds policy, rules and the older entries."""
        model = FakeModel()
        async with bank_service(model) as stub:
            await create(stub)
            await learn(stub, "r-1", 1, explanation="Bicycles travel free on Sundays.")
            await learn(stub, "r-2", 2)
        first, second = (str(asked.messages[1]["content"]) for asked in model.asked[-2:])
        assert model.asked[-2].messages[0] == model.asked[-1].messages[0]
        assert model.asked[-2].session_id == model.asked[-1].session_id != ""
        assert second.startswith(first.partition("\n\n# The task")[0])


class TestWriting:
    async def test_a_repeated_request_leads_to_the_same_revision(self) -> None:
        model = FakeModel()
        async with bank_service(model) as stub:
            await create(stub)
            first = await learn(stub)
            asked = len(model.asked)
            again = await learn(stub)
            late = await learn(stub, expected=0)
        assert again.replayed
        assert first.revision == again.revision == late.revision
        assert len(model.asked) == asked

    async def test_a_request_id_is_for_one_content(self) -> None:
        async with bank_service() as stub:
            await create(stub)
            await learn(stub)
            with pytest.raises(errors.BankConflict, match="request id 'r-1' led to revision 2"):
                await learn(stub, expected=2, reward=0.5)
            assert len(await history(stub)) == 2

    async def test_a_bank_that_has_moved_on_is_a_conflict(self) -> None:
        async with bank_service() as stub:
            await create(stub)
            await learn(stub)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.RecordFeedback(feedback("r-2", 1), timeout=9)
            assert caught.value.code() is grpc.StatusCode.ABORTED
            assert len(await history(stub)) == 2

    async def test_of_concurrent_requests_one_wins_and_the_curator_is_asked_once(self) -> None:
        model = FakeModel()
        async with bank_service(model) as stub:
            await create(stub)
            asked = len(model.asked)
            same = await asyncio.gather(*(learn(stub) for _ in range(5)))
            assert len({each.revision.SerializeToString() for each in same}) == 1
            assert sum(not each.replayed for each in same) == 1
            assert len(model.asked) == asked + 1
            rivals = await asyncio.gather(
                *(learn(stub, f"s-{at}", 2) for at in range(5)), return_exceptions=True
            )
            assert sum(isinstance(each, errors.RevisionConflict) for each in rivals) == 4
            assert [each.number for each in await history(stub)] == [1, 2, 3]

    async def test_other_banks_are_not_waited_for(self) -> None:
        async with bank_service() as stub:
            await asyncio.gather(*(create(stub, f"b{at}") for at in range(8)))
            await asyncio.gather(*(learn(stub, bank_id=f"b{at}") for at in range(8)))
            assert [len(await history(stub, f"b{at}")) for at in range(8)] == [2] * 8

    async def test_two_services_on_one_store_see_each_other(self) -> None:
        class Shared(MemoryStore):
            shared = True

        store = Shared()
        async with bank_service(store=store) as one, bank_service(store=store) as two:
            await create(one)
            assert (await create(two)).replayed
            await learn(two, "r-1", 1)
            assert (await learn(one, "r-1", 1)).replayed
            answers = await asyncio.gather(learn(one, "r-2", 2), learn(two, "r-3", 2), return_exceptions=True)
            assert sum(isinstance(each, errors.RevisionConflict) for each in answers) == 1
            assert await history(one) == await history(two)
            assert len(await history(one)) == 3

    async def test_a_store_that_is_read_late_does_not_hide_a_write(self) -> None:
        """A read of the store that began before an append may end after it."""

        class Slow(MemoryStore):
            async def history(self, bank_id: str, after: int = 0) -> list[pb.Revision]:
                found = await super().history(bank_id, after)
                await asyncio.sleep(0.05)
                return found

        store = Slow()
        async with bank_service(store=store) as stub:
            await create(stub)
        async with bank_service(store=store) as stub:
            await asyncio.gather(learn(stub), *(history(stub) for _ in range(4)))
            assert len(await history(stub)) == 2


class TestUnusableAnswers:
    async def test_nothing_is_recorded_and_the_attempts_are_those_configured(self) -> None:
        model = FakeModel()
        async with bank_service(model, curator_attempts=2) as stub:
            await create(stub)
            asked = len(model.asked)
            model.scripted = ["prose", '{"operation": "OMIT"}', "prose"]
            with pytest.raises(errors.CuratorUnusable, match="no usable answer in 2 attempts, the last"):
                await learn(stub)
            assert len(model.asked) == asked + 2
            assert len(await history(stub)) == 1
            assert {each.seed for each in model.asked[-2:]} == {0, 1}
            assert "could not be used: it is not JSON" in str(model.asked[-1].messages[-1]["content"])

    async def test_a_later_answer_is_taken_and_the_cost_of_all_is_told(self) -> None:
        model = FakeModel()
        async with bank_service(model) as stub:
            await create(stub)
            model.scripted = ["prose"]
            learnt = await learn(stub)
        assert (learnt.revision.unusable_answers, learnt.usage.model_calls) == (1, 2)
        assert learnt.usage.prompt_tokens == 20

    async def test_a_bank_is_made_whole_or_not_at_all(self) -> None:
        model = FakeModel(*["prose"] * 9)
        async with bank_service(model) as stub:
            with pytest.raises(errors.CuratorUnusable):
                await create(stub)
            with pytest.raises(errors.BankNotFound):
                await history(stub)
            assert not (await create(stub)).replayed

    @pytest.mark.parametrize(
        ("raised", "kind"),
        [
            (errors.ModelServerBusy("busy", retry_after=3), errors.ModelServerBusy),
            (errors.ModelServerUnavailable("gone"), errors.ModelServerUnavailable),
            (errors.ContextOverflow("too long"), errors.CuratorUnusable),
        ],
    )
    async def test_a_fault_of_the_server_keeps_its_class(
        self, raised: errors.PolicysweepError, kind: type[errors.PolicysweepError]
    ) -> None:
        model = FakeModel()
        async with bank_service(model) as stub:
            await create(stub)
            model.scripted = [raised]
            with pytest.raises(errors.PolicysweepError) as caught:
                await learn(stub)
            assert type(caught.value) is kind
            assert len(await history(stub)) == 1
            assert (await learn(stub)).revision.number == 2


class TestCreating:
    async def test_creating_twice_is_the_same_as_once(self) -> None:
        async with bank_service() as stub:
            first = await create(stub)
            again = await create(stub, seed=9)
            assert (first.replayed, again.replayed) == (False, True)
            assert first.revision == again.revision
            with pytest.raises(errors.BankConflict, match="made from something else"):
                await create(stub, database_schema="users(id)")

    async def test_a_fork_begins_where_the_other_stood_and_goes_its_own_way(self) -> None:
        async with bank_service() as stub:
            await create(stub)
            await learn(stub)
            asked = pb.CreateBankRequest(bank_id="f", fork_of=pb.BankRef(bank_id="b", revision=1))
            fork = await ask(stub.CreateBank(asked, timeout=9))
            await learn(stub, bank_id="f", explanation="Bicycles travel free on Sundays.")
            entries = {each.capability_id for each in (await history(stub, "f"))[0].entries}
            assert entries == {each.capability_id for each in (await history(stub))[0].entries}
            assert fork.revision.bank.forked_from == pb.BankRef(bank_id="b", revision=1)
            assert fork.revision.bank.policy.primary.text == POLICY
            assert [len(await history(stub, name)) for name in ("b", "f")] == [2, 2]

    async def test_what_a_rehearsal_had_a_part_in_is_marked(self) -> None:
        played = episode()
        played.rehearsal = True
        async with bank_service() as stub:
            made = await create(stub, "s", METHODS["synapse"])
            learnt = await learn(stub, bank_id="s", episode=played, reward=1.0)
            early = await create(stub, "f-1", METHODS["synapse"], fork_of=pb.BankRef(bank_id="s", revision=1))
            late = await create(stub, "f-2", METHODS["synapse"], fork_of=pb.BankRef(bank_id="s"))
        marks = [each.revision.rehearsal for each in (made, learnt, early, late)]
        assert marks == [False, True, False, True]

    async def test_a_fork_may_use_the_entries_with_another_method_that_has_entries(self) -> None:
        async with bank_service() as stub:
            await create(stub)
            ref = pb.BankRef(bank_id="b")
            full = pb.CreateBankRequest(bank_id="f", fork_of=ref, method=pb.MEMORY_METHOD_FULL_CONTEXT)
            await ask(stub.CreateBank(full, timeout=9))
            synapse = pb.CreateBankRequest(bank_id="s", fork_of=ref, method=pb.MEMORY_METHOD_SYNAPSE)
            with pytest.raises(errors.InputError, match="cannot be forked into one of MEMORY_METHOD_SYNAPSE"):
                await ask(stub.CreateBank(synapse, timeout=9))


class TestList:
    async def test_banks_are_listed_page_by_page(self) -> None:
        async with bank_service() as stub:
            for bank_id in ("c", "a", "b/ü"):
                await create(stub, bank_id, pb.MEMORY_METHOD_SYNAPSE)
            await learn(stub, bank_id="c", reward=1.0)
            first = await stub.ListBanks(pb.ListBanksRequest(page_size=2), timeout=9)
            last = await stub.ListBanks(
                pb.ListBanksRequest(page_size=2, after_bank_id=first.banks[-1].bank_id), timeout=9
            )
        assert [each.bank_id for each in first.banks] == ["a", "b/ü"]
        assert (first.more, last.more) == (True, False)
        (told,) = last.banks
        assert (told.bank_id, told.method, told.revision) == ("c", pb.MEMORY_METHOD_SYNAPSE, 2)
        assert told.changed_at.seconds > 0
        assert told.entries == 1

    async def test_an_empty_store_has_none(self) -> None:
        async with bank_service() as stub:
            assert await stub.ListBanks(pb.ListBanksRequest(), timeout=9) == pb.ListBanksResponse()
            with pytest.raises(errors.InputError, match="page_size must not be negative"):
                await ask(stub.ListBanks(pb.ListBanksRequest(page_size=-1), timeout=9))


class TestHistory:
    async def test_a_rollback_restores_and_forgets_what_came_after(self) -> None:
        async with bank_service() as stub:
            await create(stub)
            await learn(stub)
            asked = pb.RollbackBankRequest(bank_id="b", to_revision=1, expected_revision=2, request_id="back")
            back = await ask(stub.RollbackBank(asked, timeout=9))
            again = await ask(stub.RollbackBank(asked, timeout=9))
            assert (back.revision.number, back.revision.restored_revision) == (3, 1)
            assert (again.replayed, again.revision) == (True, back.revision)
            assert f"-KEY INSIGHT: {LESSON}" in back.revision.diff
            anew = await learn(stub, expected=3)
            assert (anew.replayed, anew.revision.number) == (False, 4)

    async def test_a_snapshot_can_be_read_restored_and_exported(self) -> None:
        async with bank_service() as stub:
            await create(stub)
            snapshot = pb.CreateSnapshotRequest(bank=pb.BankRef(bank_id="b"), name="before")
            assert (await ask(stub.CreateSnapshot(snapshot, timeout=9))).revision == 1
            await learn(stub)
            assert (await headers_of(stub, snapshot="before")).revision == 1
            with pytest.raises(errors.BankConflict, match=r"'before' .* stands for revision 1, not 2"):
                await ask(stub.CreateSnapshot(snapshot, timeout=9))
            asked = pb.RollbackBankRequest(bank_id="b", to_snapshot="before", expected_revision=2)
            assert (await ask(stub.RollbackBank(asked, timeout=9))).revision.restored_revision == 1
            found = await ask(stub.GetBank(pb.GetBankRequest(bank_id="b"), timeout=9))
            assert (found.revision, found.entries) == (3, len((await history(stub))[0].entries))
            assert list(found.snapshots) == [pb.Snapshot(name="before", revision=1)]
            assert found.recall_limit == 5
            with pytest.raises(errors.BankNotFound, match="no snapshot 'after'"):
                await exported_or_raise(stub, pb.BankRef(bank_id="b", snapshot="after"))

    async def test_the_history_comes_in_pages(self) -> None:
        async with bank_service() as stub:
            await create(stub)
            for number in range(1, 5):
                await learn(stub, f"r-{number}", number, explanation=f"Rule {'abcdefgh'[number] * 8} holds.")
            pages, after = [], 0
            while True:
                asked = pb.ListRevisionsRequest(bank_id="b", after_revision=after, page_size=2)
                page = await ask(stub.ListRevisions(asked, timeout=9))
                pages.append([each.number for each in page.revisions])
                after = page.revisions[-1].number
                if not page.more:
                    break
        assert pages == [[1, 2], [3, 4], [5]]

    async def test_an_export_read_back_is_the_same_bank(self) -> None:
        async with bank_service() as stub:
            await create(stub)
            await learn(stub)
            await ask(
                stub.CreateSnapshot(
                    pb.CreateSnapshotRequest(bank=pb.BankRef(bank_id="b", revision=1), name="s"), timeout=9
                )
            )
            back = pb.RollbackBankRequest(bank_id="b", to_revision=1, expected_revision=2)
            await ask(stub.RollbackBank(back, timeout=9))
            records = await exported(stub, pb.BankRef(bank_id="b"))
            early = await exported(stub, pb.BankRef(bank_id="b", revision=2))
        async with bank_service() as other:
            answer = await ask(other.ImportBank(iter(imports("copy", records)), timeout=9))
            assert (answer.revisions, answer.snapshots, answer.replayed) == (3, 1, False)
            assert await exported(other, pb.BankRef(bank_id="copy")) == records
            again = await ask(other.ImportBank(iter(imports("copy", records)), timeout=9))
            assert again.replayed
            with pytest.raises(errors.BankConflict, match="with another history"):
                await ask(other.ImportBank(iter(imports("copy", early)), timeout=9))
            learnt = await learn(other, bank_id="copy", expected=3)
            assert learnt.revision.number == 4

    @pytest.mark.parametrize(
        ("spoil", "problem"),
        [
            (lambda records: records[1:], "the history is not that of a bank"),
            (lambda records: records[:2], "the entries are not those that the history amounts to"),
            (lambda records: [*records, pb.BankRecord()], "is neither revision, entry nor snapshot"),
            (
                lambda records: [*records, pb.BankRecord(snapshot=pb.Snapshot(name="s", revision=9))],
                "names none of the revisions 1 to 2",
            ),
            (lambda records: [], "bank_id must not be empty"),
        ],
    )
    async def test_what_is_no_export_is_refused_whole(self, spoil: Any, problem: str) -> None:
        async with bank_service() as stub:
            await create(stub)
            await learn(stub)
            records = spoil(await exported(stub, pb.BankRef(bank_id="b")))
            with pytest.raises(errors.InputError, match=problem):
                await ask(stub.ImportBank(iter(imports("copy", records)), timeout=9))
            with pytest.raises(errors.BankNotFound):
                await history(stub, "copy")


async def exported_or_raise(stub: Stub, ref: pb.BankRef) -> list[pb.BankRecord]:
    try:
        return await exported(stub, ref)
    except grpc.aio.AioRpcError as error:
        raise status.error_from(error, status.SERVICE, "bank") from error


METHODS = {
    "none": pb.MEMORY_METHOD_NONE,
    "synapse": pb.MEMORY_METHOD_SYNAPSE,
    "awm": pb.MEMORY_METHOD_AWM,
    "reasoning": pb.MEMORY_METHOD_REASONING_BANK,
    "full": pb.MEMORY_METHOD_FULL_CONTEXT,
    "oracle": pb.MEMORY_METHOD_HUMAN_ORACLE,
}


class TestMethods:
    async def test_no_memory_remembers_nothing(self) -> None:
        async with bank_service() as stub:
            await create(stub, method=METHODS["none"])
            assert (await learn(stub)).revision.kind == pb.REVISION_KIND_OMIT
            assert await recall(stub, "anything") == []

    async def test_synapse_recalls_the_solved_task_that_is_nearest(self) -> None:
        async with bank_service() as stub:
            await create(stub, method=METHODS["synapse"])
            failed = await learn(stub, "r-0", 1)
            await learn(stub, "r-1", 2, reward=1.0, task_query="cancel an insured flight")
            await learn(stub, "r-2", 3, reward=1.0, task_query="exchange a broken lamp")
            found = await recall(stub, "a lamp that is broken")
            both = await recall(stub, "a lamp that is broken", limit=3)
        assert failed.revision.kind == pb.REVISION_KIND_OMIT
        assert [each.capability_id for each in found] == ["memory:r-2"]
        assert found[0].text.startswith("A task that was solved: exchange a broken lamp\nCUSTOMER\n| Cancel")
        assert [each.capability_id for each in both] == ["memory:r-2", "memory:r-1"]
        assert both[0].similarity > both[1].similarity

    async def test_awm_keeps_workflows_with_variables(self) -> None:
        async with bank_service() as stub:
            await create(stub, method=METHODS["awm"])
            await learn(stub, "r-1", 1, reward=1.0)
            known = await learn(stub, "r-2", 2, reward=1.0)
            short = await learn(
                stub, "r-3", 3, reward=1.0, episode=ep.Episode(messages=[ep.Message(role=ep.ROLE_AGENT)])
            )
            (item,) = await recall(stub)
        assert "1. Call get_order with {order_id}.\n2. Call cancel_order with {order_id}, {re" in item.text
        assert "A1" not in item.text
        assert not item.HasField("similarity")
        assert known.revision.rationale == "The task holds no workflow that the bank does not hold."
        assert short.revision.rationale == "The task took 0 tool calls, too few for a workflow."

    async def test_reasoning_bank_learns_from_success_and_failure(self) -> None:
        async with bank_service() as stub:
            await create(stub, method=METHODS["reasoning"])
            await learn(stub, "r-1", 1, task_query="cancel an insured flight")
            await learn(stub, "r-2", 2, reward=1.0, task_query="exchange a broken lamp")
            (flight,) = await recall(stub, "an insured flight to cancel")
            (lamp,) = await recall(stub, "broken lamp")
        assert LESSON in flight.text
        assert "get_order, cancel_order" in lamp.text

    async def test_full_context_recalls_every_entry(self) -> None:
        async with bank_service() as stub:
            made = await create(stub, method=METHODS["full"])
            await learn(stub)
            items = await recall(stub, "anything")
        assert [each.capability_id for each in items] == [
            each.capability_id for each in made.revision.entries
        ]
        assert any(LESSON in each.text for each in items)

    async def test_the_oracle_keeps_clarifications_word_for_word_and_once(self) -> None:
        oracle = {"regime": pb.FEEDBACK_REGIME_ORACLE}
        model = FakeModel()
        async with bank_service(model) as stub:
            await create(stub, method=METHODS["oracle"])
            kinds = [
                (await learn(stub, "r-1", 1, **oracle)).revision.kind,
                (await learn(stub, "r-2", 2, **oracle)).revision.kind,
                (await learn(stub, "r-3", 3, explanation="", **oracle)).revision.kind,
            ]
            items = await recall(stub)
            with pytest.raises(errors.InputError, match="learns under FEEDBACK_REGIME_ORACLE alone"):
                await learn(stub, "r-4", 4)
        assert kinds == [pb.REVISION_KIND_ADD, pb.REVISION_KIND_OMIT, pb.REVISION_KIND_OMIT]
        assert [each.text for each in items] == [LESSON]
        assert not model.asked

    async def test_all_entries_of_any_method_can_be_recalled(self) -> None:
        async with bank_service() as stub:
            made = await create(stub)
            near = await recall(stub, "compensation for a delayed flight", limit=1)
            everything = await recall(stub, all=True)
        assert near[0].capability_id == "send_certificate_compensation"
        assert len(everything) == len(made.revision.entries)

    async def test_a_text_is_embedded_once(self) -> None:
        embedder, store = BagOfWords(), MemoryStore()
        for _ in range(2):
            async with bank_service(store=store, embedder=embedder) as stub:
                await create(stub)
                await recall(stub, "flight")
                await recall(stub, "flight")
        entries = [text for text in embedder.asked if text != "flight"]
        assert len(entries) == len(set(entries))
        assert embedder.asked.count("flight") == 2  # once a process

    async def test_another_embedder_is_refused_for_reading_and_writing(self) -> None:
        store = MemoryStore()
        async with bank_service(store=store) as stub:
            await create(stub)
        async with bank_service(store=store, embedder=BagOfWords("other")) as stub:
            fork = pb.CreateBankRequest(bank_id="f", fork_of=pb.BankRef(bank_id="b"))
            for call in (recall(stub, "flight"), learn(stub), ask(stub.CreateBank(fork, timeout=9))):
                with pytest.raises(errors.EmbedderMismatch, match="made with the embedder 'bag'"):
                    await call
            assert len(await history(stub)) == 1


class TestBadInput:
    @pytest.mark.parametrize(
        ("fields", "problem"),
        [
            ({"bank_id": ""}, "bank_id must not be empty"),
            ({"request_id": ""}, "request_id must not be empty"),
            ({"reward": 1.5}, "reward is 1.5"),
            ({"reward": float("nan")}, "reward is nan"),
            ({"regime": pb.FEEDBACK_REGIME_UNSPECIFIED}, "regime must say"),
            ({"regime": pb.FEEDBACK_REGIME_REWARD}, "explanation must be empty under the reward regime"),
            ({"episode": ep.Episode()}, "episode.messages must not be empty"),
            ({"task_query": " "}, "task_query must not be empty"),
        ],
    )
    async def test_feedback_that_says_too_little(self, fields: dict[str, Any], problem: str) -> None:
        asked = feedback()
        merged = pb.RecordFeedbackRequest()
        for descriptor, value in asked.ListFields():
            if descriptor.name not in fields:
                merged.MergeFrom(pb.RecordFeedbackRequest(**{descriptor.name: value}))
        merged.MergeFrom(pb.RecordFeedbackRequest(**fields))
        async with bank_service() as stub:
            with pytest.raises(errors.InputError, match=problem):
                await ask(stub.RecordFeedback(merged, timeout=9))

    async def test_calls_on_what_does_not_exist(self) -> None:
        async with bank_service() as stub:
            ref = pb.BankRef(bank_id="nobody")
            for call in (
                stub.ListHeaders(pb.ListHeadersRequest(bank=ref), timeout=9),
                stub.GetBank(pb.GetBankRequest(bank_id="nobody"), timeout=9),
                stub.RecordFeedback(feedback(bank_id="nobody"), timeout=9),
                stub.CreateBank(pb.CreateBankRequest(bank_id="f", fork_of=ref), timeout=9),
            ):
                with pytest.raises(errors.BankNotFound, match="no bank 'nobody'"):
                    await ask(call)
            await create(stub)
            late = pb.ListHeadersRequest(bank=pb.BankRef(bank_id="b", revision=2))
            with pytest.raises(errors.BankNotFound, match="has the revisions 1 to 1, not 2"):
                await ask(stub.ListHeaders(late, timeout=9))

    async def test_requests_that_contradict_themselves(self) -> None:
        async with bank_service() as stub:
            for call, problem in (
                (stub.CreateBank(creation(method=pb.MEMORY_METHOD_UNSPECIFIED), timeout=9), "method is 0"),
                (
                    stub.CreateBank(
                        pb.CreateBankRequest(bank_id="b", method=pb.MEMORY_METHOD_POLICY_BANK), timeout=9
                    ),
                    "policy.primary.text must not be empty",
                ),
                (
                    stub.RollbackBank(pb.RollbackBankRequest(bank_id="b"), timeout=9),
                    "give to_revision or to_snapshot",
                ),
                (
                    stub.ListHeaders(
                        pb.ListHeadersRequest(bank=pb.BankRef(bank_id="b", revision=1, snapshot="s")),
                        timeout=9,
                    ),
                    "a revision or a snapshot, not both",
                ),
            ):
                with pytest.raises(errors.InputError, match=problem):
                    await ask(call)

    async def test_a_call_without_a_deadline(self) -> None:
        async with bank_service() as stub:
            with pytest.raises(grpc.aio.AioRpcError, match="needs a deadline"):
                await stub.GetBank(pb.GetBankRequest(bank_id="b"))


HOSTILE = ["../../etc/passwd", "nul\x00", "new\nline", "\U0001f600", "{{x}} ${y} %s", "x" * 3_000, "| quoted"]


def added(capability_id: str) -> str:
    fields = ("header", "trigger", "preconditions", "eligibility", "action", "key_insight")
    return json.dumps(
        {
            "rationale": "r", "failure_type": "policy_gap", "gap_class": "ambiguous_scope",
            "operation": "ADD", "capability_id": capability_id, "tool_names": [],
            **{field: f"{field} of it" for field in fields},
        }
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["memory", "embedded"])
async def test_any_string_is_a_capability_id(kind: str, tmp_path: Path) -> None:
    store = await open_store(config(store="memory" if kind == "memory" else str(tmp_path)), 64)
    model = FakeModel()
    async with bank_service(model, store) as stub:
        await create(stub)
        for number, name in enumerate(HOSTILE, 1):
            model.scripted = [added(name)]
            assert (await learn(stub, name, number)).revision.kind == pb.REVISION_KIND_ADD
        asked = pb.BatchGetSpecsRequest(bank=pb.BankRef(bank_id="b"), capability_ids=HOSTILE)
        specs = await ask(stub.BatchGetSpecs(asked, timeout=9))
        assert [entry.capability_id for entry in specs.entries] == HOSTILE
        assert len(await recall(stub, "trigger of it", limit=50)) >= len(HOSTILE)
    await store.close()


async def script(store: BankStore) -> list[Any]:
    """Answers to one sequence of calls, without times."""
    async with bank_service(store=store) as stub:
        answers: list[Any] = [await create(stub)]
        answers += [await learn(stub), await learn(stub, "r-2", 2, explanation="Bicycles travel free.")]
        answers.append(await recall(stub, "a bicycle and a flight", limit=3))
        back = pb.RollbackBankRequest(bank_id="b", to_revision=2, expected_revision=3)
        answers.append(await ask(stub.RollbackBank(back, timeout=9)))
        ref = pb.BankRef(bank_id="b", revision=2)
        answers.append(await ask(stub.ListHeaders(pb.ListHeadersRequest(bank=ref), timeout=9)))
        answers.append(await recall(stub, "insurance", limit=2))
        answers.append(await history(stub))
    await store.close()
    return [_without_times(str(answer)) for answer in answers]


def _without_times(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if "seconds:" not in line and "nanos:" not in line)


async def test_answers_are_the_same_on_every_store(tmp_path: Path) -> None:
    expected = await script(MemoryStore())
    assert await script(await open_store(config(store=str(tmp_path)), 64)) == expected
    with gateway() as (_, port):
        settings = config(store="http://127.0.0.1:6333", store_grpc_port=port)
        assert await script(await open_store(settings, 64)) == expected


async def test_the_offline_embedder_finds_the_task_that_means_the_same() -> None:
    pytest.importorskip("onnxruntime", reason="the extra [policybank] is not installed")
    async with (
        servicer(config(), FakeModel()) as banks,
        serving("127.0.0.1:0", [policybank_service(banks)]) as address,
        Channels() as channels,
    ):
        stub: Any = policybank_pb2_grpc.PolicyBankServiceStub(channels.get(address))
        await create(stub, method=METHODS["reasoning"])
        await learn(stub, "r-1", 1, task_query="The customer wants to call off a trip because of a storm.")
        await learn(stub, "r-2", 2, task_query="The customer got a lamp that does not light up.")
        (found,) = await recall(stub, "Bad weather: please cancel my flight.")
    assert found.capability_id == "memory:r-1"
    assert 0.2 < found.similarity < 1


class TestProcess:
    @asynccontextmanager
    async def process(self, directory: Path, url: str) -> AsyncIterator[tuple[Any, Stub]]:
        process = await create_subprocess_exec(
            sys.executable, "-m", "services.policybank", "--store", str(directory), "--model-url", url,
            "--model", "rehearsal-judge", "--embedder-url", url, "--embedder-model", "e",
            "--embedder-dimension", "64", cwd=ROOT, stdout=PIPE, stderr=PIPE,
        )  # fmt: skip
        assert process.stdout is not None
        line = await process.stdout.readline()
        try:
            async with Channels() as channels:
                channel = channels.get(json.loads(line)["address"])
                yield process, policybank_pb2_grpc.PolicyBankServiceStub(channel)
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()

    async def test_killed_in_the_middle_of_a_stream_it_goes_on_where_it_was(self, tmp_path: Path) -> None:
        """With a feedback in flight the bank stands before or after it, and the driver asks again."""
        number = 1
        async with RehearsalServer() as server:
            for life in range(2):
                async with self.process(tmp_path / "bank", server.url) as (process, stub):
                    await create(stub)
                    number = len(await history(stub))
                    for _ in range(2):
                        rule = f"Rule {'abcdefgh'[number % 8] * 9} applies."
                        learnt = await learn(stub, f"r-{number}", number, explanation=rule)
                        assert learnt.revision.number == number + 1
                        number += 1
                    flying = asyncio.ensure_future(
                        stub.RecordFeedback(feedback(f"r-{number}", number), timeout=9)
                    )
                    await asyncio.sleep(0.008 * life)
                    process.send_signal(signal.SIGKILL)
                    await process.wait()
                    await asyncio.gather(flying, return_exceptions=True)
            async with self.process(tmp_path / "bank", server.url) as (_, stub):
                held = await history(stub)
                assert [each.number for each in held] == list(range(1, len(held) + 1))
                assert len(held) in (number, number + 1)
                again = await learn(stub, f"r-{number}", len(held))
                assert again.replayed == (len(held) == number + 1)
                assert again.revision.number == number + 1

    @pytest.mark.parametrize(
        ("flags", "problem"),
        [
            ([], "--store is missing"),
            (["--store", "http://127.0.0.1:9"], "cannot reach the server in the policy bank store"),
        ],
    )
    async def test_bad_settings_end_it_with_one_line(self, flags: list[str], problem: str) -> None:
        process = await create_subprocess_exec(
            sys.executable, "-m", "services.policybank", "--model-url", "http://unused", "--model", "m",
            *flags, cwd=ROOT, stdout=PIPE, stderr=PIPE,
        )  # fmt: skip
        _, said = await process.communicate()
        assert process.returncode == 2
        assert said.decode().startswith("error: ")
        assert problem in said.decode()
        assert said.decode().count("\n") == 1


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"embedder_url": "http://x"}, "embedder_url needs embedder_model and embedder_dimension"),
        ({"embedder_model": "x"}, "describe an endpoint: give embedder_url"),
        ({"store": "http://x", "store_api_key_env": "NOT_SET"}, "names NOT_SET, which is not set"),
        ({"embedder_api_key_env": "NOT_SET", "embedder_url": "http://x", "embedder_model": "e",
          "embedder_dimension": 3}, "names NOT_SET, which is not set"),
    ],
)  # fmt: skip
async def test_settings_that_do_not_go_together(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(errors.InputError, match=problem):
        async with servicer(config(**settings), FakeModel()):
            pass


async def test_the_description_tells_what_changes_behaviour() -> None:
    async with bank_service(synapse_limit=3) as stub:
        info = (await ask(stub.GetBankServiceInfo(pb.GetBankServiceInfoRequest(), timeout=9))).info
    assert info.curator.model == "m"
    assert len(info.curator.prompt_digest) == 64
    assert info.embedder == pb.Embedder(name="bag", dimension=64)
    assert info.parameters["synapse_limit"] == "3"
    assert info.rehearsal


async def test_a_bank_stays_as_small_as_can_be_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    async with bank_service() as stub:
        await create(stub)
        await learn(stub)
        records = await exported(stub, pb.BankRef(bank_id="b"))
        monkeypatch.setattr(transfer, "MOST_BYTES", sum(each.ByteSize() for each in records))
        monkeypatch.setattr(transfer, "ROOM_BYTES", 0)
        with pytest.raises(errors.InputError, match=r"bank 'b' is full.*Fork it"):
            await learn(stub, "r-2", 2)
        assert len(await history(stub)) == 2
        again = await learn(stub)
        assert again.replayed, "what is recorded is answered for ever"
        await ask(stub.ImportBank(iter(imports("copy", records)), timeout=9))
        fork = pb.CreateBankRequest(bank_id="fork", fork_of=pb.BankRef(bank_id="b"))
        await ask(stub.CreateBank(fork, timeout=9))
