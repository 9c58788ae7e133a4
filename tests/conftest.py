"""Fixtures that several folders share, and the ban on real sleeps."""

import pytest

from tests.persistence.postgres import postgres_url as postgres_url
from tests.persistence.stores import empty_postgres as empty_postgres
from tests.sleeping import forbid, virtual_seconds

forbid()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how much of the sleep was real: none, for a real one fails its test."""
    line = f"sleep of tests: 0 s in real time, {virtual_seconds[0]:.0f} s in virtual time"
    terminalreporter.write_line(line)
