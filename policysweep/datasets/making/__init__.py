"""Makes the order worlds that a data set lacks: once for each task, through a chat model.

The model is asked for the facts of the story only (`facts.py`). Everything that follows from them, such as
ids, dates, totals, rates and risk levels, is derived here (`derive.py`) and so cannot contradict them.
Answers are validated and asked for again with what was wrong (`ask.py`). Worlds are kept beside the data set
under the digest of its scenarios, and a run that was stopped goes on where it was (`store.py`, `run.py`).
"""
