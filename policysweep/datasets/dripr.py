"""From the records of a DRIP-R data set to the messages of the contract.

Source: the data set published with DRIP-R (arXiv 2605.07699). The records must have passed the check of
their form (`policysweep.datasets.rules.scenario`, `policysweep.datasets.rules.world_shape`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format

from policysweep.datasets.rules.scenario import json_list, traits
from policysweep.v1 import scenario_pb2, world_pb2

Json = Mapping[str, Any]


def scenario(record: Json) -> scenario_pb2.Scenario:
    """The message of a scenario record."""
    customer = record["customer_task_detail"]
    return scenario_pb2.Scenario(
        scenario_id=record["scenario_id"],
        task_id=record["task_id"],
        source=record.get("source") or "",
        policy=policy(record["Policy"]),
        persona=persona(record["persona"]),
        task=task(record["task"]),
        first_customer_message=record["first_customer_message"],
        case_brief=record["detail_agent"],
        customer_brief=scenario_pb2.CustomerBrief(
            basic_info=customer["basic_info"],
            private_info=customer["private_info"],
            behavior=customer["behavior"],
        ),
    )


def policy(record: Json) -> scenario_pb2.Policy:
    """The message of a scenario's `Policy`."""
    related = record.get("Related policies", ())
    return scenario_pb2.Policy(
        primary=_document(record["Primary Policy"]), related=[_document(each) for each in related]
    )


def _document(record: Json) -> scenario_pb2.PolicyDocument:
    return scenario_pb2.PolicyDocument(url=record.get("url"), text=record["text"])


def persona(record: Json) -> scenario_pb2.Persona:
    """The message of a persona record."""
    return scenario_pb2.Persona(
        persona_id=record["Persona_id"],
        name=record["Name"],
        age_range=record["Age-range"],
        location=record["Location"],
        gender=record["Gender"],
        job_sector=record["Job Sector"],
        income_range=record["Income range"],
        description=record["Person description"],
        language_style=record["Language Style"],
        personality=traits(record["Personality Style"]),
        communication_style=record["Communication style"],
    )


def task(record: Json) -> scenario_pb2.Task:
    """The message of the task that is embedded in a scenario."""
    return scenario_pb2.Task(
        detail=record["detail"],
        reason=record["reason"],
        summary=record["task"],
        related_policy_issues=json_list(record["related_policy_issues"]),
        complexity_level=record["complexity_level"],
        complexity_ordinal=record["complexity_ordinal"],
        primary_ambiguity_type=record["primary_ambiguity_type"],
        all_ambiguity_types=json_list(record["all_ambiguity_types"]),
        stratum_label=record["stratum_label"],
    )


def world(record: dict[str, Any]) -> world_pb2.OrderWorld:
    """The message of a world."""
    return json_format.ParseDict(record, world_pb2.OrderWorld())
