"""Who can talk to whom: exactly the arrows of docs/architecture.md, and nothing else.

The policies are evaluated as Kubernetes does: a connection needs an egress rule of its source and an ingress
rule of its destination; a pod that a policy selects may do only what some policy allows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from .rendering import Installation, Resource, Workload, compose, every_installation, installation


class Arrow(NamedTuple):
    """A connection that is possible."""

    source: str
    to: str
    port: int


MODEL_CALLERS = ("simulator", "agent", "judge", "policybank")
SERVICES = {
    Arrow("driver", "simulator", 50051),
    Arrow("driver", "agent", 50052),
    Arrow("driver", "judge", 50053),
    Arrow("driver", "policybank", 50054),
    Arrow("simulator", "agent", 50052),
    Arrow("agent", "policybank", 50054),
    Arrow("policybank", "qdrant", 6333),
    Arrow("policybank", "qdrant", 6334),
}
MODELS = {
    "local": {Arrow(caller, "rehearsal", 8100) for caller in MODEL_CALLERS},
    "gpu": {Arrow(caller, "vllm", 8000) for caller in MODEL_CALLERS},
    "production": {Arrow(caller, "vllm", 8000) for caller in MODEL_CALLERS},
}
WEIGHTS = Arrow("vllm", "outside", 443)
STORE = {Arrow("driver", "outside", 443), Arrow("report", "outside", 443)}
OUTSIDE = {"local": set(), "gpu": {WEIGHTS, *STORE}, "production": {WEIGHTS, *STORE}}


def matches(selector: Resource, labels: Mapping[str, str]) -> bool:
    """Whether a label selector takes labels."""
    for expression in selector.get("matchExpressions", ()):
        assert expression["operator"] == "In"
        if labels.get(expression["key"]) not in expression["values"]:
            return False
    return bool(selector.get("matchLabels", {}).items() <= labels.items())


def rules(owner: Installation, workload: Workload, direction: str) -> Iterator[Resource] | None:
    """The rules for a workload's pods in a direction; None when no policy selects them."""
    selecting = [
        each["spec"]
        for each in owner.of_kind("NetworkPolicy")
        if direction in each["spec"]["policyTypes"] and matches(each["spec"]["podSelector"], workload.labels)
    ]
    return (rule for spec in selecting for rule in spec.get(direction.lower(), ())) if selecting else None


def ports(rule: Resource) -> Iterator[int]:
    """The TCP ports of a rule."""
    assert rule.get("ports"), "a rule without ports allows all of them"
    yield from (each["port"] for each in rule["ports"] if each.get("protocol", "TCP") == "TCP")


def between(owner: Installation, workload: Workload, direction: str, other: Workload) -> set[int]:
    """Ports on which a direction of a workload is open to another workload's pods."""
    side = {"Ingress": "from", "Egress": "to"}[direction]
    found = rules(owner, workload, direction)
    assert found is not None, f"no policy selects {workload.name}"
    return {
        port
        for rule in found
        for peer in rule[side]
        if peer.keys() == {"podSelector"} and matches(peer["podSelector"], other.labels)
        for port in ports(rule)
    }


def arrows(owner: Installation) -> set[Arrow]:
    """All connections between the pods of an installation."""
    return {
        Arrow(source.role, to.role, port)
        for source in owner.workloads
        for to in owner.workloads
        for port in between(owner, source, "Egress", to) & between(owner, to, "Ingress", source)
    }


def to_outside(owner: Installation) -> set[Arrow]:
    """All connections to addresses."""
    return {
        Arrow(workload.role, "outside", port)
        for workload in owner.workloads
        for rule in rules(owner, workload, "Egress") or ()
        for peer in rule["to"]
        if "ipBlock" in peer
        for port in ports(rule)
    }


@every_installation
def test_pods_talk_along_the_arrows_and_nowhere_else(overlay: str) -> None:
    assert arrows(installation(overlay)) == SERVICES | MODELS[overlay]


@every_installation
def test_only_the_store_and_the_weights_are_fetched_from_outside(overlay: str) -> None:
    assert to_outside(installation(overlay)) == OUTSIDE[overlay]


@every_installation
def test_no_rule_is_wider_than_its_other_end(overlay: str) -> None:
    """Each rule that names pods is met by a rule of theirs: none is left over from an arrow that is gone."""
    owner = installation(overlay)
    for source in owner.workloads:
        for to in owner.workloads:
            assert between(owner, source, "Egress", to) == between(owner, to, "Ingress", source)


@every_installation
def test_open_ports_are_ports_of_the_pods(overlay: str) -> None:
    owner = installation(overlay)
    for workload in owner.workloads:
        same = owner.in_role(workload.role)
        numbers = {port["containerPort"] for each in same for port in each.main.get("ports", ())}
        assert {port for rule in rules(owner, workload, "Ingress") or () for port in ports(rule)} <= numbers


@every_installation
def test_metrics_are_open_to_monitoring_alone(overlay: str) -> None:
    """Everything but the report's and the results' pods, which have none, is scraped."""
    owner = installation(overlay)
    scraped = set()
    for workload in owner.workloads:
        for rule in rules(owner, workload, "Ingress") or ():
            for peer in rule["from"]:
                if "namespaceSelector" in peer:
                    assert peer == {
                        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}
                    }
                    scraped.add(workload.role)
                    assert workload.port("metrics") in (None, *ports(rule))
    assert scraped == {each.role for each in owner.workloads} - {"report", "results"}


@every_installation
def test_names_are_asked_of_the_cluster_alone(overlay: str) -> None:
    owner = installation(overlay)
    for workload in owner.workloads:
        to_namespaces = [
            (peer, rule)
            for rule in rules(owner, workload, "Egress") or ()
            for peer in rule["to"]
            if "namespaceSelector" in peer
        ]
        ((peer, rule),) = to_namespaces
        assert peer["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "kube-system"}
        assert set(ports(rule)) == {53}


def test_models_served_elsewhere_are_called_over_https(tmp_path: Path) -> None:
    resources = compose(
        tmp_path,
        resources=["base", "agents/hosted"],
        components=["components/external-model-servers"],
        namespace="policysweep",
    )
    reached = to_outside(Installation("external", resources))
    assert reached == {Arrow(caller, "outside", 443) for caller in MODEL_CALLERS}
