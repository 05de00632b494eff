"""Lines of the parts of a JSON text."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from policysweep.datasets.locate import line_index, nearest_line

TEXT = """{
 "a": [],
 "b": {
  "quote \\" and { brace": 1,
  "list": [
   {"x": 1},
   [2,
    3]
  ]
 }, "c": {}
}"""


def test_members_and_elements_have_lines() -> None:
    index = line_index(TEXT)
    assert index[()] == 1
    assert index[("a",)] == 2
    assert index[("b", 'quote " and { brace')] == 4
    assert index[("b", "list", 0, "x")] == 6
    assert index[("b", "list", 1, 1)] == 8
    assert index[("c",)] == 10
    assert ("a", 0) not in index


def test_what_is_missing_stands_where_it_should_be() -> None:
    index = line_index(TEXT)
    assert nearest_line(index, ("b", "list", 0, "y", "z")) == 6
    assert nearest_line(index, ("nothing",)) == 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


def paths(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(below for key, part in inner for below in paths(part, (*path, key)))]


@given(json_values)
def test_every_part_of_any_json_is_found_in_order(value: Any) -> None:
    index = line_index(json.dumps(value, indent=1, ensure_ascii=False).replace("\r", " "))
    assert list(index) == paths(value)
    assert list(index.values()) == sorted(index.values())
