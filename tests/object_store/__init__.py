"""The object store, for real: an S3 server on this machine, and a proxy that gets in its way."""
