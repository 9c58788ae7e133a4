"""Migrations as the documentation shows them, and the check of a schema."""
