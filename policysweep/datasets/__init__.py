"""Data sets: the scenarios that are played, and the frozen order worlds behind them.

A *source* names a data set: `builtin`, a path, or `hub:OWNER/NAME`. `load` turns a source into a `Dataset`
of contract messages and refuses one that is not sound; `check` tells everything that is wrong with it;
`build` writes it in the public layout of DRIP-R; `making` makes the worlds that a data set lacks.
"""
