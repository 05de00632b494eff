"""The policy bank and its store."""

from __future__ import annotations

from scripts.dashboards.panels import Board, Panel, quantiles, rate

_BANK = 'method=~".*PolicyBankService/.+"'
_READS = 'method=~".*PolicyBankService/(Recall|ListHeaders|BatchGetSpecs)"'

BANK = Board(
    "policysweep-bank",
    "policysweep / Policy bank",
    "What banks learn, how fast they answer, and their store.",
    {},
    {
        "The banks": [
            Panel(
                "stack",
                "Revisions by kind",
                "short",
                "Written since the service started.",
                [("sum by (kind) (policysweep_bank_revisions_total)", "{{kind}}")],
            ),
            Panel(
                "graph",
                "Retrieval",
                "s",
                "Recall, and the two steps of retrieve_policy.",
                quantiles("policysweep_grpc_server_call_seconds", _READS, "method", "{{method}}"),
            ),
            Panel(
                "stack",
                "Calls by code",
                "reqps",
                "All methods of the service.",
                [(rate("policysweep_grpc_server_calls_total", _BANK, "code"), "{{code}}")],
                alert="PolicysweepInternalErrors",
            ),
            Panel(
                "graph",
                "Curator's model",
                "s",
                "The model that writes entries.",
                quantiles("policysweep_model_call_seconds", 'role="curator"', "model", "{{model}}"),
                12,
            ),
            Panel(
                "stack",
                "Curator's tokens",
                "short",
                "Per second, by kind.",
                [(rate("policysweep_model_tokens_total", 'role="curator"', "kind"), "{{kind}}")],
                12,
            ),
        ],
        "The store": [
            Panel(
                "stat",
                "Store answers",
                "bool_yes_no",
                "Asked every ten seconds.",
                [("min(policysweep_bank_store_up)", "")],
                6,
                {1: "green"},
                "red",
                "PolicysweepQdrantDown",
            ),
            Panel(
                "graph",
                "Calls that failed",
                "reqps",
                "By operation.",
                [
                    (
                        rate("policysweep_bank_store_calls_total", 'outcome="error"', "operation"),
                        "{{operation}}",
                    )
                ],
                9,
                alert="PolicysweepBankStoreErrors",
            ),
            Panel(
                "graph",
                "Time of a call, 95th percentile",
                "s",
                "By operation.",
                quantiles("policysweep_bank_store_call_seconds", "", "operation", "{{operation}}")[1:],
                9,
            ),
        ],
    },
)
