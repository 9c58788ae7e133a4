"""Tests, grouped by the package they speak about."""
