"""Loading: what comes out, what the digest depends on, and what is refused."""

from __future__ import annotations

import copy
import json
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from policysweep.datasets.load import Dataset, load, require_worlds
from policysweep.datasets.rules.scenario import BIG_FIVE
from policysweep.errors import InputError
from policysweep.v1 import scenario_pb2

Write = Callable[..., Path]

BUILTIN_DIGEST = "1c7eada5a4f7"


def test_builtin_is_forty_tasks_as_ten_personas_play_them(builtin: Dataset) -> None:
    assert len(builtin.scenarios) == len({scenario.scenario_id for scenario in builtin.scenarios}) == 400
    assert len(builtin.task_ids) == len(builtin.worlds) == 40
    assert len({(each.task_id, each.persona.persona_id) for each in builtin.scenarios}) == 400
    assert builtin.name == "builtin"
    assert not builtin.missing_worlds
    assert not builtin.rehearsal
    require_worlds(builtin)


def test_builtin_digest_is_the_same_on_every_machine(builtin: Dataset) -> None:
    assert builtin.digest.startswith(BUILTIN_DIGEST), (
        "the shipped texts changed: earlier results do not resume"
    )


def test_builtin_ids_have_the_public_form(builtin: Dataset) -> None:
    ids = [scenario.scenario_id for scenario in builtin.scenarios]
    assert ids[0].startswith("Hollis_t000_")
    assert sum(name.startswith("Dr._t") for name in ids) == 80
    assert sum("_tE03_" in name for name in ids) == 10


def test_every_field_of_a_scenario_is_filled(builtin: Dataset) -> None:
    for scenario in builtin.scenarios:
        for message in (scenario, scenario.persona, scenario.task, scenario.customer_brief):
            unset = set(message.DESCRIPTOR.fields_by_name) - {field.name for field, _ in message.ListFields()}
            assert not unset, (scenario.scenario_id, unset)
        assert set(scenario.persona.personality) == set(BIG_FIVE)
        assert scenario.policy.primary.text.startswith("# Merrowick Return Policy")
        assert [len(each.text) > 2000 for each in scenario.policy.related] == [True]
        assert not scenario.policy.primary.HasField("url")


def test_the_quirks_of_the_layout_are_undone(builtin: Dataset) -> None:
    task = builtin.scenarios[0].task
    assert list(task.all_ambiguity_types) == ["Coordination Ambiguity", "Vagueness", "Semantic Ambiguity"]
    assert len(task.related_policy_issues) == 5
    assert builtin.scenarios[0].persona.personality["Conscientiousness"] == 5


def test_worlds_are_those_of_the_task_files(builtin: Dataset) -> None:
    world = builtin.worlds["task_000"]
    assert [item.unit_price for item in world.order.items] == [389.0, 214.0]
    assert world.order.shipments[1].revised_promise == "2026-01-16"
    assert not world.order.shipments[0].HasField("revised_promise")
    assert world.customer.return_history.orders_12m == 9


def test_the_public_sample_loads(public_sample: Path) -> None:
    dataset = load(str(public_sample))
    assert [scenario.scenario_id.split("_")[0] for scenario in dataset.scenarios] == [
        "Alastair",
        "Isabella",
        "Janet",
        "Latasha",
        "Dr.",
    ]
    first = dataset.scenarios[0]
    assert first.source == "427"
    assert list(first.task.all_ambiguity_types) == ["Coordination Ambiguity", "Incompleteness", "Vagueness"]
    assert first.persona.personality["Agreeableness"] == 4
    assert dataset.missing_worlds == ("task_000",)


def test_worlds_that_are_lacking_are_named_with_the_command_that_makes_them(
    scenarios: list[Any], write: Write
) -> None:
    path = write(scenarios)
    dataset = load(str(path))
    with pytest.raises(InputError, match="2 of 2 tasks: task_000, task_001") as caught:
        require_worlds(dataset)
    assert f"policysweep dataset worlds {path} --model-url URL --model NAME" in str(caught.value)
    with pytest.raises(InputError, match="1 of 1 tasks: task_001"):
        require_worlds(dataset, ["task_001"])
    require_worlds(dataset, [])


def test_spelling_makes_no_difference_to_the_digest(scenarios: list[Any], tmp_path: Path) -> None:
    lines = [json.dumps(value) for value in scenarios]  # escapes, spaces, key order as given
    spellings = {
        "plain": "\n".join(lines).encode(),
        "bom and crlf": b"\xef\xbb\xbf" + "\r\n".join([*lines, "", ""]).encode(),
        "list": json.dumps(scenarios[::-1], indent=2, sort_keys=True, ensure_ascii=False).encode(),
    }
    loaded = []
    for name, content in spellings.items():
        (tmp_path / name).write_bytes(content)
        loaded.append(load(str(tmp_path / name)))
    assert len({dataset.digest for dataset in loaded}) == 1
    assert loaded[0].scenarios == loaded[1].scenarios == loaded[2].scenarios[::-1]


def test_content_makes_a_difference_to_the_digest(
    scenarios: list[Any], worlds: list[Any], write: Write
) -> None:
    before = load(str(write(scenarios)))
    with_worlds = load(str(write(scenarios)), worlds=write(worlds, "worlds.jsonl"))
    scenarios[0]["detail_agent"] += " "
    after = load(str(write(scenarios)))
    assert len({before.digest, with_worlds.digest, after.digest}) == 3
    assert before.scenarios_digest == with_worlds.scenarios_digest != after.scenarios_digest


def test_line_separators_inside_strings_do_not_split_lines(scenarios: list[Any], tmp_path: Path) -> None:
    text = "Hello\u2028there\u0085and\x1chere"
    scenarios[0]["first_customer_message"] = text
    lines = [json.dumps(value, ensure_ascii=False).replace("\\u001c", "\\u001C") for value in scenarios]
    path = tmp_path / "separators.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    assert load(str(path)).scenarios[0].first_customer_message == text


def made_for(path: Path, dataset: Dataset) -> Path:
    return path.with_name(f"{path.name}.worlds") / f"{dataset.scenarios_digest[:16]}.jsonl"


def test_worlds_made_for_the_data_set_are_found_beside_it(
    scenarios: list[Any], worlds: list[Any], write: Write
) -> None:
    path = write(scenarios)
    bare = load(str(path))
    assert bare.made_worlds == made_for(path, bare)
    bare.made_worlds.parent.mkdir()
    lines = [{**line, "made_by": {"model": "m", "rehearsal": True}} for line in worlds]
    write(lines, str(bare.made_worlds))
    full = load(str(path))
    assert set(full.worlds) == {"task_000", "task_001"}
    assert full.rehearsal
    scenarios[0]["detail_agent"] += " More."
    assert not load(str(write(scenarios))).worlds, "worlds of other scenarios must not be taken"


def test_a_folder_has_its_worlds_beside_its_scenarios(
    scenarios: list[Any], worlds: list[Any], write: Write
) -> None:
    folder = write(scenarios, "set/scenarios.jsonl").parent
    write(worlds[:1], "set/worlds.jsonl")
    dataset = load(str(folder))
    assert dataset.missing_worlds == ("task_001",)
    assert dataset.name == "set"


def test_worlds_of_other_tasks_are_left_out(scenarios: list[Any], worlds: list[Any], write: Write) -> None:
    for value in scenarios:
        value["task_id"] = "task_000"
    dataset = load(str(write(scenarios)), worlds=write(worlds, "worlds.jsonl"))
    assert set(dataset.worlds) == {"task_000"}


def set_field(scenarios: list[Any], **fields: Any) -> None:
    scenarios[1].update(fields)


REFUSED: list[tuple[str, Callable[[list[Any]], object], str]] = [
    ("missing", lambda s: s[1].pop("detail_agent"), ":2: detail_agent: is missing"),
    (
        "misspelt",
        lambda s: s[1].update(detail_agnet=s[1].pop("detail_agent")),
        ":2: detail_agnet: unknown field; did you mean 'detail_agent'?",
    ),
    (
        "case",
        lambda s: s[1]["persona"].update(name=s[1]["persona"].pop("Name")),
        ":2: persona.name: unknown field; did you mean 'Name'?",
    ),
    ("type", lambda s: set_field(s, task_id=7), ":2: task_id: must be a string, is a number"),
    (
        "empty",
        lambda s: set_field(s, first_customer_message=" "),
        ":2: first_customer_message: must not be empty",
    ),
    (
        "duplicate id",
        lambda s: set_field(s, scenario_id=s[0]["scenario_id"]),
        ":2: scenario_id: 'Dr._t000_5c17' was used before, in line 1",
    ),
    (
        "list for JSON",
        lambda s: s[1]["task"].update(related_policy_issues=["x"]),
        ":2: task.related_policy_issues: must be a string that holds a JSON list",
    ),
    (
        "JSON in string",
        lambda s: s[1]["task"].update(all_ambiguity_types="['x']"),
        ":2: task.all_ambiguity_types: must hold a JSON list of strings",
    ),
    (
        "trait out of range",
        lambda s: s[1]["persona"].update({"Personality Style": "{'Openness': 9}"}),
        ":2: persona.Personality Style: must hold a dict of Big Five traits: Openness is 9",
    ),
    (
        "trait lacking",
        lambda s: s[1]["persona"].update({"Personality Style": "{'Openness': 3}"}),
        ":2: persona.Personality Style: lacks the Big Five traits ['Agreeableness'",
    ),
    (
        "code for a dict",
        lambda s: s[1]["persona"].update({"Personality Style": "__import__('os')"}),
        ":2: persona.Personality Style: must hold a dict of Big Five traits: not a dict literal",
    ),
    (
        "endless nesting",
        lambda s: s[1]["persona"].update({"Personality Style": "(" * 900}),
        ":2: persona.Personality Style: must hold a dict of Big Five traits: not a dict literal",
    ),
    ("no object", lambda s: s.__setitem__(1, "text"), ":2: must be an object, is a string"),
]


@pytest.mark.parametrize(("broken", "told"), [pytest.param(*case[1:], id=case[0]) for case in REFUSED])
def test_a_broken_scenario_is_refused(
    scenarios: list[Any], write: Write, broken: Callable[[list[Any]], object], told: str
) -> None:
    broken(scenarios)
    path = write(scenarios)
    with pytest.raises(InputError) as caught:
        load(str(path))
    assert f"{path}{told}" in str(caught.value)
    assert "1 error:" in str(caught.value)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"scenario_id": "x"', "not JSON: "),
        ('{"scenario_id": "a", "scenario_id": "b"}', "the key 'scenario_id' occurs twice"),
        ('{"scenario_id": "\\ud800"}', "not JSON: "),
        ('{"scenario_id": NaN}', "not JSON: "),
        ('{"remark": ' + "[" * 300 + "]" * 300 + "}", "nested too deeply"),
        ('{"remark": ' + "[" * 5000 + "]" * 5000 + "}", "not JSON: "),
    ],
)
def test_a_broken_line_is_refused(scenarios: list[Any], write: Write, line: str, told: str) -> None:
    path = write(scenarios)
    path.write_bytes(path.read_bytes() + f"\n{line}\n".encode())
    with pytest.raises(InputError, match=f":{len(scenarios) + 2}: ") as caught:
        load(str(path))
    assert told in str(caught.value)


def test_a_list_tells_the_line_of_the_field(scenarios: list[Any], tmp_path: Path) -> None:
    scenarios[2]["persona"]["Name"] = ""
    path = tmp_path / "list.json"
    path.write_text(json.dumps(scenarios, indent=1), encoding="utf-8")
    line = [at for at, text in enumerate(path.read_text().split("\n"), 1) if '"Name": ""' in text]
    with pytest.raises(InputError, match=rf"list\.json:{line[0]}: persona\.Name: must not be empty"):
        load(str(path))


def test_at_most_twenty_problems_are_listed(scenarios: list[Any], write: Write) -> None:
    many = [copy.deepcopy(scenarios[0]) | {"scenario_id": "", "detail_agent": ""} for _ in range(15)]
    with pytest.raises(InputError) as caught:
        load(str(write(many)))
    assert "30 errors" in str(caught.value)
    assert str(caught.value).count("must not be empty") == 20
    assert "and 10 more" in str(caught.value)


def test_unknown_fields_are_ignored(scenarios: list[Any], write: Write) -> None:
    scenarios[0]["annotator_remark"] = "good"
    assert len(load(str(write(scenarios))).scenarios) == 6


@pytest.mark.parametrize("source", ["nowhere.jsonl", "hub:", "hub:a", "hub:../x/y", "hub:a/b/c"])
def test_a_source_that_is_none_is_refused(source: str) -> None:
    with pytest.raises(InputError, match=r"no data set|no hub source"):
        load(source)


def test_a_source_that_no_file_can_be_called_is_refused() -> None:
    with pytest.raises(InputError, match="File name too long"):
        load("x" * 5000)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"neither scenarios.jsonl"):
        load(str(tmp_path))


def test_an_empty_file_is_refused(write: Write) -> None:
    with pytest.raises(InputError, match="has no scenarios"):
        load(str(write([])))


def test_a_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "latin.jsonl"
    path.write_bytes(b'{"a": 1}\n{"b": "\xe9"}\n')
    with pytest.raises(InputError, match=r"latin.jsonl:2: not UTF-8"):
        load(str(path))


def test_a_broken_world_is_refused(scenarios: list[Any], worlds: list[Any], write: Write) -> None:
    worlds[1]["world"]["order"]["items"][0]["quantity"] = "two"
    path = write(worlds, "worlds.jsonl")
    with pytest.raises(InputError) as caught:
        load(str(write(scenarios)), worlds=path)
    assert f"{path}:2: world.order.items[0].quantity: must be a whole number" in str(caught.value)


def test_the_hub_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(InputError, match=r"pip install 'policysweep\[hub\]'"):
        load("hub:hsuvaskakoty/DRIP-R")


def test_the_hub_is_read_by_name_and_revision(
    scenarios: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = []

    def load_dataset(name: str, config: str, *, split: str, revision: str | None) -> list[Any]:
        asked.append((name, config, split, revision))
        return scenarios

    hub = types.ModuleType("datasets")
    hub.load_dataset = load_dataset  # type: ignore[attr-defined]  # a stand-in for the package
    monkeypatch.setitem(sys.modules, "datasets", hub)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    dataset = load("hub:owner/set@v1.0.0")
    assert asked == [("owner/set", "scenarios", "train", "v1.0.0")]
    assert isinstance(dataset.scenarios[0], scenario_pb2.Scenario)
    assert dataset.made_worlds.parent == tmp_path / "policysweep" / "owner--set.worlds"


def test_a_hub_row_that_is_no_json_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = types.ModuleType("datasets")
    hub.load_dataset = lambda *_, **__: [{"when": object()}]  # type: ignore[attr-defined]  # a stand-in
    monkeypatch.setitem(sys.modules, "datasets", hub)
    with pytest.raises(InputError, match="hub:owner/set/scenarios:1: is not JSON"):
        load("hub:owner/set")


def test_what_the_hub_refuses_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def load_dataset(*_: object, **__: object) -> list[Any]:
        raise ValueError("BuilderConfig 'scenarios' not found")

    hub = types.ModuleType("datasets")
    hub.load_dataset = load_dataset  # type: ignore[attr-defined]  # a stand-in for the package
    monkeypatch.setitem(sys.modules, "datasets", hub)
    with pytest.raises(InputError, match="does not give 'scenarios' of owner/set"):
        load("hub:owner/set")
