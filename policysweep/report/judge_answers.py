"""How a judge answered: what it took, how often an answer could not be used, how sure it was."""

from __future__ import annotations

from functools import reduce

import numpy as np

from policysweep.report.figures import Json
from policysweep.report.judged import Judged
from policysweep.report.per_agent import tokens_json
from policysweep.report.rows import Tokens
from policysweep.report.scores import Lines, absences, low_mass, reason_name
from policysweep.report.verdicts import PanelTally


def answers_section(judged: Judged, judge: str) -> Json:
    """`answers` and `tokens` of a judge, over all recorded units."""
    notes, lines = judged.verdicts.notes[judge], judged.lines(judge)
    panels = {panel: notes.panels[panel] for panel in judged.criteria.panels if panel in notes.panels}
    whole = PanelTally(
        sum(tally.verdicts for tally in panels.values()),
        sum(tally.unusable for tally in panels.values()),
        reduce(Tokens.plus, (tally.tokens for tally in panels.values()), Tokens()),
    )
    return {
        "answers": {
            "units": len({unit for unit, _ in notes.read}),
            **_panel(whole),
            "rehearsal_verdicts": notes.rehearsal,
            "panels": {panel: _panel(tally) for panel, tally in panels.items()},
            "scores": _scores(lines, judged),
        },
        "tokens": {
            **tokens_json(whole.tokens.plus(notes.goals)),
            "panels": {panel: tokens_json(tally.tokens) for panel, tally in panels.items()},
            "goals": tokens_json(notes.goals),
        },
    }


def _panel(tally: PanelTally) -> Json:
    """The rate is of the model's answers: one that was asked again and then used counts in both numbers."""
    calls = tally.tokens.calls
    return {
        "verdicts": tally.verdicts,
        "model_calls": calls,
        "unusable": tally.unusable,
        "unusable_rate": tally.unusable / calls if calls else None,
    }


def _scores(lines: Lines, judged: Judged) -> Json:
    """Scores present and absent, turns one by one, and how sure the judge was of those present."""
    present = ~np.isnan(lines.value)
    gone: dict[str, int] = {}
    for (_, reason), number in sorted(absences(lines).items(), key=lambda entry: entry[0][1]):
        gone[reason_name(reason)] = gone.get(reason_name(reason), 0) + number
    mass, spread = (column[present & ~np.isnan(column)] for column in (lines.mass, lines.spread))
    return {
        "present": int(present.sum()),
        "absent": gone,
        "with_mass": len(mass),
        "mean_mass": float(mass.mean()) if len(mass) else None,
        "low_mass": int(low_mass(lines, judged.criteria).sum()),
        "repeated": len(spread),
        "mean_spread": float(spread.mean()) if len(spread) else None,
    }
