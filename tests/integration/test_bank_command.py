"""`policysweep bank` against a policybank service that runs as a process."""

from __future__ import annotations

import copy
import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from qdrant_client import QdrantClient
from rich.console import Console

from policysweep import cli
from policysweep.bank_client import BankContents
from policysweep.bank_display import print_banks
from policysweep.bank_file import encode_records, read_bank
from policysweep.bank_markdown import bank_markdown
from policysweep.commands import bank as command
from policysweep.datasets.load import load
from policysweep.datasets.sources import read
from policysweep.v1 import agent_pb2, scenario_pb2
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import policybank_pb2 as pb
from services.policybank.bank import Bank, first_revision, lesson_revision, rollback_revision

ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HOSTILE = "Refund <img src=x>\x1b[2J\n# Approved\n[link](http://x) `code` **bold**"


class Done(NamedTuple):
    """What a command left."""

    code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    """The address of a service with an empty store."""
    argv = (
        "--store",
        "memory",
        "--model-url",
        "http://127.0.0.1:9/v1",
        "--model",
        "m",
        "--stop-on-stdin-eof",
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "services.policybank", *argv, "--stop-on-stdin-eof"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        yield json.loads(process.stdout.readline())["address"]
        process.stdin.close()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.chdir(ROOT)

    def call(*argv: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["policysweep", "bank", *map(str, argv)])
        code = 0
        try:
            cli.main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        return Done(code, *capsys.readouterr())

    return call


def entry(capability_id: str, action: str, insight: str = "") -> pb.Entry:
    return pb.Entry(
        capability_id=capability_id,
        header=f"About {capability_id}.",
        spec=pb.Spec(trigger="A request.", action=action, key_insight=insight),
        tool_names=["get_order"],
    )


def learnt(bank: Bank, after: pb.Entry | None, task: str, **fields: object) -> Bank:
    draft = pb.Revision(
        after=after,
        rationale=f"Because of task {task}.",
        reward=0,
        request_id=f"r-{task}",
        request_digest=task,
        provenance=pb.Provenance(episode_id=f"e-{task}", task_id=task, request_id=f"r-{task}"),
        usage=ep.Usage(prompt_tokens=1200, completion_tokens=34, model_calls=1),
    )
    draft.MergeFrom(pb.Revision(**fields))  # type: ignore[arg-type]  # fields of a revision
    return bank.extended([lesson_revision(bank.latest, draft, NOW)])


def taught(*, rehearsal: bool = True) -> BankContents:
    """1 CREATE refund, window; 2 REVISE refund; 3 ADD wrong; 4 ROLLBACK to 2; 5 OMIT; 6 ADD gift."""
    info = pb.BankInfo(
        method=pb.MEMORY_METHOD_POLICY_BANK,
        policy=scenario_pb2.Policy(primary=scenario_pb2.PolicyDocument(text="All \u2028 of it.")),
        embedder=pb.Embedder(name="all-MiniLM-L6-v2-onnx-int8", dimension=384),
        curator=pb.CuratorInfo(model="m", prompt_digest="d" * 64, sampling=agent_pb2.Sampling(max_tokens=9)),
    )
    entries = [entry("refund", "Refuse."), entry("window", "Count the days.")]
    first = first_revision(info, entries, pb.Revision(rationale="Made from the policy."), NOW)
    bank = Bank.of("b", [first])
    bank = learnt(
        bank, entry("refund", "Pay.", "Any reason counts."), "39", failure_type=2, gap_class=1,
        regime=2, explanation="Any reason counts,\nnot only health.", rehearsal=rehearsal,
    )  # fmt: skip
    bank = learnt(bank, entry("wrong", "Pay twice."), "40")
    bank = bank.extended([rollback_revision(bank, 2, pb.Revision(), NOW)])
    bank = learnt(bank, None, "41", failure_type=1, regime=1)
    bank = learnt(bank, entry("gift", HOSTILE), "42")
    records = [pb.BankRecord(revision=each) for each in bank.revisions]
    records += [pb.BankRecord(entry=each) for each in bank.latest.sorted_entries()]
    records += [pb.BankRecord(snapshot=pb.Snapshot(name="before gifts", revision=5))]
    return BankContents.of("b", records)


@pytest.fixture
def held(run: Run, target: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A bank of its own for each test, in the service."""
    (tmp_path / "in.jsonl").write_bytes(encode_records(taught().records()))
    done = run("import", tmp_path / "in.jsonl", request.node.name, "--target", target)
    assert done == (0, f"bank {request.node.name!r}: 6 revisions, 3 entries, 1 snapshots\n", "")
    return str(request.node.name)


# ------------------------------------------------------------------ looking


def test_show_tells_what_a_bank_is_and_what_shaped_its_entries(run: Run, target: str, held: str) -> None:
    shown = run("show", held, "--target", target)
    assert shown.code == 0
    for part in (
        "REHEARSAL", "policy bank", "6, of 2026-01-02 03:04:05 UTC", "before gifts (5)", "384 numbers",
        "KEY INSIGHT: Any reason counts.", "Last changed by revision 2.",
        "Shaped by task 39, episode e-39, request r-39.",
    ):  # fmt: skip
        assert part in shown.out
    assert "\x1b" not in shown.out
    assert "Pay twice." not in shown.out
    one = run("show", held, "--entry", "window", "--revision", 1, "--target", target)
    assert "Count the days." in one.out
    assert "Refuse." not in one.out


def test_show_as_json_is_the_contract_s_messages(run: Run, target: str, held: str) -> None:
    shown = json.loads(run("show", held, "--snapshot", "before gifts", "--json", "--target", target).out)
    assert [shown[key] for key in ("bank_id", "revision", "rehearsal")] == [held, 5, True]
    assert shown["info"]["method"] == "MEMORY_METHOD_POLICY_BANK"
    assert [each["capability_id"] for each in shown["entries"]] == ["refund", "window"]


def test_list_shows_every_bank(run: Run, target: str, held: str) -> None:
    listed = json.loads(run("list", "--json", "--target", target).out)["banks"]
    (found,) = (each for each in listed if each["bank_id"] == held)
    assert (found["revision"], found["entries"]) == (6, 3)
    assert held in run("list", "--target", target).out


def test_history_tells_what_each_feedback_led_to(run: Run, target: str, held: str) -> None:
    told = run("history", held, "--target", target)
    assert told.code == 0
    lines = told.out.splitlines()
    titles = [line.strip() for line in lines if "2026-01-02" in line]
    assert [title.split("  ")[1].split(" 2026")[0] for title in titles] == [
        "CREATE", "REVISE refund", "ADD wrong", "ROLLBACK", "OMIT", "ADD gift",
    ]  # fmt: skip
    assert ["taken back" in title for title in titles] == [False, False, True, False, False, False]
    for part in (
        "Feedback: task 39, episode e-39, request r-39, reward 0",
        "It said (explanation): Any reason counts,",
        "Failure: type II: policy gap, ambiguous scope", "Failure: type I: policy violation",
        "Why: Because of task 39.", "Curator: 1,234 tokens in 1 call",
    ):  # fmt: skip
        assert part in told.out
    assert "+ACTION: Pay." not in told.out


def test_history_of_one_entry_with_its_diffs(run: Run, target: str, held: str) -> None:
    told = run("history", held, "--entry", "refund", "--diffs", "--target", target).out
    assert "-ACTION: Refuse." in told
    assert "+ACTION: Pay." in told
    assert "OMIT" not in told
    as_json = json.loads(run("history", held, "--entry", "refund", "--json", "--target", target).out)
    assert [each["number"] for each in as_json["revisions"]] == [1, 2]


def test_diff_of_two_revisions(run: Run, target: str, held: str) -> None:
    told = run("diff", held, 1, "before gifts", "--target", target).out
    assert "refund (changed)" in told
    assert "+KEY INSIGHT: Any reason counts." in told
    assert "window" not in told
    found = json.loads(run("diff", held, 6, 3, "--json", "--target", target).out)
    assert [found[key] for key in ("added", "removed", "changed")] == [["wrong"], ["gift"], []]
    assert run("diff", held, 2, 5, "--target", target).out == "Revisions 2 and 5 hold the same.\n"


# ------------------------------------------------------------------ out and in


def test_an_export_is_read_back_without_loss(run: Run, target: str, held: str, tmp_path: Path) -> None:
    done = run("export", held, tmp_path / "out.jsonl", "--target", target)
    assert done.out.splitlines()[1].startswith("REHEARSAL")
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "in.jsonl").read_bytes()
    assert read_bank(tmp_path / "out.jsonl") == list(taught().records())
    again = run("import", tmp_path / "out.jsonl", held, "--target", target)
    assert again.out.startswith(f"bank {held!r} was there already: 6 revisions")
    early = run("export", held, tmp_path / "early.jsonl", "--revision", 2, "--target", target)
    assert early.code == 0
    assert run("import", tmp_path / "early.jsonl", f"{held}-2", "--target", target).code == 0
    refused = run("import", tmp_path / "early.jsonl", held, "--target", target)
    assert refused == (2, "", f"error: there is a bank {held!r} with another history: choose another id\n")


def test_a_file_that_is_there_is_replaced_when_asked_only(
    run: Run, target: str, held: str, tmp_path: Path
) -> None:
    file = tmp_path / "bank.md"
    file.write_text("mine")
    refused = run("export", held, file, "--format", "markdown", "--target", target)
    assert refused.code == 2
    assert "is there already: name another file, or give --force to replace it" in refused.err
    assert file.read_text() == "mine"
    assert run("export", held, file, "--format", "markdown", "--force", "--target", target).code == 0
    assert file.read_text().startswith(f"# Policy bank `{held}`\n")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["bank.md", "in.jsonl"]


def section(page: str, title: str) -> str:
    return page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_markdown_shows_each_entry_with_the_evidence_behind_it() -> None:
    page = bank_markdown(taught())
    assert "> **REHEARSAL: " in page
    assert "* Shaped by feedback: `gift`, `refund`\n" in page
    refund = section(page, "`refund`")
    assert refund.index("> Any reason counts.") < refund.index("> Pay.")
    for part in (
        "**Revision 1, create, 2026-01-02 03:04:05 UTC**",
        "**Revision 2, revise, 2026-01-02 03:04:05 UTC, rehearsal**",
        "* Feedback: task 39, episode e-39, request r-39, reward 0",
        "* Failure: type II: policy gap, ambiguous scope",
        "* Rationale: Because of task 39.",
        "> Any reason counts,  \n> not only health.",
        "```diff\n--- revision 1\n+++ revision 2\n",
        "-ACTION: Refuse.\n+ACTION: Pay.\n",
    ):
        assert part in refund
    assert not section(page, "`wrong`")
    assert "Because of task 41." in section(page, "Feedback that changed nothing")
    back = section(page, "Taken back")
    assert "restores revision 2" in back
    assert "no longer stand: 3" in back
    assert "REHEARSAL" not in bank_markdown(taught(rehearsal=False))


def test_markdown_begins_with_what_feedback_shaped() -> None:
    bank = taught()
    page = bank_markdown(replace(bank, entries=dict(reversed(list(bank.entries.items())))))
    assert list(bank.entries)[-1] == "window"
    assert page.index("## `refund`") < page.index("## `gift`") < page.index("## `window`")


def test_a_list_breaks_no_id() -> None:
    name, out = "streams-55ca930786a6/" + "a" * 90, io.StringIO()
    summary = pb.BankSummary(bank_id=name, method=pb.MEMORY_METHOD_REASONING_BANK, revision=35, entries=3)
    print_banks([summary], Console(file=out, width=80))
    heads, line = out.getvalue().splitlines()
    assert heads.split()[-2:] == ["Entries", "Bank"]
    assert line.split()[-3:] == ["35", "3", name]


def test_markdown_obeys_no_text_of_others() -> None:
    page = bank_markdown(taught())
    quoted = section(page, "`gift`").partition("### Evidence")[0]
    assert "<img" not in quoted
    assert "\x1b" not in page
    assert "> \\# Approved" in quoted
    assert "\\[link\\](http://x) \\`code\\` \\*\\*bold\\*\\*" in quoted


# ------------------------------------------------------------------ rolling back


def test_a_rollback_says_what_it_takes_back(run: Run, target: str, held: str) -> None:
    done = run("rollback", held, 1, "--yes", "--target", target)
    assert done.code == 0
    told, _, again = done.out.partition("gift (removed)")
    assert told.startswith("Taken back:")
    assert [task for task in range(39, 43) if f"Because of task {task}." in told] == [39, 41, 42]
    assert "-ACTION: Pay." in again
    assert done.out.endswith(f"bank {held!r} is at revision 7, which restores 1\n")
    back = run("rollback", held, "before gifts", "--yes", "--target", target)
    assert back.out.startswith("Standing again:")
    assert json.loads(run("show", held, "--json", "--target", target).out)["revision"] == 8


def test_a_rollback_is_confirmed(run: Run, target: str, held: str, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = run("rollback", held, 1, "--target", target)
    assert refused == (2, "", "error: nobody can be asked here: give --yes to roll back\n")
    monkeypatch.setattr(command, "sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))
    answers = iter("ny")
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: next(answers))
    assert run("rollback", held, 1, "--target", target).code == 130
    assert json.loads(run("show", held, "--json", "--target", target).out)["revision"] == 6
    assert run("rollback", held, 1, "--target", target).code == 0


def test_a_rollback_of_a_bank_that_has_moved_on_is_refused(run: Run, target: str, held: str) -> None:
    refused = run("rollback", held, 1, "--expected-revision", 5, "--yes", "--target", target)
    assert refused.code == 2
    assert refused.err == f"error: bank {held!r} is at revision 6, not at 5 as expected: read it again\n"
    nothing = run("rollback", held, 6, "--yes", "--target", target)
    assert nothing.err == f"error: bank {held!r} is at revision 6: there is nothing to take back\n"


# ------------------------------------------------------------------ what goes wrong


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["show", "nobody"], "there is no bank 'nobody': create it first"),
        (["show", "HELD", "--revision", "9"], "has the revisions 1 to 6, not 9"),
        (["show", "HELD", "--snapshot", "s"], "has no snapshot 's'"),
        (["show", "HELD", "--snapshot", "s", "--revision", "1"], "give --revision or --snapshot, not both"),
        (
            ["show", "HELD", "--entry", "x"],
            "has no entry 'x' at revision 6; it has 'gift', 'refund', ",
        ),
        (["history", "HELD", "--entry", "x"], "never had an entry 'x'; it has 'gift'"),
        (["diff", "HELD", "1", "99999999999"], "has no revision 99999999999"),
        (["export", "HELD", "/no/such/folder/x"], "cannot write /no/such/folder/x: No such file"),
        (["import", "/no/such/file", "b"], "cannot read /no/such/file: No such file"),
    ],
)
def test_bad_input_is_one_line(run: Run, target: str, held: str, argv: Sequence[str], said: str) -> None:
    done = run(*(held if each == "HELD" else each for each in argv), "--target", target)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "file.jsonl: holds no bank"),
        ("{", "file.jsonl:1"),
        ('{"revision": {"number": 1}}\n{"other": 1}', "file.jsonl:2: not a record of a policy bank"),
        ("[1]", "file.jsonl:1: not a record of a policy bank"),
        ("{}", "file.jsonl:1: neither revision, entry nor snapshot"),
        ('{"revision": {"number": 2}}', "the history is not that of a bank"),
    ],
)
def test_a_file_that_holds_no_bank(run: Run, target: str, tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "file.jsonl").write_text(content)
    done = run("import", tmp_path / "file.jsonl", "new", "--target", target)
    assert done.code == 2
    assert said in done.err
    assert run("show", "new", "--target", target).code == 2


def test_a_service_that_is_not_there(run: Run) -> None:
    done = run("list", "--target", "127.0.0.1:9")
    assert done.code == 1
    assert done.err.startswith("error: policy bank at 127.0.0.1:9 cannot be reached: ")
    assert len(done.err.splitlines()) == 1


# ------------------------------------------------------------------ making


def scenarios_file(tmp_path: Path, *texts: str) -> Path:
    """The first scenario of the built-in data set under one policy after another."""
    lines = []
    for number, text in enumerate(texts):
        scenario = copy.deepcopy(read("builtin").scenarios[0].value)
        scenario["scenario_id"] = f"s{number}"
        scenario["Policy"]["Primary Policy"]["text"] = text
        lines.append(json.dumps(scenario))
    (tmp_path / "scenarios.jsonl").write_text("\n".join(lines))
    return tmp_path / "scenarios.jsonl"


def test_a_bank_is_made_of_the_policy_that_the_scenarios_share(run: Run, target: str, tmp_path: Path) -> None:
    """With a method that begins empty: the service of these tests has no curator."""
    argv = ("made", "--dataset", "builtin", "--method", "reasoning_bank", "--target", target)
    assert run("create", *argv) == (0, "bank 'made': reasoning bank, 0 entries, revision 1\n", "")
    again = run("create", *argv)
    assert again == (0, "bank 'made' was there already: reasoning bank, 0 entries, revision 1\n", "")
    shown = json.loads(run("show", "made", "--json", "--target", target).out)
    assert shown["info"]["policy"]["primary"]["text"] == load("builtin").scenarios[0].policy.primary.text
    other = run("create", "made", "--dataset", "builtin", "--method", "awm", "--target", target)
    assert other.code == 2
    assert "made from something else: choose another id" in other.err


def test_a_fork_begins_with_another_bank(run: Run, target: str, held: str) -> None:
    forked = run("create", f"{held}@copy", "--fork-of", f"{held}@2", "--target", target)
    assert (forked.code, forked.out.splitlines()[0]) == (
        0, f"bank '{held}@copy': policy bank, 2 entries, revision 1",
    )  # fmt: skip
    assert "REHEARSAL" in forked.out
    whole = run("create", "all", "--fork-of", f"{held}@copy", "--method", "full_context", "--target", target)
    assert whole.out.splitlines()[0] == "bank 'all': full context, 2 entries, revision 1"


def test_a_curator_makes_the_entries_of_a_bank_in_a_folder(run: Run, tmp_path: Path) -> None:
    file = scenarios_file(tmp_path, "# Returns\n\n## 1. Windows\n\nYou may return within 30 days.\n")
    argv = ("made", "--dataset", file, "--store", tmp_path / "store", "--model", "rehearsal-judge")
    made = run("create", *argv)
    assert made.code == 0, made.err
    assert "bank 'made': policy bank, " in made.out
    assert "The curator: rehearsal-judge, 12 calls, " in made.out
    assert "REHEARSAL" in made.out
    assert "was there already" in run("create", *argv).out


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "give either --dataset SOURCE or --fork-of BANK"),
        (["--dataset", "builtin", "--fork-of", "b"], "give either --dataset SOURCE or --fork-of BANK"),
        (["--dataset", "TWO"], "have 2 different policies, and a bank begins with one: choose it with "
                               "--scenario, for example one of s0, s1"),
        (["--dataset", "TWO", "--scenario", "s2"], "has no scenario 's2'"),
        (["--dataset", "builtin", "--model", "m", "--model-url", "http://h"], "has a curator of its own"),
        (["--dataset", "builtin", "--model", "m"], "--model-url is missing: no server is started for m"),
        (["--dataset", "builtin", "--model-url", "http://h"], "--model is missing"),
        (["--dataset", "builtin", "--model", "m", "--model-url", "h"], "--model-url: must be the base URL"),
        (["--fork-of", "nobody"], "there is no bank 'nobody'"),
    ],
)  # fmt: skip
def test_what_no_bank_is_made_of(
    run: Run, target: str, tmp_path: Path, argv: Sequence[str], said: str
) -> None:
    two = str(scenarios_file(tmp_path, "One.", "Another."))
    done = run("create", "new", *(two if each == "TWO" else each for each in argv), "--target", target)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert len(done.err.splitlines()) == 1
    chosen = run("create", "s1", "--dataset", two, "--scenario", "s1", "--method", "awm", "--target", target)
    assert chosen.code == 0


def test_a_folder_needs_a_curator(run: Run, tmp_path: Path) -> None:
    done = run("create", "new", "--dataset", "builtin", "--store", tmp_path / "store")
    assert done == (2, "", "error: --store needs --model, the curator that writes the entries\n")
    assert not (tmp_path / "store").exists()


# ------------------------------------------------------------------ a folder instead of a service


def test_a_folder_is_served_as_long_as_it_takes(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(encode_records(taught().records()))
    assert run("import", tmp_path / "in.jsonl", "b", "--store", tmp_path / "store").code == 0
    assert "Any reason counts." in run("show", "b", "--store", tmp_path / "store").out


def test_a_folder_is_served_over_tls_when_the_command_has_a_certificate(run: Run, tmp_path: Path) -> None:
    certificates, store = tmp_path / "tls", tmp_path / "store"
    script = (sys.executable, str(ROOT / "scripts" / "dev_certificates.py"), str(certificates))
    subprocess.run(script, check=True, stdout=subprocess.DEVNULL)
    with closing(QdrantClient(path=str(store))):
        pass
    names = {"cert": "tls.crt", "key": "tls.key", "ca": "ca.crt"}
    flags = [
        part for name, file in names.items() for part in (f"--tls-{name}", certificates / "policybank" / file)
    ]
    assert run("list", "--store", store, *flags) == (0, "There are no banks.\n", "")


def test_a_folder_that_holds_no_banks_is_left_alone(run: Run, tmp_path: Path) -> None:
    done = run("list", "--store", tmp_path)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert f"{tmp_path} holds no policy banks" in done.err
    assert not list(tmp_path.iterdir())
    for argv in ((), ("--store", tmp_path, "--target", "x:1")):
        assert "give either --target HOST:PORT" in run("list", *argv).err


def test_a_folder_that_a_service_has_open_is_refused(run: Run, tmp_path: Path) -> None:
    with closing(QdrantClient(path=str(tmp_path))):
        done = run("list", "--store", tmp_path)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: policybank: {tmp_path} is open in another process: one process at")
    assert len(done.err.splitlines()) == 1
