"""The rehearsal model: an OpenAI-compatible server without weights.

It plays agents, customers and other roles by script, so that a team can rehearse a sweep, size a cluster
and test its alerts before it spends GPU hours. Equal requests get equal answers, and every answer is marked:
its `system_fingerprint` starts with `policysweep-rehearsal-`, and /v1/models says owned_by
`policysweep-rehearsal`.

    request.py  ->  roles.py -> a script (returns/, customer/, structured.py, chat.py)  ->  draft.py
                                                                                              |
    server.py   <-  wire.py  <-  engine.py: tokens.py (prefix cache), faults.py, latency.py  <+

A script sees the request and nothing else, keeps nothing, and draws from hashes (draws.py) where a model
would sample.
"""

from policysweep.models.rehearsal.config import RehearsalConfig
from policysweep.models.rehearsal.dispositions import DISPOSITIONS
from policysweep.models.rehearsal.faults import FaultKind
from policysweep.models.rehearsal.server import RehearsalServer

__all__ = ["DISPOSITIONS", "FaultKind", "RehearsalConfig", "RehearsalServer"]
