"""policysweep: evaluates LLM customer-service agents under imperfect policies, at scale."""

import os

__version__ = "0.1.0"

# gRPC's C core writes its own lines to stderr, for example for a port in use, which we report ourselves.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
