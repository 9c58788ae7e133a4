"""Tests of tools: declaration, arguments, results and context."""
