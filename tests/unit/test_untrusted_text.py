"""What a model, a data set or an agent service says stays text: never code, never a path, never markup.

That the report shows hostile text and runs none of it, is tested in a browser: tests/e2e/report_page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from policysweep.sweep import records
from policysweep.sweep.plan import ScenarioKey, plan_units
from policysweep.sweep.spec_fields import agent_name, model_url, run_name, target
from policysweep.sweep.store import ResultStore
from policysweep.sweep.verdicts import goals_name

from .sweep import samples

ROOT = Path(__file__).parents[2]
HOSTILE = (
    "..",
    "../../etc/passwd",
    "/etc/passwd",
    "a/../../b",
    "a\0b",
    "a\nb",
    "C:\\windows",
    "a/",
    "~root",
    "$(id)",
    "-rf",
    " ",
    "",
    "\u202etxt.exe",
    "x" * 5000,
)
every_hostile_text = pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:12]))


# ---------------------------------------------------------------------------------------- paths


@every_hostile_text
def test_no_name_of_a_run_or_an_agent(text: str) -> None:
    for check in (run_name, agent_name):
        with pytest.raises(ValueError, match="must be 1 to 63"):
            check(text)


@every_hostile_text
async def test_no_name_in_a_store(text: str) -> None:
    if text.startswith("x"):
        return  # long, and otherwise a name like any other
    store = ResultStore.from_url("memory://")
    with pytest.raises(ValueError, match="is not a name of ours"):
        await store.create(text, b"")
    with pytest.raises(ValueError, match="is not a name of ours"):
        await store.read(text)
    assert [name async for name in store.list_names()] == []


@every_hostile_text
def test_no_name_of_a_record(text: str) -> None:
    """A simulator answers with the unit's id; an answer with another one names no file."""
    for name in (records.record_name, records.failure_name):
        with pytest.raises(ValueError, match="is not a unit id"):
            name(text)
    assert records.unit_of(f"{text}.binpb") is None


@every_hostile_text
def test_ids_of_a_data_set_are_hashed_before_they_name_anything(text: str) -> None:
    key = ScenarioKey(text, text, text)
    for unit in plan_units(samples.manifest(), [key]):
        assert re.fullmatch(r"[0-9a-f]{32}\.binpb", records.record_name(unit.unit_id))
    assert re.fullmatch(r"[0-9a-f]{64}\.json", goals_name(text))


@pytest.mark.parametrize(
    "url", ["http://me:secret@host/v1", "http://host/v1?key=secret", "file:///etc/passwd"]
)
def test_no_secret_and_no_file_is_a_models_address(url: str) -> None:
    with pytest.raises(ValueError, match="must") as refused:
        model_url(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("address", ["http://agent:50052", "agent", "agent:50052 --flag", "file:///agent:1"])
def test_no_address_but_a_grpc_target(address: str) -> None:
    with pytest.raises(ValueError, match="must be a gRPC target"):
        target(address)


# ----------------------------------------------------------------------------------------- code


def lines(folder: str, pattern: str) -> Iterator[tuple[str, str]]:
    """The lines of our own sources, with where they stand."""
    for path in sorted((ROOT / folder).rglob(pattern)):
        if "v1" in path.parts or "vendor" in path.parts:
            continue  # generated, or somebody else's
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            yield f"{path.relative_to(ROOT)}:{number}", line


EVALUATES = re.compile(
    r"(?<![\w.])(?:eval|exec|compile|__import__)\(|\b(?:pickle|marshal|shelve|dill)\b"
    r"|yaml\.(?:load|unsafe_load|full_load)\(|shell=True|os\.(?:system|popen)\(|create_subprocess_shell"
)
MARKUP = re.compile(
    r"(?:inner|outer)HTML|insertAdjacentHTML|document\.write|createContextualFragment|\beval\(|new Function"
    r"|srcdoc|\.on\w+ = [\"'`]"
)


@pytest.mark.parametrize("folder", ["policysweep", "services", "examples"])
def test_no_text_is_evaluated(folder: str) -> None:
    assert [where for where, line in lines(folder, "*.py") if EVALUATES.search(line)] == []


def test_the_report_makes_no_markup_of_text() -> None:
    assert [where for where, line in lines("policysweep/report", "*.js") if MARKUP.search(line)] == []


@pytest.mark.parametrize("line", ["x = eval(text)", "pickle.loads(b)", "yaml.load(t)", "run(c, shell=True)"])
def test_the_rules_above_find_what_they_forbid(line: str) -> None:
    assert EVALUATES.search(line)
    assert MARKUP.search("element.innerHTML = text")
