"""The results store against real backends, and against what goes wrong with them.

The object store is an S3 server on this machine. Set POLICYSWEEP_TEST_STORE to the URL of an empty prefix of
another one (and its credentials in the environment) to run the contract against that one instead.
"""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
import tempfile
import textwrap
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from policysweep.errors import InputError, StoreError
from policysweep.sweep.runs import open_run, prepare_run
from policysweep.sweep.store import ResultStore
from tests.object_store.server import BUCKET, running

REMOTE = os.environ.get("POLICYSWEEP_TEST_STORE")


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an object store, which the environment gives access to."""
    if REMOTE is not None:
        yield REMOTE
        return
    with running(tmp_path_factory.mktemp("s3")) as server, pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment().items():
            patch.setenv(name, value)
        yield f"s3://{BUCKET}"


@pytest.fixture(params=["directory", "file-url", "memory", "remote"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ResultStore:
    if request.param == "remote":
        # Patient, as a driver's: 32 writers of one blob may be told to come back.
        return ResultStore.from_url(request.getfixturevalue("remote"), patient=True).within(uuid.uuid4().hex)
    urls = {
        "directory": str(tmp_path / "with space" / "ü"),
        "file-url": (tmp_path / "with space").as_uri(),
        "memory": "memory://",
    }
    return ResultStore.from_url(urls[request.param], create=True).within("run")


async def names_in(store: ResultStore) -> list[str]:
    return sorted([name async for name in store.list_names()])


async def test_create_keeps_the_first(store: ResultStore) -> None:
    assert await store.read("a/b.bin") is None
    assert not await store.exists("a/b.bin")
    assert await store.create("a/b.bin", b"one") is True
    assert await store.create("a/b.bin", b"two") is False
    assert await store.read("a/b.bin") == b"one"
    assert await store.exists("a/b.bin")


async def test_replace_puts_the_new_in_place_of_the_old(store: ResultStore) -> None:
    await store.replace("a.json", b"one")
    await store.replace("a.json", b"two")
    assert await store.read("a.json") == b"two"


async def test_one_of_many_concurrent_writers_wins(store: ResultStore) -> None:
    for round_ in range(5):
        written = await asyncio.gather(*(store.create(f"r{round_}", bytes([n]) * 4000) for n in range(32)))
        assert Counter(written) == {True: 1, False: 31}
        assert await store.read(f"r{round_}") == bytes([written.index(True)]) * 4000


async def test_lists_what_is_below(store: ResultStore) -> None:
    assert await names_in(store) == []
    for name in ("manifest.json", "episodes/a", "episodes/b", "deep/er/c"):
        await store.create(name, b"")
    assert await names_in(store) == ["deep/er/c", "episodes/a", "episodes/b", "manifest.json"]
    assert await names_in(store.within("episodes")) == ["a", "b"]
    assert await names_in(store.within("epi")) == []
    assert await store.folders() == ["deep", "episodes"]


async def test_reads_many_in_order_whatever_their_number(store: ResultStore) -> None:
    names = [f"n{number:03}" for number in range(150)]
    await asyncio.gather(*(store.create(name, name.encode()) for name in names))
    for count in (0, 1, 63, 64, 65, 150):
        read = [pair async for pair in store.read_many(reversed(names[:count]))]
        assert read == [(name, name.encode()) for name in reversed(names[:count])]


async def test_a_blob_that_vanished_is_an_error_not_a_gap(store: ResultStore) -> None:
    await store.create("here", b"1")
    with pytest.raises(StoreError, match=r"cannot read .*/gone: "):
        [pair async for pair in store.read_many(["here", "gone"])]


async def test_check_writable_leaves_nothing(store: ResultStore) -> None:
    await store.check_writable()
    assert await names_in(store) == []


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/../b", "/a", "a//b", "a/", ".hidden", "a b", "a#1", "ü", "a\n"]
)
async def test_only_our_own_names_are_taken(store: ResultStore, name: str) -> None:
    with pytest.raises(ValueError, match="is not a name of ours"):
        await store.create(name, b"")
    with pytest.raises(ValueError, match="is not a name of ours"):
        [pair async for pair in store.read_many([name])]
    with pytest.raises(ValueError, match="is not a name of ours"):
        store.within(name)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("ftp://host/x", "store 'ftp://host/x': unknown scheme ftp://; use a directory or file://, s3://"),
        ("s3://", "store 's3://': names no bucket, as in s3://bucket/path"),
        ("file://runs/x", "store 'file://runs/x': a file URL has three slashes, as in file:///absolute/path"),
        ("s3://key:hunter2@bucket/x", "store: the URL must hold no credentials or parameters"),
        ("gs://bucket/x?token=hunter2", "store: the URL must hold no credentials or parameters"),
        ("/no/such/place", "/no/such/place: no such directory"),
        (__file__, f"{__file__}: is not a directory"),
    ],
)
def test_refuses_urls_in_words(url: str, expected: str) -> None:
    with pytest.raises(InputError) as raised:
        ResultStore.from_url(url)
    assert str(raised.value).startswith(expected)
    assert "hunter2" not in str(raised.value)


async def test_object_stores_fail_promptly_and_say_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.delenv("AWS_ALLOW_HTTP", raising=False)
    store = ResultStore.from_url("s3://bucket/sweeps/")
    with pytest.raises(StoreError, match="set AWS_ALLOW_HTTP=true in the environment"):
        await store.check_writable()
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    store = ResultStore.from_url("s3://bucket/sweeps/")
    with pytest.raises(StoreError) as raised:
        await store.check_writable()
    assert str(raised.value).startswith("cannot write s3://bucket/sweeps/write-check-")
    assert "(Connection refused); check the URL" in str(raised.value)


async def test_staging_files_of_the_dead_are_not_listed(tmp_path: Path) -> None:
    store = ResultStore.from_url(str(tmp_path))
    (tmp_path / "episodes").mkdir()
    (tmp_path / "episodes" / "half#1").write_bytes(b"ha")
    assert await names_in(store) == []
    assert await store.within("episodes").create("half", b"whole")
    assert await names_in(store) == ["episodes/half"]


async def test_any_file_name_of_others_can_be_listed(tmp_path: Path) -> None:
    for name in ("a b", "ü.txt", ".hidden", "%2e%2e", "x" * 255):
        (tmp_path / name).touch()
    (tmp_path / "broken").symlink_to("/nowhere")
    (tmp_path / "bad folder").mkdir()
    store = ResultStore.from_url(str(tmp_path))
    assert {"a b", "ü.txt", ".hidden", "%2e%2e"} <= set(await names_in(store))
    assert await store.folders() == []


def run_python(script: str, *args: str) -> str:
    """Run a script in a process of its own and give what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *args],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


LIMITED = """
    import asyncio, resource, sys
    from policysweep.errors import StoreError
    from policysweep.sweep.store import ResultStore

    async def main():
        store = ResultStore.from_url(sys.argv[1])
        await store.replace("old", b"the old state")
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
        for write in (store.create("new", b"x" * 20_000), store.replace("old", b"x" * 20_000)):
            try:
                await write
            except StoreError as error:
                print(error)
        assert await store.read("old") == b"the old state"
        assert await store.read("new") is None
        assert await store.create("small", b"x" * 100)

    asyncio.run(main())
"""


def test_a_full_disk_leaves_the_old_state(tmp_path: Path) -> None:
    """A limit on the size of files stands in for the disk: both fail in mid-write."""
    said = run_python(LIMITED, str(tmp_path)).splitlines()
    assert [line.partition(": ")[0] for line in said] == [
        f"cannot write {tmp_path}/new",
        f"cannot write {tmp_path}/old",
    ]
    assert all(
        "File too large; raise the limit on the size of files, or free space there" in line for line in said
    )
    assert sorted(os.listdir(tmp_path)) == ["old", "small"]


UNPRIVILEGED = """
    import asyncio, os, sys
    from policysweep.errors import StoreError
    from policysweep.sweep.runs import prepare_run

    if os.getuid() == 0:
        os.setuid(65534)  # permissions do not bind root
    for url in sys.argv[1:]:
        try:
            asyncio.run(prepare_run(url, "quickstart"))
        except StoreError as error:
            print(error)
"""


@pytest.fixture
def locked() -> Iterator[Path]:
    """A directory that an ordinary user can reach and not write."""
    with tempfile.TemporaryDirectory() as parent:
        Path(parent).chmod(0o755)
        directory = Path(parent) / "locked"
        directory.mkdir(mode=0o555)
        yield directory


def test_a_directory_that_cannot_be_written_is_found_at_the_start(locked: Path) -> None:
    said = run_python(UNPRIVILEGED, str(locked), str(locked / "below")).splitlines()
    advice = "Permission denied; choose a directory that this user can write, or change its permissions"
    assert len(said) == 2
    assert said[0].startswith(f"cannot write {locked}/write-check-")
    assert said[0].endswith(advice)
    assert said[1] == f"cannot open {locked}/below: {advice}"
    assert os.listdir(locked) == []


async def test_a_path_through_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=f"{os.strerror(errno.ENOTDIR)}; choose a path that leads through"):
        await prepare_run(str(tmp_path / "file" / "runs"), "quickstart")
    with pytest.raises(StoreError, match="choose a directory, not a file"):
        await prepare_run(str(tmp_path / "file"), "quickstart")


KILLED = """
    import asyncio, sys
    from policysweep.sweep.store import ResultStore

    async def main():
        store = ResultStore.from_url(sys.argv[1])
        number = int(sys.argv[2])
        while True:
            batch = range(number, number + 16)
            await asyncio.gather(*(store.create(f"episodes/{n}", b"%09d" % n * 20_000) for n in batch))
            print(flush=True)
            number += 16

    asyncio.run(main())
"""


async def test_kill_9_in_mid_write_leaves_whole_blobs_only(tmp_path: Path) -> None:
    store = ResultStore.from_url(str(tmp_path))
    for batches in range(1, 6):
        start = len(await names_in(store)) + 1000 * batches
        writer = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-c", textwrap.dedent(KILLED), str(tmp_path), str(start)),
            stdout=asyncio.subprocess.PIPE,
        )
        assert writer.stdout is not None
        for _ in range(batches):
            assert await writer.stdout.readline()
        writer.kill()
        await writer.wait()
    names = await names_in(store)
    assert len(names) >= 16 * (1 + 2 + 3 + 4 + 5)
    async for name, data in store.read_many(names):
        assert data == b"%09d" % int(name.removeprefix("episodes/")) * 20_000


def test_a_process_that_used_a_store_exits_cleanly(tmp_path: Path) -> None:
    """Native threads that outlive the interpreter would abort about one process in three."""
    script = """
        import asyncio, sys
        from policysweep.sweep.store import ResultStore
        asyncio.run(ResultStore.from_url(sys.argv[1]).check_writable())
    """
    for _ in range(5):
        run_python(script, str(tmp_path))


async def test_open_run_finds_runs_and_says_where_they_are(tmp_path: Path) -> None:
    for name in ("one", "two"):
        ledger = await prepare_run(str(tmp_path / "runs"), name)
        await ResultStore.from_url(ledger.url.rpartition("/")[0]).within(name).create("manifest.json", b"{}")
    (tmp_path / "runs" / "other").mkdir()
    assert (await open_run(str(tmp_path / "runs" / "one"))).url == str(tmp_path / "runs" / "one")
    assert (await open_run(f"{tmp_path}/runs/one/")).url == str(tmp_path / "runs" / "one")
    with pytest.raises(InputError) as raised:
        await open_run(str(tmp_path / "runs"))
    assert str(raised.value) == (
        f"{tmp_path}/runs: not a run: there is no manifest.json or stream-manifest.json in it; "
        f"the runs in it are {tmp_path}/runs/one, {tmp_path}/runs/two"
    )
    with pytest.raises(InputError, match=r"other: not a run: there is no manifest\.json or .* in it$"):
        await open_run(str(tmp_path / "runs" / "other"))
    with pytest.raises(InputError, match=r"three: no such directory"):
        await open_run(str(tmp_path / "runs" / "three"))


async def test_preparing_a_run_makes_the_directory_and_nothing_in_it(tmp_path: Path) -> None:
    ledger = await prepare_run(str(tmp_path / "a" / "b"), "quickstart")
    assert ledger.url == str(tmp_path / "a" / "b" / "quickstart")
    assert os.listdir(tmp_path / "a" / "b") == []


RACER = """
    import asyncio, sys
    from policysweep.sweep.store import ResultStore

    async def main():
        store = ResultStore.from_url(sys.argv[1])
        print(flush=True)
        sys.stdin.readline()
        names = [f"episodes/{n}" for n in range(300)]
        written = await asyncio.gather(*(store.create(name, sys.argv[2].encode()) for name in names))
        print(*(int(each) for each in written))

    asyncio.run(main())
"""


def test_processes_that_write_the_same_units_share_them(tmp_path: Path) -> None:
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(RACER), str(tmp_path), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline()
    said = [racer.stdin.write("go\n") and racer.stdin.flush() for racer in racers if racer.stdin]
    assert len(said) == 3
    won = [[int(each) for each in racer.communicate(timeout=60)[0].split()] for racer in racers]
    for number, winners in enumerate(zip(*won, strict=True)):
        assert sum(winners) == 1
        assert (tmp_path / "episodes" / str(number)).read_text() == str(winners.index(1))
