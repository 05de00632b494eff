"""A sweep: every scenario, with every agent, as many times as asked, and exactly one record of each.

    sweep.yaml -> spec -> manifest -> plan -> (runner) -> ledger -> verify, report
                            |                               |
                            +------ inputs -----------------+     all of it in one folder of the store

Units are derived, never queued: the manifest and the inputs of a run give the plan, the names of the
records give what is done, and what remains is the difference. So a run is resumed by starting it again, on
any machine, and a run's folder is all that a report, a judge or a proof needs.
"""
