"""tau2-bench's airline and retail domains, played with the package's own tools.

    package.py     the package, imported when first needed
    domain.py      a domain: policy, tools, original database; loaded once a process
    world.py       the state of one episode: calls go in, answers come out
    toolbox.py     one side's tools: definitions, schemas, which of them write
    tables.py      copy-on-write databases and their hashes
    arguments.py   arguments of calls, with numbers as the schema wants them

Nothing here is a tool: what a call does is up to the package.
"""

from policysweep.domains.tau2.domain import CLOCK, INITIAL_HASHES, Domain, load_domain, loaded_domain
from policysweep.domains.tau2.package import installed
from policysweep.domains.tau2.world import World

__all__ = ["CLOCK", "INITIAL_HASHES", "Domain", "World", "installed", "load_domain", "loaded_domain"]
