"""The whole runtime in virtual time: creation, capacity, cancel, leases, following."""
