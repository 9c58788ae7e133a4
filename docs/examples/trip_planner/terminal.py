"""One conversation in the terminal: live progress, the answer, and the trip afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from rungent import RungentError, Runtime
from rungent.demo.app import LOCAL_IDENTITY
from rungent.demo.progress import Progress, Row, advance, visible
from rungent.demo.seed import DEMO_TRIP_ID
from rungent.demo.service import TripService
from rungent.demo.trip import Trip

__all__ = ["run_once", "trip_table"]

_MARKS = {"running": ("…", "yellow"), "completed": ("✓", "green"), "failed": ("✗", "red")}
_WORDS = {"running": "...", "completed": "ok", "failed": "failed"}


async def run_once(
    runtime: Runtime, trips: TripService, text: str, *, console: Console | None = None
) -> int:
    """Send one message in a new session of a serving runtime and show what happens.

    Returns 0 when the run completed, else 1 after showing the public error text. Where the
    output is no terminal, every change becomes one plain line.
    """
    console = console or Console()
    progress = Progress()
    try:
        session = await runtime.create_session(
            identity=LOCAL_IDENTITY, resource={"trip_id": DEMO_TRIP_ID}
        )
        with _screen(console) as show:
            async for event in runtime.stream_run(session.id, text, identity=LOCAL_IDENTITY):
                progress = advance(progress, event)
                show(progress)
    except RungentError as error:
        console.print(Text(f"Not sent: {visible(error.message)}", style="red"))
        return 1
    _show_end(console, progress)
    console.print(trip_table(await trips.get(DEMO_TRIP_ID)))
    return 0 if progress.status == "completed" else 1


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
    return table


@contextmanager
def _screen(console: Console) -> Iterator[Callable[[Progress], None]]:
    """A function that shows progress: it redraws a terminal, and only appends elsewhere."""
    if not console.is_terminal:
        yield _appender(console)
        return
    # Drawn when an event arrives, for a refreshing thread has no place in a trio program.
    with Live(console=console, auto_refresh=False) as live:
        yield lambda progress: live.update(_drawn(progress), refresh=True)


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
        console.print(Text(f"The assistant asks: {progress.prompt}"), soft_wrap=True)
        console.print(Text("A single message cannot answer it; use the served demo.", style="red"))
    elif progress.status != "completed":
        console.print(Text("The run ended without an answer.", style="red"))
    console.print()
