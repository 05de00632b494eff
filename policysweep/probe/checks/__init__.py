"""The checks: one coroutine per capability, from a server to a Finding; see `policysweep.probe.finding`."""
