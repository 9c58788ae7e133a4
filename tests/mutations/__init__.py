"""Deliberate bugs in a copy of the package, and the simulation that must find them."""
