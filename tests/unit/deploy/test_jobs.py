"""A sweep as an Indexed Job: what counts as a failure of an index, of the Job, and what does not count."""

from __future__ import annotations

import pytest

from policysweep.commands import interrupt
from policysweep.commands.driving import EXIT_INCOMPLETE
from policysweep.errors import InputError

from .rendering import Resource, Workload, every_installation, installation

KILLED, TERMINATED, OUT_OF_MEMORY = 137, 143, 137


def action(job: Workload, exit_code: int, *, disrupted: bool = False) -> str:
    """What Kubernetes does about a failed pod: the first rule that fits, else it counts against the limit."""
    for rule in job.spec["podFailurePolicy"]["rules"]:
        if fits(rule, exit_code, disrupted):
            return str(rule["action"])
    return "Count"


def fits(rule: Resource, exit_code: int, disrupted: bool) -> bool:
    if conditions := rule.get("onPodConditions"):
        assert conditions == [{"type": "DisruptionTarget", "status": "True"}]
        return disrupted
    assert rule["onExitCodes"]["operator"] == "In"
    return exit_code in rule["onExitCodes"]["values"]


def drivers(overlay: str) -> list[Workload]:
    return installation(overlay).in_role("driver")


@every_installation
@pytest.mark.parametrize("code", [0, 1, 2, interrupt.EXIT_INTERRUPTED, KILLED, TERMINATED])
def test_a_preempted_pod_is_not_a_failed_index(overlay: str, code: int) -> None:
    jobs = [*drivers(overlay), *installation(overlay).in_role("report")]
    assert all(action(job, code, disrupted=True) == "Ignore" for job in jobs)


@every_installation
def test_a_driver_that_was_told_to_stop_is_started_again_at_no_cost(overlay: str) -> None:
    assert all(action(job, interrupt.EXIT_INTERRUPTED) == "Ignore" for job in drivers(overlay))


@every_installation
def test_wrong_input_ends_the_job_at_once(overlay: str) -> None:
    jobs = [*drivers(overlay), *installation(overlay).in_role("report")]
    assert all(action(job, InputError.exit_code) == "FailJob" for job in jobs)


@every_installation
@pytest.mark.parametrize("code", [EXIT_INCOMPLETE, OUT_OF_MEMORY])
def test_anything_else_is_tried_again_a_few_times(overlay: str, code: int) -> None:
    for job in drivers(overlay):
        assert action(job, code) == "Count"
        assert 1 <= job.spec.get("backoffLimitPerIndex", job.spec.get("backoffLimit")) <= 10


@every_installation
def test_rules_name_the_container_that_there_is(overlay: str) -> None:
    for job in installation(overlay).workloads:
        if job.kind == "Job":
            rules = [
                each["onExitCodes"] for each in job.spec["podFailurePolicy"]["rules"] if "onExitCodes" in each
            ]
            assert {each["containerName"] for each in rules} == {job.main["name"]}


@every_installation
def test_an_index_may_fail_alone(overlay: str) -> None:
    (job,) = (each for each in drivers(overlay) if each.name.startswith("sweep-"))
    assert job.spec["completionMode"] == "Indexed"
    # Kubernetes waits 10 s, 20 s, 40 s and so on: who starts in an outage outlasts ten minutes of it.
    assert sum(10 * 2**times for times in range(job.spec["backoffLimitPerIndex"])) >= 600
    assert 0 < job.spec["maxFailedIndexes"] < job.spec["completions"]
    assert "backoffLimit" not in job.spec


@every_installation
def test_jobs_leave_one_pod_per_index_and_then_go(overlay: str) -> None:
    for job in installation(overlay).workloads:
        if job.kind == "Job":
            assert job.spec["podReplacementPolicy"] == "Failed"
            assert job.spec["ttlSecondsAfterFinished"] > 0
            assert job.pod["restartPolicy"] == "Never"
