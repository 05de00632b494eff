"""JSON Lines: a line ends at a line feed and nowhere else."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from policysweep.datasets.files import Record
from policysweep.errors import InputError
from policysweep.interop import lines
from policysweep.interop.spool import Spool


def test_a_written_line_is_one_line_to_any_reader() -> None:
    text = "a\u2028b\u2029c\x85d\r\ne\x0bf\x1cg\U0001f600"
    line = lines.encode_line({"text": text})
    assert line.endswith(b"\n")
    assert len(line.decode().splitlines()) == 1
    assert orjson.loads(line) == {"text": text}


def test_reads_bom_blank_lines_and_any_line_end(tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n\n  \n{"a": "\xe2\x80\xa8"}')
    found = list(lines.read_objects(path))
    assert found == [Record(str(path), 1, {"a": 1}), Record(str(path), 4, {"a": "\u2028"})]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"a": 1', "not JSON: unexpected end of data at column 8"),
        (rb'{"a": "\ud83d"}', "not JSON: no low surrogate in string at column 8"),
        (b'{"a": NaN}', "not JSON: unexpected character, expected a JSON value at column 7"),
        (b'{"a": 1, "a": 2}', "not JSON: the key 'a' occurs twice in one object"),
        (b'{"a": "\xff"}', "not UTF-8; save the file as UTF-8"),
        (b'{"a": "\xed\xa0\xbd"}', "not UTF-8; save the file as UTF-8"),
        (b"[" * 300 + b"]" * 300, "not JSON: nested too deeply"),
    ],
)
def test_tells_what_is_wrong_with_a_line_and_goes_on(tmp_path: Path, line: bytes, expected: str) -> None:
    path = tmp_path / "file.jsonl"
    path.write_bytes(b"{}\n" + line + b"\n{}\n")
    first, wrong, last = lines.read_objects(path)
    assert isinstance(first, Record)
    assert str(wrong) == f"{path}:2: {expected}"
    assert isinstance(last, Record)


def test_refuses_a_file_without_line_feeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LONGEST_LINE", 2**20)
    path = tmp_path / "file.jsonl"
    path.write_bytes(b"{}\n" + b" " * 2**20 + b" {}\n")
    with pytest.raises(InputError, match=r":2: longer than 1 MiB: not JSON Lines"):
        list(lines.read_objects(path))


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*none\.jsonl: No such file"):
        list(lines.read_objects(tmp_path / "none.jsonl"))


def test_the_spool_gives_back_what_it_took_in_any_order() -> None:
    with Spool() as spool:
        assert [spool.append(each) for each in (b"one", b"", b"three" * 1000)] == [0, 1, 2]
        assert (spool.read(2), spool.read(0)) == (b"three" * 1000, b"one")
        assert spool.append(b"four") == 3
        assert (spool.read(1), spool.read(3), len(spool)) == (b"", b"four", 4)
