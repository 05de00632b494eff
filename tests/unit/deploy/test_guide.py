"""docs/operating.md says what the manifests do."""

from __future__ import annotations

import re

from .rendering import ROOT, every_installation, installation
from .test_availability import SERVICES, setting, sleep_seconds
from .test_network import SERVICES as ARROWS

GUIDE = (ROOT / "docs" / "operating.md").read_text("utf-8")


def test_every_path_is_there() -> None:
    paths = set(re.findall(r"\b(?:deploy|scripts|tests|components)/[\w./-]*\w", GUIDE)) - {
        "deploy/k8s/models/mine"
    }
    paths -= {"deploy/k8s/agents/mine"}
    below = {
        path.replace("components/", "deploy/k8s/components/", 1) if path.startswith("comp") else path
        for path in paths
    }
    assert not [path for path in below if not (ROOT / path).exists()]


@every_installation
def test_every_secret_is_told_of(overlay: str) -> None:
    rows = re.findall(r"^\| ((?:`[a-z-]+`(?:, )?)+) \| `", GUIDE, re.MULTILINE)
    told = {name for row in rows for name in re.findall(r"[a-z-]+", row)}
    used = set()
    for workload in installation(overlay).workloads:
        sources = [
            *workload.main.get("envFrom", ()),
            *(each.get("valueFrom", {}) for each in workload.main.get("env", ())),
        ]
        for source in sources:
            reference = source.get("secretRef") or source.get("secretKeyRef")
            used |= {reference["name"]} if reference else set()
        used |= {each["secret"]["secretName"] for each in workload.pod["volumes"] if "secret" in each}
    assert used <= told


@every_installation
def test_the_times_of_a_drain_are_as_told(overlay: str) -> None:
    for workload in installation(overlay).in_role(*SERVICES):
        text = " ".join(GUIDE.split())
        assert f"keeps serving for {sleep_seconds(workload)} seconds" in text
        assert f"each lives {setting(workload, 'MAX_CONNECTION_AGE_SECONDS'):.0f} seconds at most" in text


def test_the_table_of_connections_has_every_arrow() -> None:
    rows = dict(re.findall(r"^\| ([a-z ]+) \| (.+) \|$", GUIDE, re.MULTILINE))
    for arrow in ARROWS:
        row = rows[arrow.source.replace("policybank", "policy bank")]
        assert str(arrow.port) in row, arrow


def test_what_holds_a_protection_is_there() -> None:
    """docs/security.md names a test for each."""
    text = (ROOT / "docs" / "security.md").read_text("utf-8")
    named = set(re.findall(r"`((?:tests|services|policysweep|scripts)/[\w./]+)`", text))
    assert len([path for path in named if path.startswith("tests/")]) >= 10
    assert not [path for path in named if not (ROOT / path).exists()]
