"""The four gRPC services. They import policysweep, never one another."""
