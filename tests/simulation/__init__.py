"""Plays of whole systems: our own scenarios, and the tools that play them."""
