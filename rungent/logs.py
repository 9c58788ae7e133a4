"""Log records as JSON, one object a line, for whoever collects them.

Source: docs/operating.md#logs.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

from typing_extensions import override

from rungent.text import dump_json, to_json_value

__all__ = ["JsonFormatter"]

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """`time`, `level`, `logger`, `message`, a traceback as `exception`, and every extra field.

    Whatever JSON cannot hold becomes its string form.
    """

    @override
    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        shown: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name, value in vars(record).items():
            if name not in _STANDARD:
                shown.setdefault(name, value)
        if record.exc_info:
            shown["exception"] = self.formatException(record.exc_info)
        return dump_json(to_json_value(shown))
