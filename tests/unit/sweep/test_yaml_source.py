"""YAML files: every complaint names the file, the line and the field."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, StrictInt

from policysweep.errors import InputError
from policysweep.yaml_source import YamlSource, parse_yaml, read_yaml, validate


class Wheel(BaseModel):
    """A part with a choice."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    size: StrictInt = Field(ge=1)
    grip: float | None = None
    kind: Literal["road", "snow"] = "road"


class Car(BaseModel):
    """A whole with a list of parts."""

    model_config = ConfigDict(extra="forbid")
    name: str
    wheels: tuple[Wheel, ...] = Field(default=(), min_length=1)
    spare: Wheel | None = None


def parse(text: str) -> YamlSource:
    return parse_yaml(text, "car.yaml")


def problems_of(text: str) -> list[str]:
    with pytest.raises(InputError) as raised:
        validate(parse(text), Car)
    return str(raised.value).splitlines()


def test_reads_data_and_lines() -> None:
    source = parse("# a car\nname: van\nwheels:\n  - size: 3\n  - {size: 4,\n     kind: snow}\n")
    assert source.data == {"name": "van", "wheels": [{"size": 3}, {"size": 4, "kind": "snow"}]}
    assert source.lines[("name",)] == 2
    assert source.lines[("wheels", 1)] == 5
    assert source.lines[("wheels", 1, "kind")] == 6
    assert source.line_of(("wheels", 1, "colour")) == 5
    assert validate(source, Car).wheels[1].kind == "snow"


def test_bom_and_crlf_are_simply_read(tmp_path: Path) -> None:
    path = tmp_path / "car.yaml"
    path.write_bytes("\ufeffname: vän\r\nwheels:\r\n- size: 0\r\n".encode())
    assert read_yaml(path).data["name"] == "vän"
    with pytest.raises(InputError, match=r"car\.yaml:3: wheels\[0\]\.size: must be at least 1, not 0$"):
        validate(read_yaml(path), Car)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: a\nwheels: []", "car.yaml:2: wheels: must hold at least 1 entry"),
        ("wheels: [{size: 1}]", "car.yaml:1: name: is missing"),
        ("name: a\nwheels:\n- grip: 1.0", "car.yaml:3: wheels[0].size: is missing"),
        ("name: a\nwhels: []\nwheels: [{size: 1}]", "car.yaml:2: whels: unknown field; did you mean wheels?"),
        (
            "name: a\nwheels:\n- size: 1\n  grib: 2.0",
            "car.yaml:4: wheels[0].grib: unknown field; did you mean grip?",
        ),
        (
            "name: a\nwheels: [{size: 1}]\nspare: {size: 1, xyz: 2}",
            "car.yaml:3: spare.xyz: unknown field; the fields here are grip, kind, size",
        ),
        ("name: a\nwheels: [{size: 1.5}]", "car.yaml:2: wheels[0].size: must be a whole number, not 1.5"),
        ("name: a\nwheels: [{size: yes}]", "car.yaml:2: wheels[0].size: must be a whole number, not true"),
        (
            "name: a\nwheels: [{size: 1, kind: ice}]",
            "car.yaml:2: wheels[0].kind: must be 'road' or 'snow', not 'ice'",
        ),
        (
            "name: a\nwheels: [{size: 1, grip: .nan}]",
            "car.yaml:2: wheels[0].grip: must be a finite number, not nan",
        ),
        ("name: a\nwheels: 3", "car.yaml:2: wheels: must be a list, not 3"),
        ("name: a\nwheels: [round]", "car.yaml:2: wheels[0]: must be a mapping of fields, not 'round'"),
        ("name: {b: 1}\nwheels: [{size: 1}]", "car.yaml:1: name: must be text, not a mapping"),
        ("name:\nwheels: [{size: 1}]", "car.yaml:1: name: must be text, not empty"),
        (
            "name: no\nwheels: [{size: 1}]",
            "car.yaml:1: name: must be text, not false: YAML reads yes, no, on and off as true and false, "
            "so put the word in quotes",
        ),
        ("- a\n- b", "car.yaml:1: must be a mapping of fields, not a list"),
    ],
)
def test_says_what_is_wrong_and_where(text: str, expected: str) -> None:
    assert problems_of(text) == [expected]


def test_lists_every_problem_in_the_order_of_the_file() -> None:
    found = problems_of("nam: a\nwheels:\n- size: 0\n  kind: ice\n- size: 2\nspare: {}\n")
    assert [line.partition(": ")[0] for line in found] == [
        "car.yaml:1",
        "car.yaml:1",
        "car.yaml:3",
        "car.yaml:4",
        "car.yaml:6",
    ]


def test_a_list_with_a_wrong_entry_is_not_called_too_short() -> None:
    assert problems_of("name: a\nwheels: [{size: x}]") == [
        "car.yaml:2: wheels[0].size: must be a whole number, not 'x'"
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\nb: 2\na: 3", "car.yaml:3: a: stands here twice, first in line 1"),
        ("x:\n  a: 1\n  'a': 3", "car.yaml:3: a: stands here twice, first in line 2"),
        ("a: [1, 2", "car.yaml:1: is not valid YAML: expected ',' or ']'"),
        ("a: 1\n\tb: 2", "car.yaml:2: is not valid YAML: found character '\\t' that cannot start any token"),
        ("a: 1\n---\nb: 2", "car.yaml:2: is not valid YAML: but found another document"),
        ("", "car.yaml:1: the file is empty"),
        ("# only a comment\n", "car.yaml:1: the file is empty"),
        ("a: 1\n7: 2", "car.yaml:2: the name of a field must be text"),
        ("a: 1\n? [b]\n: 2", "car.yaml:2: the name of a field must be text"),
        ("a: 1\nb: !!python/object:os.system {}", "car.yaml:2: the tag tag:yaml.org,2002:python/"),
        ("a: !!python/name:os.system x", "car.yaml:1: is not valid YAML: could not determine a constructor"),
        ("a: !!int seven", "car.yaml:1: 'seven' is not a valid int"),
        ("a: &x\n  b: *x", "car.yaml:1: an anchor that contains itself"),
        ("a: *nowhere", "car.yaml:1: is not valid YAML: found undefined alias 'nowhere'"),
        ("a: 1\n<<: 3", "car.yaml:2: << takes a mapping or a list of mappings"),
        ("a: 1\nb: \x07", "car.yaml:2: holds a character that YAML does not allow"),
        ("[" * 500, "car.yaml: is nested too deeply"),
    ],
)
def test_refuses_what_is_no_plain_document(text: str, expected: str) -> None:
    with pytest.raises(InputError) as raised:
        parse(text)
    assert str(raised.value).startswith(expected)


def test_nested_anchors_do_not_fill_the_memory() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    with pytest.raises(InputError, match="expands to more than 100000 values"):
        parse("\n".join(levels))


def test_merge_keys_work_and_own_fields_win() -> None:
    source = parse(
        "name: a\nspare: &s {size: 1, kind: snow}\n"
        "wheels:\n- <<: *s\n  size: 5\n- size: 6\n  <<: [*s, {grip: 2.0}]\n"
    )
    assert source.data["wheels"] == [
        {"size": 5, "kind": "snow"},
        {"size": 6, "kind": "snow", "grip": 2.0},
    ]
    assert source.lines[("wheels", 0, "size")] == 5
    assert source.lines[("wheels", 0, "kind")] == 2
    assert source.lines[("wheels", 1, "size")] == 6


def test_a_date_is_text() -> None:
    assert parse("a: 2026-13-45").data == {"a": "2026-13-45"}


def test_says_why_a_file_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.yaml: cannot be read: No such file or directory"):
        read_yaml(tmp_path / "none.yaml")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        read_yaml(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"a: 1\nb: \xe4\n")
    with pytest.raises(InputError, match=r"latin\.yaml:2: is not UTF-8 text: save the file as UTF-8"):
        read_yaml(tmp_path / "latin.yaml")
