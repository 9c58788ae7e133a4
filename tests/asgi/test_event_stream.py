"""The event stream: frames, ends, keep-alives, reconnects, readers that are slow or gone."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from rungent import Identity
from rungent.asgi.event_stream import CHUNK_BYTES, StreamBroken
from rungent.events import Event
from rungent.llm import ModelCompleted, TextDelta
from rungent.records import RunStatus
from rungent.store import MemoryStore, Store
from rungent.store.port import Commit
from rungent.testing import Delay, ScriptedModel
from rungent.testing.asgi import AsgiStream
from rungent.testing.scripted import Response
from rungent.testing.sse import SseFrame, SseReader
from rungent.testing.store_samples import OWNER, create_running, step
from tests.asgi.apps import GatedModel, World, app_of, detail, runtime_with, world


def stream_path(run_id: str, query: str = "") -> str:
    return f"/runs/{run_id}/events/stream{query}"


async def log(w: World, run_id: str) -> list[dict[str, Any]]:
    answer = await w.client.request("GET", f"/runs/{run_id}/events?limit=500")
    return list(answer.json())


async def whole(w: World, run_id: str, query: str = "", **headers: str) -> list[SseFrame]:
    answer = await w.client.request("GET", stream_path(run_id, query), headers=headers)
    assert answer.status == 200
    return SseReader().feed(answer.body)


def seqs(frames: list[SseFrame]) -> list[int]:
    return [frame.seq for frame in frames if frame.seq is not None]


@asynccontextmanager
async def following(w: World, run_id: str, query: str = "") -> AsyncGenerator[AsgiStream]:
    async with w.client.stream("GET", stream_path(run_id, query)) as stream:
        assert stream.status == 200
        yield stream


async def test_frames_are_exactly_as_documented(autojump_clock: MockClock) -> None:
    async with world(["Rome."]) as w:
        run_id = await w.started()
        await w.ended(run_id)
        answer = await w.client.request("GET", stream_path(run_id))
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert answer.headers["cache-control"] == "no-cache, no-transform"
        assert answer.headers["x-accel-buffering"] == "no"
        events = await log(w, run_id)
        expected = "retry: 1000\n\n" + "".join(
            f"id: {e['seq']}\ndata: "
            + json.dumps(e, ensure_ascii=False, separators=(",", ":"))
            + "\n\n"
            for e in events
        )
        assert answer.body.decode() == expected


async def test_the_retry_frame_does_not_wait_for_an_event(autojump_clock: MockClock) -> None:
    async with world([[Delay(100), ModelCompleted("x")]]) as w:
        run_id = await w.started()
        async with following(w, run_id, "?after_seq=999") as stream:
            assert await anext(stream) == b"retry: 1000\n\n"
            assert trio.current_time() < 1


async def test_a_silent_stream_sends_a_comment_every_fifteen_seconds_and_is_never_cut(
    autojump_clock: MockClock,
) -> None:
    script: list[Response] = [[Delay(100), TextDelta("a"), Delay(1000), ModelCompleted()]]
    async with world(script, runtime_options={"model_wait_progress_after_seconds": 9999}) as w:
        run_id = await w.started()
        start = trio.current_time()
        seen: list[tuple[float, str]] = []
        async with following(w, run_id, "?after_seq=2") as stream:
            reader = SseReader()
            async for chunk in stream:
                for frame in reader.feed(chunk):
                    what = frame.comment or str(frame.seq or "retry")
                    seen.append((trio.current_time() - start, what))
                if seen[-1][0] > 900:
                    break
        quiet = [at for at, what in seen if what == "keep-alive"]
        (first_delta,) = [at for at, what in seen if what == "3"]
        assert first_delta == pytest.approx(100)
        assert quiet[:6] == pytest.approx([15, 30, 45, 60, 75, 90])
        assert quiet[6] == pytest.approx(115)
        assert quiet[-1] > 900


async def test_the_keep_alive_interval_is_the_hosts(autojump_clock: MockClock) -> None:
    async with world([[Delay(100), ModelCompleted("x")]], keepalive_seconds=2) as w:
        run_id = await w.started()
        async with following(w, run_id, "?after_seq=100") as stream:
            start = trio.current_time()
            await SseReader().frames(stream, 3)
            assert trio.current_time() - start == pytest.approx(4)


async def test_padding_follows_the_start_and_every_keep_alive(autojump_clock: MockClock) -> None:
    script: list[Response] = [[TextDelta("a"), Delay(40), ModelCompleted()]]
    silent = {"model_wait_progress_after_seconds": 9999}
    async with world(script, padding_bytes=2000, runtime_options=silent) as w:
        run_id = await w.started()
        plain = await log(w, run_id)
        async with following(w, run_id, f"?after_seq={len(plain)}") as stream:
            chunks = [chunk async for chunk in stream]
        padding = b":" + b" " * 2000 + b"\n\n"
        assert chunks[0] == b"retry: 1000\n\n" + padding
        quiet = [chunk for chunk in chunks if b"keep-alive" in chunk]
        assert quiet == [b": keep-alive\n\n" + padding] * len(quiet)
        assert len(quiet) >= 2
        assert b"".join(chunks).count(padding) == 1 + len(quiet)
        assert (
            seqs(SseReader().feed(b"".join(chunks))) == seqs(await whole(w, run_id))[len(plain) :]
        )


@pytest.mark.parametrize("wrong", [-1, 2**20 + 1])
def test_padding_has_bounds(wrong: int) -> None:
    with pytest.raises(ValueError, match="padding_bytes"):
        app_of(runtime_with(ScriptedModel([])), padding_bytes=wrong)


async def test_a_stream_is_never_compressed(autojump_clock: MockClock) -> None:
    async with world(["Rome. " * 2000]) as w:
        run_id = await w.started()
        await w.ended(run_id)
        headers = {"Accept-Encoding": "gzip, deflate, br, zstd"}
        answer = await w.client.request("GET", stream_path(run_id), headers=headers)
        assert "content-encoding" not in answer.headers
        assert b'"type":"run.completed"' in answer.body


async def test_what_is_made_for_a_reader_at_once_is_bounded(autojump_clock: MockClock) -> None:
    script: list[Response] = [
        [part for _ in range(60) for part in (TextDelta("x" * 10_000), Delay(1))]
        + [ModelCompleted()]
    ]
    async with world(script) as w:
        run_id = await w.started()
        await w.ended(run_id)
        async with following(w, run_id) as stream:
            chunks = [chunk async for chunk in stream]
        largest = max(len(json.dumps(event)) for event in await log(w, run_id))
        assert max(map(len, chunks)) < CHUNK_BYTES + largest + 100
        assert len(chunks) > 5
        assert seqs(SseReader().feed(b"".join(chunks))) == [e["seq"] for e in await log(w, run_id)]


@pytest.mark.parametrize(
    ("query", "header", "first"),
    [
        ("", None, 1),
        ("", "2", 3),
        ("", " 2 ", 3),
        ("", "-1", 1),
        ("", "x", 1),
        ("", "", 1),
        ("", "9" * 40, 1),
        ("?after_seq=1", "3", 2),
        ("?after_seq=0", "3", 1),
    ],
)
async def test_after_seq_goes_before_the_last_event_id(
    autojump_clock: MockClock, query: str, header: str | None, first: int
) -> None:
    async with world(["Rome."]) as w:
        run_id = await w.started()
        await w.ended(run_id)
        headers = {} if header is None else {"Last-Event-ID": header}
        frames = await whole(w, run_id, query, **headers)
        assert seqs(frames) == [e["seq"] for e in await log(w, run_id)][first - 1 :]


async def waiting_for_input(store: Store) -> str:
    """A run of Ada's that has asked its user something."""
    run = await create_running(store)
    paused = step(run, events=2, status=RunStatus.WAITING_INPUT, lease=None)
    started, asked = paused.events
    events = (
        started.model_copy(update={"type": "run.started"}),
        asked.model_copy(update={"type": "interaction.requested"}),
    )
    await store.commit(Commit(paused.run, events=events), owner=OWNER, token=1)
    return run.id


async def test_the_stream_ends_where_the_user_is_asked_and_goes_on_until_terminal(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore()
    run_id = await waiting_for_input(store)
    async with world(runtime_options={"store": store}) as w:
        frames = await whole(w, run_id)
        assert frames[-1].event["type"] == "interaction.requested"
        assert seqs(await whole(w, run_id, f"?after_seq={frames[-1].seq}")) == []
        async with following(w, run_id, "?until=terminal") as stream, trio.open_nursery() as n:
            reader = SseReader()
            seen = await reader.frames(stream, 1 + len(seqs(frames)))
            assert seqs(seen) == seqs(frames)
            n.start_soon(w.client.request, "POST", f"/runs/{run_id}/cancel")
            rest = await reader.frames(stream)
        assert [f.event["type"] for f in rest if f.event][-1] == "run.cancelled"


async def test_a_stream_that_ends_by_a_stop_says_so(autojump_clock: MockClock) -> None:
    model = GatedModel()
    async with world(model) as w:
        run_id = await w.started()
        await model.asked.wait()
        async with following(w, run_id) as stream, trio.open_nursery() as nursery:
            reader = SseReader()
            await anext(stream)
            nursery.start_soon(w.runtime.stop)
            frames = await reader.frames(stream)
        assert frames[-1].comment == "reconnect"
        assert all(frame.comment is None for frame in frames[:-1])
        run = await w.runtime.get_run(run_id, identity=Identity("ada"))
        assert run.status == "running"
        late = await whole(w, run_id)
        assert late[-1].comment == "reconnect"


async def test_refusals_come_before_the_stream(autojump_clock: MockClock) -> None:
    async with world(["ok"]) as w:
        run_id = await w.started()
        answer = await w.client.request("GET", stream_path(run_id, "?until=x"))
        assert (answer.status, detail(answer)["code"]) == (422, "invalid_request")


async def test_a_reader_that_leaves_ends_its_subscription_and_nothing_else(
    autojump_clock: MockClock,
) -> None:
    model = GatedModel()
    async with world(model) as w:
        run_id = await w.started()
        await model.asked.wait()
        async with following(w, run_id) as leaving, following(w, run_id) as staying:
            await anext(leaving)
            leaving.disconnect()
            await trio.testing.wait_all_tasks_blocked()
            model.gate.set()
            frames = await SseReader().frames(staying)
        assert frames[-1].event["type"] == "run.completed"
        assert seqs(frames) == [e["seq"] for e in await log(w, run_id)]


async def test_a_stuck_reader_delays_neither_the_run_nor_other_readers(
    autojump_clock: MockClock,
) -> None:
    script: list[Response] = [
        [TextDelta("a"), Delay(1), TextDelta("b"), Delay(1), ModelCompleted()]
    ]
    async with world(script) as w:
        start = trio.current_time()
        run_id = await w.started()
        async with following(w, run_id) as stuck:
            await anext(stuck)
            await w.ended(run_id)
            assert trio.current_time() - start == pytest.approx(2)
            assert seqs(await whole(w, run_id)) == [e["seq"] for e in await log(w, run_id)]
            assert trio.current_time() - start == pytest.approx(2)
            rest = await SseReader().frames(stuck)
        assert seqs(rest) == [e["seq"] for e in await log(w, run_id)]


async def test_events_that_are_stored_together_are_sent_together(autojump_clock: MockClock) -> None:
    script: list[Response] = [[TextDelta(str(n)) for n in range(50)] + [ModelCompleted()]]
    async with world(script) as w:
        run_id = await w.started()
        await w.ended(run_id)
        async with following(w, run_id) as stream:
            chunks = [chunk async for chunk in stream]
        assert len(chunks) == 2
        assert seqs(SseReader().feed(chunks[1])) == [e["seq"] for e in await log(w, run_id)]


class FailingStore(MemoryStore):
    """Loses its database when told to."""

    lost = False

    async def list_events(self, run_id: str, *, after: int, limit: int) -> list[Event]:
        if self.lost:
            raise OSError("canary")
        return await super().list_events(run_id, after=after, limit=limit)


async def test_a_stream_that_cannot_read_breaks_and_does_not_end_like_a_boundary(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    store, model = FailingStore(), GatedModel()
    readers = AsyncExitStack()
    async with world(model, runtime_options={"store": store}) as w:
        run_id = await w.started()
        await model.asked.wait()
        stream = await readers.enter_async_context(following(w, run_id, "?after_seq=99"))
        await anext(stream)
        store.lost = True
        model.gate.set()
        with caplog.at_level(logging.ERROR, logger="rungent"):
            assert [chunk async for chunk in stream] == []
        with pytest.RaisesGroup(StreamBroken) as broken:
            await readers.aclose()
        assert "canary" in caplog.text
        assert "canary" not in "".join(traceback.format_exception(broken.value))


@settings(max_examples=60, deadline=None)
@given(cuts=st.lists(st.integers(0, 3000), max_size=8), by_header=st.booleans())
def test_cut_anywhere_and_reconnected_the_stream_is_the_log(
    cuts: list[int], by_header: bool
) -> None:
    """The client keeps whole frames only, and comes back with the last number it has."""

    async def main() -> None:
        script: list[Response] = [
            [TextDelta("Grüße "), Delay(20), TextDelta("aus Rom"), ModelCompleted()]
        ]
        async with world(script) as w:
            run_id = await w.started()
            found: list[dict[str, Any]] = []
            for cut in [*cuts, None]:
                last = found[-1]["seq"] if found else 0
                query = "" if by_header else f"?after_seq={last}"
                headers = {"Last-Event-ID": str(last)} if by_header else {}
                async with w.client.stream(
                    "GET", stream_path(run_id, query), headers=headers
                ) as stream:
                    data = await _bytes(stream, cut)
                found += [f.event for f in SseReader().feed(data) if f.event]
            assert found == await log(w, run_id)
            assert found[-1]["type"] == "run.completed"

    trio.run(main, clock=MockClock(autojump_threshold=0))


async def _bytes(chunks: AsyncIterator[bytes], cut: int | None) -> bytes:
    data = b""
    while cut is None or len(data) < cut:
        try:
            data += await anext(chunks)
        except StopAsyncIteration:
            break
    return data[:cut]


@given(st.lists(st.integers(0, 200), max_size=20))
def test_the_test_reader_finds_the_same_frames_however_bytes_are_cut(cuts: list[int]) -> None:
    text = 'retry: 1000\n\nid: 1\ndata: {"type":"ü"}\n\n: keep-alive\n\nid: 2\ndata: {}\n\nid: 3'
    data = text.encode()
    edges = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    reader, frames = SseReader(), list[SseFrame]()
    for begin, end in pairwise(edges):
        frames += reader.feed(data[begin:end])
    assert frames == SseReader().feed(data)
    assert [frame.seq for frame in frames] == [None, 1, None, 2]
    assert frames[2].comment == "keep-alive"
