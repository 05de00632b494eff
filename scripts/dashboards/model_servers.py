"""Model servers, from both sides."""

from __future__ import annotations

from scripts.dashboards.panels import Board, Panel, quantiles, rate

_SERVED = 'model_name=~"$model"'

SERVERS = Board(
    "policysweep-models",
    "policysweep / Model servers",
    "vLLM as it sees itself, and as its callers see it. The rehearsal server has the same metrics.",
    {"model": ("vllm:num_requests_running", "model_name")},
    {
        "The servers": [
            Panel(
                "graph",
                "Requests running",
                "short",
                "In the batch.",
                [(f"sum by (model_name) (vllm:num_requests_running{{{_SERVED}}})", "{{model_name}}")],
                6,
            ),
            Panel(
                "graph",
                "Requests waiting",
                "short",
                "A queue that stays asks for replicas.",
                [(f"sum by (model_name) (vllm:num_requests_waiting{{{_SERVED}}})", "{{model_name}}")],
                6,
                {50: "orange"},
            ),
            Panel(
                "graph",
                "Prompt tokens",
                "short",
                "Per second, cached ones included.",
                [(rate("vllm:prompt_tokens_total", _SERVED, "model_name"), "{{model_name}}")],
                6,
            ),
            Panel(
                "graph",
                "Generated tokens",
                "short",
                "Per second.",
                [(rate("vllm:generation_tokens_total", _SERVED, "model_name"), "{{model_name}}")],
                6,
            ),
            Panel(
                "graph",
                "Prefix cache hits",
                "percentunit",
                "Of the prompt tokens looked up.",
                [
                    (
                        f"{rate('vllm:prefix_cache_hits_total', _SERVED, 'model_name')} / "
                        f"{rate('vllm:prefix_cache_queries_total', _SERVED, 'model_name')}",
                        "{{model_name}}",
                    )
                ],
                limits={0.01: "green"},
                base="red",
                alert="PolicysweepPrefixCacheCollapsed",
            ),
            Panel(
                "graph",
                "Time to the first token",
                "s",
                "Queueing included.",
                quantiles("vllm:time_to_first_token_seconds", _SERVED, "model_name", "{{model_name}}"),
            ),
            Panel(
                "graph",
                "Time of a request",
                "s",
                "To the last token.",
                quantiles("vllm:e2e_request_latency_seconds", _SERVED, "model_name", "{{model_name}}"),
            ),
            Panel(
                "stack",
                "Requests by end",
                "reqps",
                "stop, length, abort, error.",
                [(rate("vllm:request_success_total", _SERVED, "finished_reason"), "{{finished_reason}}")],
                24,
            ),
        ],
        "Their callers": [
            Panel(
                "graph",
                "Calls without an answer",
                "percentunit",
                "Refused, reset, timed out, garbled, busy.",
                [
                    (
                        'model:policysweep_model_calls_unanswered:ratio_rate5m{model=~"$model"}',
                        "{{role}} {{model}}",
                    )
                ],
                limits={0.5: "red"},
                alert="PolicysweepModelServerUnavailable",
            ),
            Panel(
                "graph",
                "Latency, 95th percentile",
                "s",
                "By role; failed calls included.",
                [('model:policysweep_model_call_seconds:p95_rate5m{model=~"$model"}', "{{role}} {{model}}")],
            ),
            Panel(
                "stack",
                "Calls by role",
                "reqps",
                "agent, customer, judge, curator.",
                [(rate("policysweep_model_calls_total", 'model=~"$model"', "role"), "{{role}}")],
            ),
            Panel(
                "stack",
                "Errors by reason",
                "reqps",
                "Every reason begins at 0.",
                [
                    (
                        rate(
                            "policysweep_model_calls_total",
                            'model=~"$model", outcome!="ok"',
                            "model, outcome",
                        ),
                        "{{model}} {{outcome}}",
                    )
                ],
                12,
                alert="PolicysweepModelServerRejects",
            ),
            Panel(
                "stack",
                "Tokens by role and kind",
                "short",
                "Per second; cached ones are prompt tokens too.",
                [
                    (
                        rate("policysweep_model_tokens_total", 'model=~"$model"', "role, kind"),
                        "{{role}} {{kind}}",
                    )
                ],
                12,
            ),
        ],
    },
)
