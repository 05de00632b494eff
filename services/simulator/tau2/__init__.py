"""tau2-bench episodes: an agent and a simulated user on one of the package's domains."""
