"""Tests of the SQL store: what goes beyond the contract that all stores share."""
