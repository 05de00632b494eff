from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from policysweep.errors import InputError
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2
from services.judge import prompt
from services.judge.rubric import Rubric
from services.judge.rubric_files import RubricLibrary, read_rubric

from .support import DRIP_R, LIBRARY, RUBRICS, SMALL, panel

METRICS = {
    "policy_adherence": (
        "policy_support_conversation c, policy_support_per_turn t, policy_support_resolution r, "
        "reasoning_quality r"
    ),
    "task_resolution_adherence": "addresses_customer_reason r, consistent_with_task_constraints r",
    "dialogue_quality": (
        "conversation_consistency c, resolution_oriented_responses c, conversation_to_resolution_mapping r, "
        "verbosity c, per_turn_contradiction_score t, consistency_drift t, arguments_match_conversation c, "
        "resolution_description_fidelity r"
    ),
    "interest_alignment": "customer_goal_alignment c, interest_alignment_company c",
    "behavioral_alignment": (
        "agent_tone_consistency c, agent_behavioral_alignment c, customer_tone_consistency c, "
        "customer_behavioral_alignment c, conformity c, benevolence c, self_direction c, security c, "
        "universalism c"
    ),
}
"""Field keys and levels of the paper's 25 metrics."""


def written(folder: Path, text: str, name: str = "small-2.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def digests(rubric: Rubric) -> dict[str, str]:
    return {each.key: rubric.panel_digest(each, prompt.PROMPT_DIGEST) for each in rubric.panels}


def test_the_shipped_rubric_has_the_metrics_of_the_paper() -> None:
    expected = {
        (dimension, *entry.split()) for dimension, keys in METRICS.items() for entry in keys.split(", ")
    }
    found = {(metric.dimension, metric.key, metric.level[0]) for metric in DRIP_R.metrics}
    assert len(DRIP_R.metrics) == 25
    assert found == expected
    assert [each.key for each in DRIP_R.panels] == [
        "policy_resolution",
        "dialogue",
        "behavioural",
        "turn_level",
        "interest",
    ]


def test_metrics_of_the_customer_simulator_can_be_told_from_the_agents() -> None:
    subjects = {metric.key: metric.roles for metric in DRIP_R.metrics}
    both = {key for key, roles in subjects.items() if len(roles) == 2}
    customer = {key for key, roles in subjects.items() if roles == (ep.ROLE_CUSTOMER,)}
    assert both == {"per_turn_contradiction_score", "consistency_drift"}
    assert customer == {"customer_tone_consistency", "customer_behavioral_alignment"}


def test_the_rubric_on_the_wire_says_all_that_a_report_needs() -> None:
    message = DRIP_R.message(prompt.PROMPT_DIGEST, 1234)
    assert message.prompt_characters == 1234
    assert message.ref == judge_pb2.RubricRef(name="drip-r", version=1)
    assert [each.key for each in message.panels if each.weighted] == ["policy_resolution"]
    assert {each.key: each.digest for each in message.panels} == digests(DRIP_R)
    assert [metric.key for metric in message.metrics if metric.derived] == ["customer_goal_alignment"]
    assert Counter(metric.dimension for metric in message.metrics) == Counter(
        {dimension: len(keys.split(", ")) for dimension, keys in METRICS.items()}
    )
    assert {metric.panel for metric in message.metrics} == {each.key for each in message.panels}
    assert message.min_scale_mass == 0.5


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("Is it clear?", "Is it very clear?", {"talk"}),
        ('["a", "b", "c", "d", "e"]\n\n[[panels]]', '["a", "b", "c", "d", "f"]\n\n[[panels]]', {"talk"}),
        ('"Look at the end."', '"Look at its end."', {"end"}),
        ('FAIR = "even"', 'FAIR = "very even"', {"end"}),
        ('"Be sober."', '"Be strict."', {"talk", "end"}),
        ('title = "Clarity"', 'title = "Clearness"', set()),
        ('title = "Craft"', 'title = "The craft"', set()),
    ],
)
def test_an_edit_changes_the_digests_of_the_panels_that_ask_it(
    tmp_path: Path, old: str, new: str, changed: set[str]
) -> None:
    before = digests(read_rubric(written(tmp_path, SMALL)))
    assert SMALL.count(old) == 1
    after = digests(read_rubric(written(tmp_path, SMALL.replace(old, new))))
    assert {key for key in before if before[key] != after[key]} == changed


def test_a_change_of_the_templates_changes_every_panel_digest() -> None:
    other = {each.key: DRIP_R.panel_digest(each, "another digest") for each in DRIP_R.panels}
    assert not set(other.values()) & set(digests(DRIP_R).values())


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('question = "Is it clear?"\n', "", "panels[0] (talk).metrics[0] (clarity).question: is missing"),
        (
            'question = "Is it clear?"',
            'quesion = "?"\nquestion = "Is it clear?"',
            "panels[0] (talk).metrics[0] (clarity).quesion: is not a key of a rubric",
        ),
        (
            '["a", "b", "c", "d", "e"]\n\n[[panels]]',
            '["a", "b", "c", "d"]\n\n[[panels]]',
            "panels[0] (talk).metrics[0] (clarity): anchors must be five texts, for scores 1 to 5; "
            "there are 4",
        ),
        ('key = "manner"', 'key = "clarity"', "metrics: key 'clarity' is used twice"),
        ('key = "end"', 'key = "talk"', "panels: key 'talk' is used twice"),
        ('key = "clarity"', 'key = "outcome"', "key 'outcome' has another meaning"),
        ('key = "clarity"', 'key = "Clear Text"', "panels[0] (talk).metrics[0] (Clear Text).key"),
        ('requires = ["agent_persona"]', 'requires = ["magic"]', "(manner).requires[0]"),
        ('level = "conversation"\nquestion', 'level = "chat"\nquestion', "metrics[0] (clarity).level"),
        ('FAIR = "even"\n', "", "agent_personas must describe exactly DIRECT, FAIR"),
        ("version = 2", "version = 0", "version: Input should be greater than or equal to 1 (got 0)"),
        ('key = "craft"', 'key = "art"', "metric clarity: dimension 'craft' is not in dimensions"),
        (
            'requires = ["agent_persona"]',
            'subjects = ["agent", "customer"]',
            "subjects: only a metric of level turn can score both sides",
        ),
        ("outcome = true", 'goals = true\noutcome = "x"', "panels[1] (end).outcome"),
        ('instruction = "Look at the talk."', 'instruction = "x"\noutcome = true', "only one panel can have"),
        ('anchors = ["a", "b"', 'derived = "goals_met"\nanchors = ["a", "b"', "anchors must be left out"),
        ("version = 2", "version =", "not valid TOML"),
        ("version = 2", 'version = 2\ndigest = "x"', "digest: not a key of a rubric"),
    ],
)
def test_a_wrong_file_is_refused_with_file_key_and_problem(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    text = SMALL.replace(old, new, 1)
    assert text != SMALL
    with pytest.raises(InputError) as raised:
        read_rubric(written(tmp_path, text))
    assert said in str(raised.value)
    assert str(tmp_path / "small-2.toml") in str(raised.value)


def test_a_derived_metric_needs_a_panel_that_judges_goals(tmp_path: Path) -> None:
    anchors = 'anchors = ["a", "b", "c", "d", "e"]\n\n[[panels]]'
    text = SMALL.replace(anchors, 'derived = "goals_met"\n\n[[panels]]')
    with pytest.raises(InputError, match="goals must be true: clarity is derived"):
        read_rubric(written(tmp_path, text))


def test_a_mark_and_windows_line_ends_are_simply_read(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_bytes(b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode())
    assert read_rubric(path).ref == "small@2"
    assert digests(read_rubric(path)) == digests(read_rubric(written(tmp_path, SMALL)))


def test_a_folder_without_rubrics_and_two_of_one_version_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no rubric"):
        RubricLibrary.read(tmp_path)
    written(tmp_path, SMALL)
    written(tmp_path, SMALL, "copy.toml")
    with pytest.raises(InputError, match="two rubric files are small@2"):
        RubricLibrary.read(tmp_path)


def test_a_file_more_is_a_rubric_more(tmp_path: Path) -> None:
    written(tmp_path, (RUBRICS / "drip-r-1.toml").read_text(encoding="utf-8"), "drip-r-1.toml")
    written(tmp_path, SMALL)
    library = RubricLibrary.read(tmp_path)
    assert [each.ref for each in library] == ["drip-r@1", "small@2"]
    small = library.find(judge_pb2.RubricRef(name="small", version=2))
    assert [metric.key for metric in small.metrics] == ["clarity", "manner"]


def test_unknown_rubrics_and_panels_are_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"unknown rubric drip-r@7; this judge serves drip-r@1"):
        LIBRARY.find(judge_pb2.RubricRef(name="drip-r", version=7))
    with pytest.raises(
        InputError, match=r"unknown panel 'tone'; the panels of drip-r@1 are policy_resolution, "
    ):
        LIBRARY.panels(DRIP_R, ["dialogue", "tone"])


def test_panels_come_in_the_order_of_the_file_and_once() -> None:
    chosen = LIBRARY.panels(DRIP_R, ["interest", "dialogue", "interest"])
    assert [each.key for each in chosen] == ["dialogue", "interest"]
    assert list(LIBRARY.panels(DRIP_R, [])) == list(DRIP_R.panels)


def test_every_metric_but_the_derived_one_has_an_anchor_for_each_score() -> None:
    for metric in DRIP_R.metrics:
        assert len(metric.anchors) == (0 if metric.derived else 5), metric.key
        assert len(set(metric.anchors)) == len(metric.anchors), metric.key
    assert panel("interest").goals
