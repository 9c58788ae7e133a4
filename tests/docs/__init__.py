"""Tests of the documentation: what it shows runs, what it lists exists."""
