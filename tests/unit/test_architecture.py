"""The import rules that keep DESIGN's picture true."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PURE = (
    "services/simulator/dialogue.py",
    "services/simulator/turn_loop.py",
    "services/simulator/tau2/conversation.py",
    "services/policybank/bank.py",
    "policysweep/bank_history.py",
    "policysweep/sweep/plan.py",
    "policysweep/streams/plan.py",
    "policysweep/streams/manifest.py",
    "policysweep/report/statistics.py",
    "policysweep/report/agreement.py",
    "policysweep/report/streams/estimates.py",
    "policysweep/report/streams/comparisons.py",
    "policysweep/report/streams/influence.py",
    "policysweep/report/streams/summary.py",
)
IO_MODULES = {"aiohttp", "grpc", "obstore", "socket", "subprocess", "pathlib", "os", "io", "asyncio"}


def modules(folder: str) -> list[Path]:
    return sorted(path for path in (ROOT / folder).rglob("*.py") if "v1" not in path.parts)


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_policysweep_never_imports_services() -> None:
    offenders = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in modules("policysweep")
        for name in imports(path)
        if name.split(".")[0] == "services"
    ]
    assert not offenders


def test_services_never_import_one_another() -> None:
    offenders = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in modules("services")
        for name in imports(path)
        if name.split(".")[0] == "services"
        and name.split(".")[1:2] != [path.relative_to(ROOT / "services").parts[0]]
    ]
    assert not offenders


def test_nothing_imports_vllm() -> None:
    offenders = [
        str(path.relative_to(ROOT))
        for folder in ("policysweep", "services")
        for path in modules(folder)
        if any(name.split(".")[0] == "vllm" for name in imports(path))
    ]
    assert not offenders


@pytest.mark.parametrize("module", PURE)
def test_pure_modules_do_no_io(module: str) -> None:
    found = {name.split(".")[0] for name in imports(ROOT / module)}
    assert not found & IO_MODULES


def test_modules_stay_small() -> None:
    long = {
        str(path.relative_to(ROOT)): length
        for folder in ("policysweep", "services", "examples", "bench")
        for path in modules(folder)
        if (length := len(path.read_text(encoding="utf-8").split("\n"))) > 351
    }
    assert not long


def _functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield f"{path.relative_to(ROOT)}:{node.name}", node.end_lineno - node.lineno + 1


def test_functions_stay_small() -> None:
    lengths = sorted(
        (length, name)
        for folder in ("policysweep", "services", "examples")
        for path in modules(folder)
        for name, length in _functions(path)
    )
    sizes = [length for length, _ in lengths]
    assert not [entry for entry in lengths if entry[0] > 60]
    assert sizes[len(sizes) // 2] <= 12
    assert sizes[len(sizes) * 9 // 10] <= 35


def global_randomness(path: Path) -> Iterator[str]:
    """Uses of a generator that all of a process shares: those of `random` and of `numpy.random`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Attribute):
            continue
        name = ast.unparse(node)
        if re.fullmatch(
            r"random\.(?!Random$|SystemRandom$)\w+|(np|numpy)\.random\.(?!default_rng$|Generator$)\w+", name
        ):
            yield f"{path.relative_to(ROOT)}:{node.lineno}: {name}"


def test_concurrent_work_shares_no_generator() -> None:
    """Or one unit's draws would depend on what runs beside it."""
    found = [
        each
        for folder in ("policysweep", "services")
        for path in modules(folder)
        for each in global_randomness(path)
    ]
    imported = [
        f"{path.relative_to(ROOT)}: from {name}"
        for folder in ("policysweep", "services")
        for path in modules(folder)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (name := node.module) in ("random", "numpy.random")
    ]
    assert not [*found, *imported]
