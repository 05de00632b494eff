"""Turns the records of a run into figures, and the figures into something to read.

    records  --rows-----> compact rows --tally--> counts per agent, grid of outcomes
                          --statistics, agreement--> estimates      --+
    verdicts --verdicts-> lines of scores --judged, scores--> tables  +--summary--> content of report.json
                          --means, reliability--> estimates         --+             --terminal--> tables

    two runs --comparison--> paired differences --terminal_comparison--> tables

Nothing in here does I/O. This package imports nothing by itself: scipy and statsmodels take seconds to
load, and only a command that computes figures should pay for them. `docs/methodology.md` holds each
figure's formula, source and convention.
"""
