"""Which scenario a conversation record plays, and a scenario as the data set writes it.

The public code gives every row of its input an id `<scenario id>_r<row>` and puts an order number, made from
the row, into the scenario's texts. Here a scenario is what is said in it: records with the same text play the
same scenario, whatever their rows, and are its trials. Where the same id without row stands for one text
only, which is the rule, the scenario gets that id, the one that the data set gives it; else it keeps the id
with the row.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from policysweep.datasets.rules.scenario import BIG_FIVE
from policysweep.v1 import scenario_pb2

_WITH_ROW = re.compile(r"(?P<id>.+)_r(?P<row>[0-9]{1,9})")


def split_row(scenario_id: str) -> tuple[str, int]:
    """Scenario id and row of a record's id; row 0 when it names none."""
    found = _WITH_ROW.fullmatch(scenario_id)
    return (found["id"], int(found["row"])) if found else (scenario_id, 0)


def with_row(scenario_id: str, row: int) -> str:
    """The id that the public code gives the conversation of a row."""
    return f"{scenario_id}_r{row:05d}"


@dataclass(slots=True)
class _Found:
    scenario: scenario_pb2.Scenario
    """With the id of its first record, row included."""
    place: str


@dataclass(slots=True)
class ScenarioBook:
    """The distinct scenarios of conversation records, in order of first appearance."""

    _found: dict[bytes, _Found] = field(default_factory=dict)

    def add(self, scenario: scenario_pb2.Scenario, place: str) -> bytes:
        """Take in the scenario of a record at a place (`file:line`); gives its key in this book."""
        text = scenario_pb2.Scenario()
        text.CopyFrom(scenario)
        text.ClearField("scenario_id")
        key = hashlib.sha256(text.SerializeToString(deterministic=True)).digest()
        self._found.setdefault(key, _Found(scenario, place))
        return key

    def named(self) -> dict[bytes, scenario_pb2.Scenario]:
        """The scenarios by key, each with the id that it gets in a run. Ids may repeat, see `repeated`."""
        texts: dict[str, int] = {}
        for found in self._found.values():
            name = split_row(found.scenario.scenario_id)[0]
            texts[name] = texts.get(name, 0) + 1
        named = {}
        for key, found in self._found.items():
            name = split_row(found.scenario.scenario_id)[0]
            named[key] = scenario_pb2.Scenario()
            named[key].CopyFrom(found.scenario)
            named[key].scenario_id = name if texts[name] == 1 else found.scenario.scenario_id
        return named

    def repeated(self) -> Iterator[tuple[str, str, str]]:
        """Ids that stand for two texts: the id, and where the two were first met."""
        places: dict[str, str] = {}
        for key, scenario in self.named().items():
            place = self._found[key].place
            if (first := places.setdefault(scenario.scenario_id, place)) != place:
                yield scenario.scenario_id, first, place


def scenario_record(scenario: scenario_pb2.Scenario) -> dict[str, Any]:
    """A scenario as the data set writes it, with its lists and traits in strings."""
    brief = scenario.customer_brief
    return {
        "scenario_id": scenario.scenario_id,
        "Policy": {
            "Primary Policy": _document(scenario.policy.primary),
            "Related policies": [_document(each) for each in scenario.policy.related],
        },
        "persona": _persona(scenario.persona),
        "task": _task(scenario.task),
        "first_customer_message": scenario.first_customer_message,
        "detail_agent": scenario.case_brief,
        "customer_task_detail": {
            "basic_info": brief.basic_info,
            "private_info": brief.private_info,
            "behavior": brief.behavior,
        },
        "task_id": scenario.task_id,
        "source": scenario.source or None,
    }


def _document(document: scenario_pb2.PolicyDocument) -> dict[str, Any]:
    return {"url": document.url if document.HasField("url") else None, "text": document.text}


def _persona(persona: scenario_pb2.Persona) -> dict[str, Any]:
    return {
        "Name": persona.name,
        "Age-range": persona.age_range,
        "Location": persona.location,
        "Gender": persona.gender,
        "Job Sector": persona.job_sector,
        "Income range": persona.income_range,
        "Person description": persona.description,
        "Language Style": persona.language_style,
        "Personality Style": _traits(persona.personality),
        "Communication style": persona.communication_style,
        "Persona_id": persona.persona_id,
    }


def _traits(personality: Mapping[str, int]) -> str:
    """The Big Five in their usual order, then what else there is."""
    order = [trait for trait in BIG_FIVE if trait in personality]
    order += sorted(set(personality) - set(order))
    return repr({trait: personality[trait] for trait in order})


def _task(task: scenario_pb2.Task) -> dict[str, Any]:
    return {
        "detail": task.detail,
        "reason": task.reason,
        "task": task.summary,
        "related_policy_issues": _list(task.related_policy_issues),
        "complexity_level": task.complexity_level,
        "complexity_ordinal": task.complexity_ordinal,
        "primary_ambiguity_type": task.primary_ambiguity_type,
        "all_ambiguity_types": _list(task.all_ambiguity_types),
        "stratum_label": task.stratum_label,
    }


def _list(texts: Any) -> str:
    return json.dumps(list(texts), ensure_ascii=False)
