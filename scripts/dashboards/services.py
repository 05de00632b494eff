"""Every process."""

from __future__ import annotations

from scripts.dashboards.panels import Board, Panel, quantiles, rate

_OURS = 'job="policysweep"'

SERVICES = Board(
    "policysweep-services",
    "policysweep / Services",
    "Every process: is it there, what does it do, what does it take.",
    {"service": ('up{job="policysweep"}', "service")},
    {
        "Processes": [
            Panel(
                "graph",
                "Scraped",
                "short",
                "Processes that give metrics, by service.",
                [(f'sum by (service) (up{{{_OURS}, service=~"$service"}})', "{{service}}")],
                alert="PolicysweepTargetDown",
            ),
            Panel(
                "bars",
                "Versions",
                "short",
                "Processes by service and version.",
                [("count by (service, version) (policysweep_build_info)", "{{service}} {{version}}")],
                base="blue",
            ),
            Panel(
                "graph",
                "Conversations in progress",
                "short",
                "By simulator.",
                [('sum by (instance) (policysweep_episodes_running{service="simulator"})', "{{instance}}")],
            ),
            Panel(
                "graph",
                "CPU",
                "percentunit",
                "Of one core; a service has one event loop.",
                [
                    (
                        f'rate(process_cpu_seconds_total{{{_OURS}, service=~"$service"}}[$__rate_interval])',
                        "{{service}} {{instance}}",
                    )
                ],
                limits={0.9: "orange"},
            ),
            Panel(
                "graph",
                "Memory",
                "bytes",
                "Resident.",
                [
                    (
                        f'process_resident_memory_bytes{{{_OURS}, service=~"$service"}}',
                        "{{service}} {{instance}}",
                    )
                ],
            ),
            Panel(
                "graph",
                "Open files",
                "short",
                "Connections among them.",
                [(f'process_open_fds{{{_OURS}, service=~"$service"}}', "{{service}} {{instance}}")],
            ),
        ],
        "gRPC": [
            Panel(
                "bars",
                "Certificates end in",
                "s",
                "By process; those that speak without TLS have none.",
                [
                    (
                        "min by (service, instance) "
                        "(policysweep_tls_certificate_expiry_timestamp_seconds - time()) < Inf",
                        "{{service}} {{instance}}",
                    )
                ],
                24,
                limits={604800: "green"},
                base="red",
                alert="PolicysweepCertificateExpiring",
            ),
            Panel(
                "stack",
                "Calls by method",
                "reqps",
                "Served.",
                [(rate("policysweep_grpc_server_calls_total", "", "method"), "{{method}}")],
                12,
            ),
            Panel(
                "stack",
                "Calls by code",
                "reqps",
                "OK, or what the caller was told.",
                [(rate("policysweep_grpc_server_calls_total", "", "code"), "{{code}}")],
                12,
                alert="PolicysweepInternalErrors",
            ),
            Panel(
                "graph",
                "Latency, 95th percentile",
                "s",
                "By method.",
                [("method:policysweep_grpc_server_call_seconds:p95_rate5m", "{{method}}")],
                12,
            ),
            Panel(
                "graph",
                "Calls in flight",
                "short",
                "By method.",
                [("sum by (method) (policysweep_grpc_server_calls_in_flight)", "{{method}}")],
                12,
            ),
        ],
        "Conversations": [
            Panel(
                "graph",
                "Time of a conversation",
                "s",
                "In the simulators, waiting for models included.",
                quantiles("policysweep_episode_seconds", "", "", ""),
                12,
            ),
            Panel(
                "stack",
                "How conversations end",
                "short",
                "Per second, by who failed and the end reason.",
                [(rate("policysweep_episodes_total", "", "fault, reason"), "{{fault}} {{reason}}")],
                12,
            ),
        ],
    },
)
