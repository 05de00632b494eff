"""Recording rules and alerts: valid, tested by promtool, about metrics that exist, told of in the guide."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import Any

import pytest
import yaml

from .queries import PROMETHEUS, ROOT, conditions, rules, signal
from .series import exposed, named

RULES = ("recording.yaml", "alerts.yaml")
GUIDE = (ROOT / "docs" / "operating.md").read_text("utf-8")
ALERTS = {rule["alert"]: rule for rule in rules("alert")}
each_alert = pytest.mark.parametrize("alert", ALERTS)


def promtool(*args: str) -> None:
    program = shutil.which("promtool")
    assert program, "promtool is not installed: apt-get install --no-install-recommends prometheus"
    done = subprocess.run([program, *args], capture_output=True, text=True, cwd=PROMETHEUS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_rules_are_valid() -> None:
    promtool("check", "rules", *RULES)


def test_alerts_fire_when_they_must_and_only_then() -> None:
    promtool("test", "rules", "rules_test.yaml")


def expectations() -> dict[str, list[Any]]:
    """What promtool is told to expect of each alert, by name: what fires, at each moment looked at."""
    content = yaml.safe_load((PROMETHEUS / "rules_test.yaml").read_text("utf-8"))
    found: dict[str, list[Any]] = {}
    for test in content["tests"]:
        for check in test["alert_rule_test"]:
            found.setdefault(check["alertname"], []).append(check["exp_alerts"])
    return found


@each_alert
def test_promtool_sees_each_alert_silent_and_firing(alert: str) -> None:
    moments = expectations()[alert]
    assert any(moments)
    assert not all(moments)


@each_alert
def test_an_alert_says_how_bad_it_is_what_it_is_and_what_to_do(alert: str) -> None:
    rule = ALERTS[alert]
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert {"summary", "description", "runbook_url"} == rule["annotations"].keys()
    url = rule["annotations"]["runbook_url"]
    assert url == "{{ $externalLabels.runbook_base }}docs/operating.md#" + alert.lower()
    assert f"\n### {alert}\n" in GUIDE


def test_the_guide_tells_of_no_other_alerts() -> None:
    assert re.findall(r"^### (Policysweep\w+)$", GUIDE, re.MULTILINE) == list(ALERTS)


@each_alert
def test_an_alert_compares_what_can_be_asked_for(alert: str) -> None:
    """The test against a real Prometheus asks for what is compared; so each part has to be a comparison."""
    for condition in conditions(ALERTS[alert]["expr"]):
        assert signal(condition)


@pytest.mark.parametrize(
    "rule", [*rules("record"), *rules("alert")], ids=lambda rule: next(iter(rule.values()))
)
def test_rules_use_metrics_that_exist(rule: dict[str, str]) -> None:
    assert named(rule["expr"])
    assert named(rule["expr"]) <= exposed()
