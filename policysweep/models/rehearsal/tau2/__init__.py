"""The rehearsal model on tau2-bench: the user, the agent, and the judge of assertions.

    user.py         speaks from its scenario, agrees, insists once, stops
    agent.py        follows the gold actions of a task, if the server was given them; else looks things up
                    and hands over
    gold.py         the file of gold actions: a side channel for tests and rehearsals, `--tau2-gold FILE`
    lessons.py      how a lesson is recognised in what the agent has retrieved
    assertions.py   decides assertions by what can be found in the transcript

The gold actions are what a good agent would do, so a rehearsal with them has rewards worth a report. Those
that the written policy forbids are made only when the conversation holds the lesson that allows them: what an
agent retrieves from a bank is the one way to it.
"""
