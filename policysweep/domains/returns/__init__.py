"""The returns domain of DRIP-R (arXiv 2605.07699): an order world and the tools over it.

    environment.py   one episode: dispatch, repeated calls, executed writes
    toolset.py       the 11 agent tools and the 5 customer tools, with their definitions
    arguments.py     what each tool takes; schema.py makes JSON schemas of it and checks calls against it
    reads.py, products.py, policy_text.py, customer_tools.py      what may be seen
    returning.py, exchanging.py, paying.py, updating.py           what may be changed
    state.py, money.py                                            the order as the episode left it
    verification.py                              the only module that knows the hidden truth
    resolution.py, reconcile.py                  the declared outcome, and what really ran

docs/domain-returns.md says what each tool shows, changes and refuses.
"""
