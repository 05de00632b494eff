"""The subcommands of `policysweep`, one module each."""
