"""What the providers' APIs look like: pure functions on JSON bodies, without I/O and without a client library."""
