"""Coverage: which part of the planned units a figure rests on, and when that is too little to print it.

Units fail for reasons that go with their difficulty (long conversations overflow, slow models time out), so
the units that are left are no random sample. A headline over too few of them is withheld, not footnoted: one
success and three failures of the infrastructure are not 100%.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor


@dataclass(frozen=True, slots=True)
class Coverage:
    """`scored` of `planned`, and of what: units, or conversations that agents are matched on."""

    scored: int
    planned: int
    kind: str = "planned units are scored"

    @property
    def share(self) -> float | None:
        """Between 0 and 1; None when nothing is planned."""
        return self.scored / self.planned if self.planned else None

    def withheld(self, minimum: float) -> str:
        """Why a headline over these units is not given; "" when it is."""
        found = f"{self.scored:,} of {self.planned:,} {self.kind}"
        if not self.scored:
            return found
        share = self.scored / self.planned
        if share < minimum:
            # Rounded down, so that 94.96% does not read as if it reached 95%.
            shown = floor(1000 * share) / 10
            return f"{found}: a coverage of {shown:.1f}% is below the minimum of {100 * minimum:g}%"
        return ""
