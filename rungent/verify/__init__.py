"""Checking what is stored: logs, run rows, ledgers and transcripts. Source: docs/operating.md."""

from rungent.verify.grammar import LogError as LogError
from rungent.verify.grammar import LogReader as LogReader
from rungent.verify.inspection import StoredRun as StoredRun
from rungent.verify.inspection import first_violation as first_violation

__all__ = ["LogError", "LogReader", "StoredRun", "first_violation"]
