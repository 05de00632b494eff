"""Stream runs: tasks one after another, with a bank that learns in between (docs/streams.md).

spec.py       the stream file
plan.py       streams, and the tasks of each in order; pure
inputs.py     the tasks and gaps that a run plays, kept with its results
manifest.py   what decides the results, frozen before the first task
records.py    what makes a record of a task one
ledger.py     the folder of a run
services.py   the services of a run: found or started
clients.py    those services as the driver calls them
banks.py      the banks of a run: made, forked, put back to where a stream stands
step.py       one task: played, graded, learnt from, recorded
runner.py     all streams, a bounded number at a time
driver.py     from a stream file to a run with all its records
display.py    how a run shows itself
verify.py     the proof that it is complete
"""
