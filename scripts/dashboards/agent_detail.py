"""One agent and its model."""

from __future__ import annotations

from scripts.dashboards.panels import Board, Panel, quantiles, rate

_AGENT = 'run=~"$run", agent=~"$agent"'
_MODEL = 'role="agent", model=~"$model"'
_RESPOND = 'method=~".*AgentService/Respond"'
_ANSWERED = f'sum(rate(policysweep_model_calls_total{{{_MODEL}, outcome="ok"}}[$__rate_interval]))'


def _tokens(kind: str, by: str) -> str:
    return rate("policysweep_model_tokens_total", f'{_MODEL}, kind="{kind}"', by)


AGENT = Board(
    "policysweep-agent",
    "policysweep / Agent detail",
    "One agent of a sweep, and the model behind it: choose both.",
    {
        "run": ("policysweep_units", "run"),
        "agent": ('policysweep_units{run=~"$run", stage=~"play|stream"}', "agent"),
        "model": ('policysweep_model_calls_total{role="agent"}', "model"),
    },
    {
        "Its units": [
            Panel(
                "stat",
                "Coverage",
                "percentunit",
                "Share of the settled units that will count.",
                [(f"min(agent:policysweep_coverage:ratio{{{_AGENT}}})", "")],
                6,
                {0.95: "green"},
                "red",
                "PolicysweepCoverageLow",
            ),
            Panel(
                "stat",
                "Time left",
                "s",
                "At the speed of the last five minutes.",
                [(f'max(agent:policysweep_eta_seconds{{{_AGENT}, stage=~"play|stream"}})', "")],
                6,
                base="blue",
            ),
            Panel(
                "stat",
                "Units per minute",
                "short",
                "Recorded or failed.",
                [(f'sum(agent:policysweep_units_per_minute:rate5m{{{_AGENT}, stage=~"play|stream"}})', "")],
                6,
                base="blue",
            ),
            Panel(
                "stat",
                "Failing since",
                "s",
                "How long its attempts have only failed.",
                [(f"max(policysweep_failing_seconds{{{_AGENT}}})", "")],
                6,
                {120: "red"},
                alert="PolicysweepAgentOutage",
            ),
            Panel(
                "stack",
                "Units by state",
                "short",
                "They add up to the units planned.",
                [(f'sum by (state) (policysweep_units{{{_AGENT}, stage=~"play|stream"}})', "{{state}}")],
            ),
            Panel(
                "stack",
                "How its conversations end",
                "short",
                "Units recorded, by fault and end reason.",
                [
                    (
                        f"sum by (fault, reason) (policysweep_unit_ends_total{{{_AGENT}}})",
                        "{{fault}} {{reason}}",
                    )
                ],
            ),
            Panel(
                "stack",
                "Why its attempts fail",
                "short",
                "Attempts without a record, by reason.",
                [
                    (
                        f"sum by (party, reason) (policysweep_attempt_errors_total{{{_AGENT}}})",
                        "{{party}} {{reason}}",
                    )
                ],
                alert="PolicysweepAttemptsFailing",
            ),
        ],
        "Its model": [
            Panel(
                "graph",
                "Latency",
                "s",
                "As the agent's service sees it.",
                quantiles("policysweep_model_call_seconds", _MODEL, "model", "{{model}}"),
            ),
            Panel(
                "stack",
                "Calls by outcome",
                "reqps",
                "ok, or the reason of the error.",
                [(rate("policysweep_model_calls_total", _MODEL, "outcome"), "{{outcome}}")],
                alert="PolicysweepModelServerUnavailable",
            ),
            Panel(
                "graph",
                "Prompt tokens from the prefix cache",
                "percentunit",
                "In the first two turns and from the third on, where most of a prompt was sent before.",
                [
                    (
                        f"{_tokens('cached', 'model, turn')} / {_tokens('prompt', 'model, turn')}",
                        "{{model}} {{turn}}",
                    )
                ],
                limits={0.01: "green"},
                base="red",
                alert="PolicysweepPrefixCacheCollapsed",
            ),
            Panel(
                "graph",
                "Tokens per call",
                "short",
                "Prompt (cached included) and completion.",
                [
                    (
                        f"{rate('policysweep_model_tokens_total', _MODEL, 'kind')} / scalar({_ANSWERED})",
                        "{{kind}}",
                    )
                ],
            ),
            Panel(
                "graph",
                "Answers of the service",
                "s",
                "Respond, all agents together.",
                quantiles("policysweep_grpc_server_call_seconds", _RESPOND, "", ""),
            ),
            Panel(
                "graph",
                "Answers in work",
                "short",
                "Calls of Respond in flight, by pod or process.",
                [
                    (
                        f"sum by (instance) (policysweep_grpc_server_calls_in_flight{{{_RESPOND}}})",
                        "{{instance}}",
                    )
                ],
            ),
        ],
    },
)
