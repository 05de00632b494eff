"""The returns agent's script: reads the order, asks, judges, proposes, acts and declares the outcome.

case_file.py   what has happened so far, read from the messages
order.py       the facts that get_order_details shows
statements.py  what the customer says about the state of things, and whether it agrees
judgement.py   from facts to an outcome, as the disposition leans
acting.py      arguments of the calls
wording.py     what it says, in the voice of the agent persona
agent.py       the script itself
"""
