"""Contract of buttons, late questions and ends to be told. Source: docs/testing.md#stores."""

# ruff: noqa: D102 - the name of a test is its sentence
from __future__ import annotations

from dataclasses import replace

import trio

from rungent.identity import Identity
from rungent.records import ActionToken, Interaction, Run
from rungent.store.port import Store
from rungent.testing.store_samples import (
    AGENT,
    OWNER,
    at,
    create_running,
    interaction_of,
    step,
)

__all__ = ["QuestionContract"]


class QuestionContract:
    """Questions are found by their buttons and by their time, and each end is told once."""

    async def test_a_posted_question_comes_back_whole_and_by_its_buttons(
        self, store: Store
    ) -> None:
        run = await create_running(store)
        question = posted(run, answered_by=(Identity("bob", "acme"), Identity("cleo")))
        token = ActionToken(
            token_hash="a" * 64,
            run_id=run.id,
            interaction_id=question.id,
            params={"approved": True, "note": "ä\u2028"},
        )
        await commit(store, run, question, token)
        assert await store.get_interaction(question.id) == question
        assert await store.find_token("a" * 64) == token
        assert await store.find_token("b" * 64) is None

    async def test_what_is_due_is_what_is_late_or_to_be_told(self, store: Store) -> None:
        early = await stored(store, expires_at=at(60))
        late = await stored(store, expires_at=at(30))
        told = await stored(store, status="resolved", outcome="cancelled", closing="cancelled")
        await stored(store, status="resolved", outcome="expired", expires_at=at(30))
        found = await store.list_due([AGENT], at(30), limit=9)
        assert {one.id for one in found} == {late.id, told.id}
        found = await store.list_due([AGENT, "x"], at(60), limit=9)
        assert {one.id for one in found} == {early.id, late.id, told.id}
        assert await store.list_due(["x"], at(60), limit=9) == []
        assert len(await store.list_due([AGENT], at(60), limit=2)) == 2

    async def test_one_of_many_tells_an_end(self, store: Store) -> None:
        question = await stored(store, status="resolved", outcome="expired", closing="expired")
        won: list[bool] = []

        async def take() -> None:
            won.append(await store.take_closing(question.id))

        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(take)
        assert sorted(won) == [False] * 7 + [True]
        assert (await store.get_interaction(question.id)).closing is None
        assert not await store.take_closing("int_none")


def posted(run: Run, **changes: object) -> Interaction:
    """A question that a tool wrote."""
    values: dict[str, object] = {
        "kind": "data",
        "state": {"message_id": "m1"},
        "responders": (Identity("bob", "acme"),),
        "max_answers": 3,
        "expires_at": at(60),
    }
    return interaction_of(run, **values | changes)


async def commit(store: Store, run: Run, question: Interaction, *tokens: ActionToken) -> None:
    """Store a question of a run."""
    made = replace(step(run), interactions=(question,), tokens=tokens)
    await store.commit(made, owner=OWNER, token=1)


async def stored(store: Store, **changes: object) -> Interaction:
    """A question in a run of its own."""
    run = await create_running(store)
    question = posted(run, **changes)
    await commit(store, run, question)
    return question
