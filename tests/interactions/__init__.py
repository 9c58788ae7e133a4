"""Tests of questions to the user and their answers."""
