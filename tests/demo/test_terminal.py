"""The terminal: questions answered by lines through a pipe, by keys, or not at all."""

from __future__ import annotations

import os
import pty
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import questionary
import trio
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput
from rich.console import Console

from rungent.demo.asking import NoAnswer
from rungent.demo.key_asker import KeyAsker, prompted
from rungent.demo.line_asker import DescriptorLines
from rungent.demo.questions import Choice, Decision, Option, Text

OPTIONS = (Option("a", "Alpha"), Option("b", "Beta"))
DOWN, ENTER, SPACE, CTRL_C, CTRL_D = "\x1b[B", "\r", " ", "\x03", "\x04"


def command(database: Path | str, text: str) -> list[str]:
    return [sys.executable, "-m", "rungent", "demo", "--db", str(database), "--once", text]


async def talk(database: Path | str, text: str, *lines: str) -> tuple[int, str]:
    """Exit code and output of the demo with these lines as its standard input."""
    with trio.fail_after(300):
        done = await trio.run_process(
            command(database, text),
            stdin="".join(f"{line}\n" for line in lines).encode(),
            capture_stdout=True,
            check=False,
            env={**os.environ, "COLUMNS": "200", "OPENAI_MODEL": ""},
        )
    return done.returncode, done.stdout.decode()


async def test_a_choice_is_answered_with_a_number() -> None:
    code, out = await talk(":memory:", "Move the museum to day 2", "7", "Edo", "1")
    assert code == 0
    assert "1. Edo-Tokyo Museum - on day 1 (recommended)" in out
    assert "The numbers go from 1 to 2." in out
    assert "Only the numbers of the options can be chosen." in out
    assert "Resolve Place: Moved Edo-Tokyo Museum to day 2." in out


async def test_a_choice_can_be_skipped() -> None:
    code, out = await talk(":memory:", "Move the museum to day 2", "skip")
    assert code == 0
    assert 'or "skip" (Leave the trip as it is)' in out
    assert "- Left the trip as it was." in out
    assert "(revision 1)" in out


async def test_a_form_is_asked_question_by_question(tmp_path: Path) -> None:
    database = tmp_path / "demo.sqlite3"
    # The blank second answer is refused by the runtime, and only that question comes again.
    lines = ("1", "", "A quiet hotel", "2, 3, Jazz bars")
    code, out = await talk(database, "Set my preferences", *lines)
    assert code == 0
    assert out.count("? Which pace do you prefer?") == 1
    assert out.count("? What interests you?") == 2
    assert "A required answer is missing." in out
    assert "relaxed pace; interests: museums, food, Jazz bars; wish: A quiet hotel" in out


async def test_data_are_asked_field_by_field() -> None:
    # The amount is no number, then refused by the runtime; only its field comes again.
    lines = ("much", "0", "2", "1", "2030-04-01", "1500")
    code, out = await talk(":memory:", "Set a budget, then show my trip", *lines)
    assert code == 0
    assert "? Amount (In whole units, without cents; at least 1; at most 100,000,000)" in out
    assert "Please type a whole number." in out
    assert "The value is not valid. (amount)" in out
    assert out.count("? Amount") == 3
    assert out.count("? Currency") == out.count("? For each person") == 1
    told = "1,500 EUR for each person, to be booked by 2030-04-01"
    assert f"Set budget: The budget is {told}." in out
    assert f"*Budget:* {told}" in out
    assert f"Budget: {told}" in out
    assert "(revision 2)" in out


async def test_the_end_of_the_input_leaves_data_open() -> None:
    code, out = await talk(":memory:", "Set a budget", "1500")
    assert code == 1
    assert "the question stays open" in out


async def test_approvals_show_their_impact_and_are_rejected_or_given(tmp_path: Path) -> None:
    database = tmp_path / "demo.sqlite3"
    code, out = await talk(database, "Delete day 3", "perhaps", "no")
    assert code == 0
    assert "Delete day 3? 2 places become unplanned: Ueno Park, Tsukiji Market." in out
    assert "Please answer yes or no." in out
    assert "The user declined the operation." in out
    assert "(revision 1)" in out
    code, out = await talk(database, "Delete day 3", "yes")
    assert code == 0
    assert "Deleted day 3; its places are unplanned." in out
    assert "(revision 2)" in out


async def test_an_import_asks_in_a_chain_and_ends_with_an_approval() -> None:
    text = "Day 1: museum\nDay 4: Sushi Dai, Ueno Park"
    code, out = await talk(":memory:", text, "2", "skip", "yes")
    assert code == 0
    assert "~ Ghibli Museum: day 2 → day 1" in out
    assert "- left out: Sushi Dai" in out
    assert "- Imported the itinerary into Tokyo, three days." in out


async def test_background_work_is_waited_for() -> None:
    code, out = await talk(":memory:", "Optimise day 1")
    assert code == 0
    assert "In the background: Comparing the ways through 3 places on day 1" in out
    assert "- Day 1: 8.2 km instead of 14.0 km." in out


async def test_the_end_of_the_input_leaves_the_question_open() -> None:
    code, out = await talk(":memory:", "Delete day 3")
    assert code == 1
    assert "the question stays open" in out


async def test_a_preview_that_fails_writes_no_traceback() -> None:
    with trio.fail_after(300):
        done = await trio.run_process(
            command(":memory:", "Delete day 9"),
            stdin=b"",
            capture_stdout=True,
            capture_stderr=True,
            check=False,
            env={**os.environ, "OPENAI_MODEL": ""},
        )
    assert done.returncode == 0
    assert b"The confirmation could not be prepared." in done.stdout
    assert b"Traceback" not in done.stderr


async def read_until(terminal: trio.lowlevel.FdStream, text: bytes) -> None:
    seen = b""
    while text not in seen:
        chunk = await terminal.receive_some()
        assert chunk, seen
        seen += chunk


async def drain(terminal: trio.lowlevel.FdStream) -> None:
    # A terminal whose other end is closed reports an error instead of an end.
    try:
        while await terminal.receive_some():
            pass
    except (trio.BrokenResourceError, OSError):
        return


@pytest.mark.parametrize(("keys", "code"), [(ENTER, 0), (DOWN + DOWN + ENTER, 0), (CTRL_C, 130)])
async def test_a_person_at_a_terminal_uses_keys_and_may_give_up(keys: str, code: int) -> None:
    ours, theirs = pty.openpty()
    async with trio.lowlevel.FdStream(ours) as terminal:
        with trio.fail_after(300):
            async with trio.open_nursery() as nursery:
                process: trio.Process = await nursery.start(
                    partial(
                        trio.run_process,
                        command(":memory:", "Move the museum to day 2"),
                        stdin=theirs,
                        stdout=theirs,
                        stderr=theirs,
                        check=False,
                        env={
                            **os.environ,
                            "TERM": "xterm",
                            "OPENAI_MODEL": "",
                            "PROMPT_TOOLKIT_NO_CPR": "1",
                        },
                    )
                )
                os.close(theirs)
                await read_until(terminal, b"Leave the trip")
                await terminal.send_all(keys.encode())
                nursery.start_soon(drain, terminal)
                assert await process.wait() == code
                nursery.cancel_scope.cancel()


@contextmanager
def keyboard() -> Iterator[PipeInput]:
    """Keys for prompts of this test, which draw nothing."""
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        yield keys


ASKER = KeyAsker(Console(quiet=True))


async def test_menus_give_the_answers_that_lines_give() -> None:
    whole = Choice("?", OPTIONS, allow_custom=True, skip="Skip")
    several = Choice("?", OPTIONS, multiple=True, allow_custom=True)
    with trio.fail_after(300), keyboard() as keys:
        keys.send_text(DOWN + ENTER)
        assert await ASKER.choice(whole) == {"selected": ["b"]}
        keys.send_text(DOWN * 3 + ENTER)
        assert await ASKER.choice(whole) == {"selected": [], "skipped": True}
        keys.send_text(DOWN * 2 + ENTER + "Tea" + ENTER)
        assert await ASKER.choice(whole) == {"selected": [], "custom": "Tea"}
        keys.send_text(SPACE + DOWN * 2 + SPACE + ENTER + "Tea" + ENTER)
        assert await ASKER.choice(several) == {"selected": ["a"], "custom": "Tea"}
        keys.send_text(ENTER)
        assert await ASKER.choice(several) is None
        keys.send_text("Words" + ENTER)
        assert await ASKER.text(Text("?", required=False)) == "Words"
        keys.send_text(ENTER)
        assert await ASKER.decision(Decision("Delete?", "Delete day")) == "reject"
        keys.send_text(DOWN + ENTER)
        assert await ASKER.decision(Decision("Delete?", "Delete day")) == "approve"


async def test_giving_up_is_an_interrupt() -> None:
    with trio.fail_after(300), keyboard() as keys:
        keys.send_text(CTRL_C)
        with pytest.RaisesGroup(KeyboardInterrupt):
            await ASKER.text(Text("?"))


async def test_the_end_of_typing_is_no_answer() -> None:
    with trio.fail_after(300), keyboard() as keys:
        keys.send_text(CTRL_D)
        with pytest.raises(NoAnswer):
            await ASKER.text(Text("?"))


def _ignoring(tell: Callable[[], None], _: object) -> None:
    tell()


async def test_a_prompt_ends_when_it_is_cancelled() -> None:
    with trio.fail_after(300), keyboard():
        # Before its loop runs, and after: neither may leave a thread that owns the terminal.
        for late in (False, True):
            prompt = questionary.text("?")
            running = trio.Event()
            tell = partial(trio.lowlevel.current_trio_token().run_sync_soon, running.set)
            prompt.application.before_render.add_handler(partial(_ignoring, tell))
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(prompted, prompt)
                    if late:
                        await running.wait()
                    scope.cancel()
            assert scope.cancelled_caught
            assert not prompt.application.is_running


async def test_lines_come_from_pipes_and_plain_files(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    lines = DescriptorLines(reading)
    os.write(writing, b"one\r\ntw")
    with trio.fail_after(300):
        assert await lines.next() == "one"
        with trio.CancelScope() as scope:
            scope.cancel()
            await lines.next()
        os.write(writing, b"o\n\nlast")
        os.close(writing)
        assert [await lines.next() for _ in range(3)] == ["two", "", "last"]
        with pytest.raises(NoAnswer):
            await lines.next()
        os.close(reading)
        (tmp_path / "answers").write_text("yes\n")
        with (tmp_path / "answers").open("rb") as file:
            assert await DescriptorLines(file.fileno()).next() == "yes"
