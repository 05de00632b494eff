"""policysweep: evaluates LLM customer-service agents under imperfect policies, at scale."""

__version__ = "0.1.0"
