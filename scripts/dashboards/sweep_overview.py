"""How far a sweep is, what goes wrong in it, what it costs."""

from __future__ import annotations

from collections.abc import Sequence

from scripts.dashboards.panels import Board, Panel, quantiles, rate

_RUN = 'run=~"$run"'
_PLAYED = f'{_RUN}, stage=~"play|stream"'
_JUDGED = f'{_RUN}, stage="judge"'


def _states(at: str) -> str:
    return f"sum by (state) (policysweep_units{{{at}}})"


def _progress(at: str, what: str) -> Sequence[Panel]:
    done = f'policysweep_units{{{at}, state="done"}}'
    return [
        Panel(
            "stat",
            f"{what}: done",
            "percentunit",
            "Share of the planned units that have their record.",
            [(f"sum by (run) ({done}) / sum by (run) (policysweep_units{{{at}}})", "{{run}}")],
            6,
            base="blue",
        ),
        Panel(
            "stat",
            f"{what}: left",
            "s",
            "Until the slowest agent is through, at its speed of five minutes.",
            [(f"max by (run) (agent:policysweep_eta_seconds{{{at}}})", "{{run}}")],
            6,
            base="blue",
        ),
        Panel(
            "stat",
            f"{what}: units per minute",
            "short",
            "Units settled, recorded or failed.",
            [(f"run:policysweep_units_per_minute:rate5m{{{at}}}", "{{run}}")],
            6,
            base="blue",
            alert="PolicysweepSweepStalled",
        ),
        Panel(
            "stat",
            f"{what}: not recorded",
            "short",
            "Units that failed for good or were skipped in this run.",
            [(f'sum by (run) (policysweep_units{{{at}, state=~"failed|skipped"}})', "{{run}}")],
            6,
            {1: "orange"},
            alert="PolicysweepUnitsSkipped",
        ),
    ]


SWEEP = Board(
    "policysweep-sweep",
    "policysweep / Sweep overview",
    "How far a sweep is, what it loses on the way, and what it costs.",
    {"run": ("policysweep_units", "run")},
    {
        "Playing": [
            *_progress(_PLAYED, "Play"),
            Panel(
                "stack",
                "Units by state",
                "short",
                "They add up to the units planned.",
                [(_states(_PLAYED), "{{state}}")],
            ),
            Panel(
                "bars",
                "Done by agent",
                "percentunit",
                "Share of each agent's units that have a record.",
                [
                    (
                        f'sum by (agent) (policysweep_units{{{_PLAYED}, state="done"}}) '
                        f"/ sum by (agent) (policysweep_units{{{_PLAYED}}})",
                        "{{agent}}",
                    )
                ],
                base="blue",
            ),
            Panel(
                "graph",
                "Units per minute by agent",
                "short",
                "Units settled, recorded or failed.",
                [(f"agent:policysweep_units_per_minute:rate5m{{{_PLAYED}}}", "{{agent}}")],
            ),
            Panel(
                "graph",
                "Time left by agent",
                "s",
                "Units left at the speed of the last five minutes.",
                [(f"agent:policysweep_eta_seconds{{{_PLAYED}}}", "{{agent}}")],
            ),
            Panel(
                "bars",
                "Coverage by agent",
                "percentunit",
                "Share of the settled units that will count. Below 95% the report withholds the headline.",
                [(f"agent:policysweep_coverage:ratio{{{_PLAYED}}}", "{{agent}}")],
                limits={0.95: "green"},
                base="red",
                alert="PolicysweepCoverageLow",
            ),
            Panel(
                "graph",
                "Tokens per recorded unit",
                "short",
                "Prompt and completion of all roles in it.",
                [
                    (
                        f"sum by (agent) (policysweep_unit_tokens_total{{{_PLAYED}}}) / "
                        f'sum by (agent) (policysweep_attempts_total{{{_PLAYED}, outcome="recorded"}})',
                        "{{agent}}",
                    )
                ],
            ),
        ],
        "Judging": [
            *_progress(_JUDGED, "Judge"),
            Panel(
                "stack",
                "Units by state",
                "short",
                "One conversation for one judge each.",
                [(_states(_JUDGED), "{{state}}")],
            ),
            Panel(
                "graph",
                "Answers that could not be used",
                "percentunit",
                "By panel; they are asked for again.",
                [("panel:policysweep_judge_answers_unusable:ratio_rate10m", "{{panel}}")],
                limits={0.1: "red"},
                alert="PolicysweepJudgeAnswersUnusable",
            ),
            Panel(
                "graph",
                "Scores that are absent",
                "percentunit",
                "After all attempts, by panel.",
                [("panel:policysweep_judge_scores_absent:ratio_rate10m", "{{panel}}")],
                limits={0.05: "red"},
                alert="PolicysweepJudgeScoresAbsent",
            ),
            Panel(
                "stack",
                "Scores by result",
                "short",
                "Per second: given, or why not.",
                [(rate("policysweep_judge_scores_total", "", "result"), "{{result}}")],
                12,
            ),
            Panel(
                "graph",
                "Latency of the judge's model",
                "s",
                "Failed calls included.",
                quantiles("policysweep_model_call_seconds", 'role="judge"', "model", "{{model}}"),
                12,
            ),
        ],
        "What goes wrong": [
            Panel(
                "graph",
                "Attempts without a record",
                "percentunit",
                "Of all attempts in ten minutes.",
                [
                    (
                        f"agent:policysweep_attempts_without_record:ratio_rate10m{{{_RUN}}}",
                        "{{stage}} {{agent}}",
                    )
                ],
                limits={0.2: "red"},
                alert="PolicysweepAttemptsFailing",
            ),
            Panel(
                "stack",
                "Why attempts fail",
                "short",
                "Per second, by who failed and the reason.",
                [(rate("policysweep_attempt_errors_total", _RUN, "party, reason"), "{{party}} {{reason}}")],
            ),
            Panel(
                "stack",
                "How conversations end",
                "short",
                "Per second, by who failed and the end reason.",
                [(rate("policysweep_unit_ends_total", _RUN, "fault, reason"), "{{fault}} {{reason}}")],
            ),
            Panel(
                "graph",
                "Longest running attempt",
                "s",
                "A unit that takes much longer than its kind.",
                [
                    (
                        f"max by (stage, agent) (policysweep_oldest_attempt_seconds{{{_RUN}}})",
                        "{{stage}} {{agent}}",
                    )
                ],
                limits={600: "orange"},
                alert="PolicysweepStraggler",
            ),
            Panel(
                "graph",
                "Failing since",
                "s",
                "How long an agent's attempts have only failed.",
                [(f"max by (stage, agent) (policysweep_failing_seconds{{{_RUN}}})", "{{stage}} {{agent}}")],
                limits={120: "red"},
                alert="PolicysweepAgentOutage",
            ),
            Panel(
                "graph",
                "Units in back-off",
                "short",
                "They wait for another attempt; no unit's time runs.",
                [
                    (
                        f'sum by (stage, agent) (policysweep_units{{{_RUN}, state="waiting"}})',
                        "{{stage}} {{agent}}",
                    )
                ],
            ),
            Panel(
                "graph",
                "Back-off given",
                "s",
                "Seconds of waiting handed out per second.",
                [(rate("policysweep_backoff_seconds_total", _RUN, "stage, agent"), "{{stage}} {{agent}}")],
                12,
            ),
            Panel(
                "graph",
                "Alerts",
                "short",
                "Alerts of policysweep, pending or firing.",
                [
                    (
                        'sum by (alertname, alertstate) (ALERTS{alertname=~"Policysweep.+"})',
                        "{{alertname}} {{alertstate}}",
                    )
                ],
                12,
            ),
        ],
    },
)
