"""gRPC as the project uses it: one server shell, one way to open channels, one mapping of errors."""
