"""Judging as a user does it: as processes, only what is missing, every verdict once, whatever is killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from policysweep.v1 import judge_pb2, run_pb2

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
PANELS = {"policy_resolution", "dialogue", "behavioural", "turn_level", "interest"}
UNITS = 8
SECONDS = 150


def policysweep(*args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        (sys.executable, "-m", "policysweep", *args),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit code and what was printed, on one line."""
    output, _ = process.communicate(timeout=SECONDS)
    return process.returncode, " ".join(output.split())


class Run:
    """A run's folder, and the commands that a user has for it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self, *options: str) -> subprocess.Popen[str]:
        return policysweep("judge", str(self.folder), *options, "--no-report")

    def judge(self, *options: str) -> tuple[int, str]:
        return ended(self.start(*options))

    def verify(self) -> tuple[int, str]:
        return ended(policysweep("verify", str(self.folder), "--verdicts"))

    def contents(self) -> dict[str, bytes]:
        """Every file of the run by name, but for logs and reports."""
        files = (path for path in self.folder.rglob("*") if path.is_file())
        named = {str(path.relative_to(self.folder)): path for path in files}
        return {
            name: path.read_bytes()
            for name, path in named.items()
            if not name.startswith(("logs/", "report"))
        }

    def verdict_files(self) -> set[str]:
        return {name for name in self.contents() if name.startswith("verdicts/")}

    def verdicts(self, judge: str) -> list[run_pb2.VerdictRecord]:
        found = sorted((self.folder / "verdicts" / judge).rglob("*.binpb"))
        return [run_pb2.VerdictRecord.FromString(path.read_bytes()) for path in found]

    def wait_for_verdicts(self, number: int) -> None:
        deadline = time.monotonic() + SECONDS
        while len(self.verdict_files()) < number:
            assert time.monotonic() < deadline, f"only {len(self.verdict_files())} verdicts"
            time.sleep(0.02)


def write_sweep(folder: Path, **changes: Any) -> Path:
    spec = {
        "name": "judged",
        "scenarios": {"limit": 4},
        "agents": [{"name": name, "model": f"rehearsal-{name}"} for name in ("strict", "lenient")],
        "judges": [{"name": "first", "model": "rehearsal-judge"}],
        **changes,
    }
    file = folder / "sweep.yaml"
    file.write_text(yaml.safe_dump(spec), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A run of 8 units that `policysweep run` played and judged, and what it printed."""
    folder = tmp_path_factory.mktemp("played")
    sweep = write_sweep(folder)
    code, output = ended(policysweep("run", str(sweep), "--store", str(folder), "--no-report"))
    assert code == 0, output
    return folder / "judged", output


@pytest.fixture
def run(played: tuple[Path, str], tmp_path: Path) -> Run:
    """A copy of the run."""
    shutil.copytree(played[0], tmp_path / "run")
    return Run(tmp_path / "run")


@pytest.fixture
def unjudged(run: Run) -> Run:
    """A copy of the run without its verdicts."""
    shutil.rmtree(run.folder / "verdicts")
    shutil.rmtree(run.folder / "judging")
    return run


@contextmanager
def service(module: str, *args: str) -> Iterator[str]:
    """A service as a process of its own; gives its address."""
    process = subprocess.Popen(
        (sys.executable, "-m", *module.split(), *args, "--listen", "127.0.0.1:0", "--stop-on-stdin-eof"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())["address"]
    finally:
        process.kill()
        process.communicate()


def judge_service(rehearsal: str, *args: str) -> Any:
    flags = ("--model-url", f"http://{rehearsal}/v1", "--model", "rehearsal-judge")
    return service("services.judge", *flags, *args)


@pytest.fixture(scope="module")
def rehearsal() -> Iterator[str]:
    with service("policysweep rehearsal") as address:
        yield address


@pytest.fixture(scope="module")
def judge(rehearsal: str) -> Iterator[str]:
    """A judge that asks once and does without token probabilities."""
    with judge_service(rehearsal, "--parse-attempts", "1", "--use-logprobs", "off") as address:
        yield address


def set_faults(rehearsal: str, **rates: float) -> None:
    request = urllib.request.Request(
        f"http://{rehearsal}/rehearsal/faults",
        json.dumps(rates).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as response:
        assert response.status == 200


# ------------------------------------------------------------------ what is asked


def test_a_sweep_ends_judged(played: tuple[Path, str]) -> None:
    folder, output = played
    assert "40 verdicts are missing on policy_resolution, dialogue, behavioural, turn_level" in output
    assert "40 verdicts recorded now." in output
    run = Run(folder)
    found = run.verdicts("first")
    assert Counter(record.verdict.panel for record in found) == dict.fromkeys(PANELS, UNITS)
    assert all(score.HasField("value") for record in found for score in record.verdict.scores)
    code, output = run.verify()
    assert code == 0
    assert "40 of 40 verdicts that count are there. 8 of 8 planned units" in output


def test_a_second_run_asks_nothing(run: Run, tmp_path: Path) -> None:
    sweep = write_sweep(tmp_path)
    run.folder = run.folder.rename(tmp_path / "judged")
    before = run.contents()
    code, output = ended(policysweep("run", str(sweep), "--store", str(tmp_path), "--no-report"))
    assert code == 0, output
    assert "0 units recorded now, 8 before" in output
    assert "Judging: every verdict is there." in output
    assert run.contents() == before


def test_a_second_judge_is_added_and_a_dry_run_changes_nothing(run: Run, rehearsal: str) -> None:
    before = run.contents()
    lenient = ("--judge", "rehearsal-judge-lenient", "--model-url", f"http://{rehearsal}/v1")
    code, output = run.judge(*lenient, "--panel", "dialogue", "--dry-run")
    assert code == 1
    assert "8 verdicts are missing on dialogue. They take 8 model calls, with about" in output
    assert run.contents() == before
    code, output = run.judge(*lenient)
    assert code == 0, output
    after = run.contents()
    assert {name: after[name] for name in before} == before
    assert len(run.verdicts("rehearsal-judge-lenient")) == len(run.verdicts("first")) == 40
    # Every model is judged against the same goals.
    assert len([name for name in after if name.startswith("inputs/goals/")]) == 4
    assert run.verify()[0] == 0


def test_an_edited_panel_is_judged_again_alone(run: Run, rehearsal: str, tmp_path: Path) -> None:
    before = run.contents()
    rubrics = tmp_path / "rubrics"
    shutil.copytree(ROOT / "services/judge/rubrics", rubrics)
    file = rubrics / "drip-r-1.toml"
    anchor = "One fair reading allows it."
    text = file.read_text(encoding="utf-8")
    assert text.count(anchor) == 1
    file.write_text(text.replace(anchor, "A fair reading allows it."), encoding="utf-8")
    with judge_service(rehearsal, "--rubrics", str(rubrics)) as address:
        code, output = run.judge("--target", f"first={address}", "--rubric", "drip-r@1")
    assert code == 0, output
    assert "The text of panel policy_resolution was changed since the run was judged" in output
    assert "8 verdicts are missing on policy_resolution. They take 8 model calls, with" in output
    after = run.contents()
    new = after.keys() - before.keys()
    assert len(new) == UNITS
    assert {name.split("/")[2].rpartition("-")[0] for name in new} == {"policy_resolution"}
    assert {name for name in before if before[name] != after[name]} == {"judging/rubric.json"}
    assert run.verify()[0] == 0


# ------------------------------------------------------------------ what is killed


@pytest.fixture
def slow() -> Iterator[str]:
    """A rehearsal server whose judge takes its time."""
    with service("policysweep rehearsal", "--first-token", "0.15") as address:
        yield address


def slowly(address: str) -> tuple[str, ...]:
    return ("--judge", "first=rehearsal-judge", "--model-url", f"http://{address}/v1", "--concurrency", "1")


def child(process: subprocess.Popen[str], module: str) -> int:
    """Process id of a command's child."""
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return next(int(pid) for pid in listed if module.encode() in Path(f"/proc/{pid}/cmdline").read_bytes())


def test_killing_the_judge_in_mid_judging_loses_nothing(unjudged: Run, slow: str) -> None:
    process = unjudged.start(*slowly(slow))
    unjudged.wait_for_verdicts(10)
    os.kill(child(process, "services.judge"), signal.SIGKILL)
    code, output = ended(process)
    assert code == 0, output
    assert "restarting it" in output
    assert "40 verdicts recorded now." in output
    assert unjudged.verify()[0] == 0


def test_a_killed_command_is_gone_on_with(unjudged: Run, slow: str) -> None:
    for stop, code in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)):
        done = len(unjudged.verdict_files())
        process = unjudged.start(*slowly(slow))
        unjudged.wait_for_verdicts(done + 5)
        process.send_signal(stop)
        assert ended(process)[0] == code
    before = unjudged.contents()
    kept = len(unjudged.verdict_files())
    assert 10 <= kept < 40
    code, output = unjudged.judge(*slowly(slow))
    assert code == 0, output
    assert f"{40 - kept} verdicts recorded now." in output
    after = unjudged.contents()
    assert {name: after[name] for name in before} == before
    assert len(unjudged.verdict_files()) == 40
    assert unjudged.verify()[0] == 0


# ------------------------------------------------------------------ a judge that misbehaves

ABSENT = {
    "score_off_scale": "OUT_OF_SCALE",
    "score_nan": "OUT_OF_SCALE",
    "prose": "UNPARSEABLE",
    "length": "TRUNCATED",
    "refusal": "REFUSED",
}


def test_what_a_judge_garbles_is_absent_with_its_reason(run: Run, rehearsal: str, judge: str) -> None:
    records = [path.read_bytes() for path in sorted((run.folder / "episodes").iterdir())]
    for fault in ABSENT:
        set_faults(rehearsal, **{fault: 1.0})
        code, output = run.judge("--target", f"{fault}={judge}")
        # A judge that answers nonsense has answered: its verdicts say so.
        assert code == 0, output
        _check_absent(run.verdicts(fault), ABSENT[fault])
    set_faults(rehearsal)
    code, output = ended(policysweep("report", str(run.folder), "--json"))
    assert code == 0, output
    judges = json.loads(output)["judging"]["judges"]
    assert all(
        set(judges[fault]["answers"]["scores"]["absent"]) == {reason} for fault, reason in ABSENT.items()
    )
    for fault in ABSENT:
        for agent in judges[fault]["agents"].values():
            metrics = {key: found for key, found in agent["metrics"].items() if "goal" not in key}
            assert all(found["mean"] is None for found in metrics.values())
            assert all(found["without_score"] + found["not_applicable"] == 4 for found in metrics.values())
    assert judges["first"]["answers"]["scores"]["absent"] == {}
    assert [path.read_bytes() for path in sorted((run.folder / "episodes").iterdir())] == records


def _check_absent(verdicts: list[run_pb2.VerdictRecord], reason: str) -> None:
    assert len(verdicts) == 40
    scores = [score for record in verdicts for score in record.verdict.scores]
    # One score follows from the goals, which these two faults leave alone.
    derived = [score for score in scores if score.metric == "customer_goal_alignment"]
    judged = [score for score in scores if score.metric != "customer_goal_alignment"]
    assert {judge_pb2.AbsentReason.Name(score.absent_reason) for score in judged} == {
        f"ABSENT_REASON_{reason}"
    }
    assert not any(score.HasField("value") or score.HasField("written") for score in judged)
    assert all(score.absent_detail for score in judged)
    assert {score.HasField("value") for score in derived} == {reason == "OUT_OF_SCALE"}


def test_faults_of_the_model_server_leave_no_verdict_and_are_asked_again(
    unjudged: Run, rehearsal: str, judge: str
) -> None:
    options = ("--target", f"first={judge}")
    set_faults(rehearsal, truncated_json=0.6)
    code, output = unjudged.judge(*options)
    done = len(unjudged.verdict_files())
    assert code == 1
    assert 0 < done < 40
    assert f"{done} verdicts recorded now, {40 - done} are still missing" in output
    assert "MODEL_SERVER_GARBLED" in output
    set_faults(rehearsal, http_503=1.0)
    process = unjudged.start(*options)
    time.sleep(2.5)
    assert process.poll() is None
    assert len(unjudged.verdict_files()) == done
    set_faults(rehearsal)
    code, output = ended(process)
    assert code == 0, output
    assert f"{40 - done} verdicts recorded now." in output
    assert unjudged.verify()[0] == 0


# ------------------------------------------------------------------ bad input


def one_message(code: int, output: str, *fragments: str, exit_code: int = 2) -> None:
    assert code == exit_code, output
    assert output.count("error: ") == 1, output
    assert "Traceback" not in output
    for fragment in fragments:
        assert fragment in output, output


def test_bad_input_is_told_in_one_message(run: Run, rehearsal: str, judge: str, tmp_path: Path) -> None:
    before = run.contents()
    target = ("--target", f"new={judge}")
    one_message(*run.judge(), "nobody to judge", "--judge MODEL")
    one_message(*run.judge("--target", "localhost:1"), "--target 'localhost:1': must be NAME=HOST:PORT")
    one_message(*run.judge(*target, "--rubric", "drip-q@1"), "has no rubric drip-q@1; it has drip-r@1")
    one_message(*run.judge(*target, "--panel", "dialog"), "no panel dialog; did you mean dialogue?")
    one_message(*run.judge("--target", f"x={rehearsal}"), "judge x", "cannot be reached", exit_code=1)
    nowhere = Run(tmp_path)
    one_message(*nowhere.judge(*target), "not a run", "there is no manifest.json", str(run.folder))
    assert run.contents() == before


def test_a_judge_that_is_another_one_now_is_refused(run: Run, judge: str) -> None:
    before = run.contents()
    code, output = run.judge("--target", f"first={judge}")
    one_message(code, output, "judge first of", "was another one", "parse_attempts was 2 and is 1")
    assert run.contents() == before


def test_a_sweep_with_an_unknown_rubric_plays_nothing(tmp_path: Path) -> None:
    agents = [{"name": "strict", "model": "rehearsal-strict"}]
    sweep = write_sweep(tmp_path, rubric="drip-r@7", agents=agents)
    code, output = ended(policysweep("run", str(sweep), "--store", str(tmp_path), "--no-report"))
    one_message(code, output, "judge first has no rubric drip-r@7; it has drip-r@1")
    assert not list(tmp_path.rglob("*.binpb"))
    assert not (tmp_path / "judged" / "manifest.json").exists()
