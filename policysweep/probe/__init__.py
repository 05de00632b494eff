"""What a model server can do, found out by asking it.

server.py       the server under the probe: the project's own client, and a raw exchange beside it
checks/         one small function per capability, from server to Finding
capabilities.py the table of them: what each means for whom
ramp.py         throughput against concurrency
run.py          asks all within a time limit
usability.py    from findings to "usable as agent, customer, judge"; pure
scaffold.py     the sweep file and the Kubernetes folder of an agent; pure
flags.py        the flags of `vllm serve` that mend what is missing
"""
