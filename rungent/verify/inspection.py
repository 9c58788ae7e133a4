"""One stored run from end to end: its log, the rows that go with it, and its transcript.

Source: docs/operating.md#verify.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from pydantic import ValidationError

from rungent.records import ExternalTask, Interaction, Message, Run, ToolClaim
from rungent.verify.fold import Fold
from rungent.verify.grammar import LogError, LogReader
from rungent.verify.reasons import invalid_fields
from rungent.verify.rows import check_claims, check_interactions, check_rest, check_run, check_tasks
from rungent.verify.transcript import TranscriptReader

__all__ = ["StoredRun", "first_violation"]


class StoredRun(Protocol):
    """What is stored of one run, as of one moment; long lists are read as they are consumed."""

    def run(self) -> Run:
        """The row of the run."""
        ...

    def events(self) -> Iterable[tuple[int, str, Any]]:
        """Number, type and data of every event, by number."""
        ...

    def messages(self) -> Iterable[Message]:
        """The messages of the run, by position."""
        ...

    def claims(self) -> Iterable[ToolClaim]:
        """The ledger rows."""
        ...

    def interactions(self) -> Iterable[Interaction]:
        """The questions and approvals."""
        ...

    def tasks(self) -> Iterable[ExternalTask]:
        """The work that was left to the host."""
        ...


def first_violation(stored: StoredRun) -> str | None:
    """What is wrong first, beginning with its place (`seq 17: …`, `row: …`); None if all is well.

    Stored values that cannot be read at all are a violation, too.
    """
    try:
        return _inspect(stored)
    except ValidationError as invalid:
        return f"row: {invalid.title}: {invalid_fields(invalid)}"
    except (ValueError, TypeError):
        # The text of these errors may hold what is stored.
        return "row: a stored value cannot be read"


def _inspect(stored: StoredRun) -> str | None:
    run = stored.run()
    fold = Fold(run.id)
    wrong = _read_log(stored, run, fold)
    if wrong is not None:
        return wrong
    if not fold.events and run.event_seq and not run.active:
        # Pruned: what is left are the row and the messages.
        return check_rest(run) or _read_transcript(stored, run, None)
    return (
        check_run(run, fold)
        or check_claims(run, fold, stored.claims())
        or check_interactions(fold, stored.interactions())
        or check_tasks(fold, stored.tasks())
        or _read_transcript(stored, run, fold)
    )


def _read_log(stored: StoredRun, run: Run, fold: Fold) -> str | None:
    reader = LogReader(run.id)
    for seq, kind, data in stored.events():
        try:
            reader.read(seq, kind, data)
        except LogError as wrong:
            pruning = " (a prune that was interrupted? run it again)"
            hint = pruning if fold.events == 0 and seq > 1 and not run.active else ""
            return f"seq {seq}: {kind}: {wrong}{hint}"
        fold.take(seq, kind, data)
    if fold.events and not reader.ended and not run.active:
        return f"seq {reader.seq}: the log has no end, but the run is {run.status}"
    return None


def _read_transcript(stored: StoredRun, run: Run, fold: Fold | None) -> str | None:
    reader = TranscriptReader(run)
    for message in stored.messages():
        wrong = reader.read(message)
        if wrong is not None:
            return wrong
    wrong = reader.finish(fold.view.content if fold is not None else None)
    if wrong is not None or fold is None:
        return wrong
    for call_id in fold.calls:
        if call_id not in reader.calls and not run.active:
            return f"call {call_id}: is in the log, but not in the transcript"
    return None
