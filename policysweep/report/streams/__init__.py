"""The report of stream runs: how well a memory learns, and whether it does harm.

records --rows--> one row a task --grid--> outcomes by seed, trial and task
outcomes --passes, comparisons, influence--> figures --summary--> stream-report.json
summary --terminal, html--> tables and the page
"""
