"""One conversation in the terminal: live progress, questions, the answer, and the trip."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import partial

from pydantic import JsonValue
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from rungent import Event, RungentError, Runtime
from rungent.demo.app import LOCAL_IDENTITY
from rungent.demo.asking import Asker, NoAnswer, answer_until_accepted
from rungent.demo.key_asker import KeyAsker
from rungent.demo.line_asker import DescriptorLines, LineAsker
from rungent.demo.progress import Progress, Row, advance, visible
from rungent.demo.questions import question_of
from rungent.demo.seed import DEMO_TRIP_ID
from rungent.demo.services import Services
from rungent.demo.trip import Trip

__all__ = ["default_asker", "run_once", "trip_table"]

_STANDARD_INPUT = 0
_MARKS = {"running": ("…", "yellow"), "completed": ("✓", "green"), "failed": ("✗", "red")}
_WORDS = {"running": "...", "completed": "ok", "failed": "failed"}


async def run_once(
    runtime: Runtime,
    services: Services,
    text: str,
    *,
    console: Console | None = None,
    asker: Asker | None = None,
) -> int:
    """Send one message in a new session of a serving runtime, and hold the conversation.

    Questions and approvals are asked here, background work is waited for. Returns 0 when the
    run completed, else 1 after showing the public error text; a run whose question nobody
    answers keeps waiting. Where the output is no terminal, every change becomes one plain line.
    """
    console = console or Console()
    try:
        session = await runtime.create_session(
            identity=LOCAL_IDENTITY, resource={"trip_id": DEMO_TRIP_ID}
        )
        stream = runtime.stream_run(session.id, text, identity=LOCAL_IDENTITY)
        conversation = _Conversation(runtime, console, asker or default_asker(console))
        progress = await conversation.hold(stream)
    except RungentError as error:
        console.print(Text(f"Not sent: {visible(error.message)}", style="red"))
        return 1
    _show_end(console, progress)
    console.print(trip_table(await services.trips.get(DEMO_TRIP_ID)))
    return 0 if progress.status == "completed" else 1


def default_asker(console: Console) -> Asker:
    """Menus for a person at a terminal; else plain lines from standard input."""
    if console.is_terminal and os.isatty(_STANDARD_INPUT):
        return KeyAsker(console)
    return LineAsker(console, DescriptorLines(_STANDARD_INPUT))


class _Conversation:
    """Follows one run and answers what it asks, until it ends or nobody answers."""

    def __init__(self, runtime: Runtime, console: Console, asker: Asker) -> None:
        self._runtime = runtime
        self._console = console
        self._asker = asker
        self._append = _appender(console)
        self._progress = Progress()
        self._run_id = ""

    async def hold(self, stream: AsyncIterator[Event]) -> Progress:
        """The run as far as it came."""
        await self._follow(stream)
        while self._progress.question is not None:
            asked, self._progress = self._progress.question, self._progress.after_pause()
            submit = partial(self._answer, asked["id"])
            try:
                await answer_until_accepted(self._asker, question_of(asked), submit)
            except NoAnswer:
                break
        return self._progress

    async def _answer(self, interaction_id: str, value: JsonValue) -> None:
        """Submit an answer and follow the run. Raises InvalidResponse for a refused one."""
        stream = self._runtime.stream_response(
            self._run_id, interaction_id, value, identity=LOCAL_IDENTITY
        )
        await self._follow(stream)

    async def _follow(self, stream: AsyncIterator[Event]) -> None:
        """Show events until the run pauses or ends."""
        # The first read may refuse: nothing is drawn before it has come.
        event = await anext(stream, None)
        with self._screen() as show:
            while event is not None:
                self._run_id = event.run_id
                self._progress = advance(self._progress, event)
                show(self._progress)
                event = await anext(stream, None)

    @contextmanager
    def _screen(self) -> Iterator[Callable[[Progress], None]]:
        """A function that shows progress: it redraws a terminal, and only appends elsewhere."""
        if not self._console.is_terminal:
            yield self._append
            return
        # Drawn when an event arrives, for a refreshing thread has no place in a trio program.
        with Live(console=self._console, auto_refresh=False) as live:
            yield lambda progress: live.update(_drawn(progress), refresh=True)


def trip_table(trip: Trip) -> Table:
    """The trip as a table, one row a day and one for the unplanned places."""
    table = Table(title=Text(f"{trip.title} (revision {trip.revision})"), title_justify="left")
    for heading in ("Day", "By", "Places"):
        table.add_column(heading)
    for day in trip.days:
        names = ", ".join(
            place.name if place.transport is None else f"{place.name} ({place.transport})"
            for place in trip.places_on(day.number)
        )
        table.add_row(str(day.number), day.transport, Text(visible(names) or "-"))
    unplanned = ", ".join(place.name for place in trip.places_on(None))
    table.add_row("unplanned", "-", Text(visible(unplanned) or "-"))
    if trip.budget is not None:
        table.caption, table.caption_justify = Text(f"Budget: {trip.budget.describe()}"), "left"
    return table


def _appender(console: Console) -> Callable[[Progress], None]:
    shown: dict[str, Row] = {}

    def show(progress: Progress) -> None:
        for row in progress.rows:
            if shown.get(row.key) != row:
                shown[row.key] = row
                console.print(Text(f"{_WORDS[row.status]:<7} {_line(row)}"), soft_wrap=True)

    return show


def _drawn(progress: Progress) -> RenderableType:
    rows = [
        Text.assemble(_MARKS[row.status], " ", _line(row), overflow="ellipsis", no_wrap=True)
        for row in progress.rows
    ]
    return Group(*rows, Text(""), Markdown(progress.text))


def _line(row: Row) -> str:
    return f"{row.label}: {row.message}" if row.message else row.label


def _show_end(console: Console, progress: Progress) -> None:
    if not console.is_terminal and progress.text:
        console.print()
        console.print(Text(progress.text), soft_wrap=True)
    if progress.status == "failed":
        console.print(Text(f"The run failed: {progress.error}", style="red"), soft_wrap=True)
    elif progress.status == "waiting_input":
        console.print()
        console.print(Text("The input ended, so the question stays open.", style="red"))
    elif progress.status != "completed":
        console.print(Text("The run ended without an answer.", style="red"))
    console.print()
