"""A model over the offline planner, for tests that need whole conversations."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import trio

from rungent.demo.offline_model import serve_offline_model
from rungent.llm import Model, OpenAICompatibleModel


@asynccontextmanager
async def offline_model() -> AsyncIterator[Model]:
    """The offline model, served on the loopback for the length of the block."""
    async with trio.open_nursery() as nursery:
        offline = await nursery.start(serve_offline_model)
        async with httpx.AsyncClient(trust_env=False) as client:
            yield OpenAICompatibleModel(
                api_key=offline.api_key,
                base_url=offline.base_url,
                model=offline.model,
                client=client,
            )
        nursery.cancel_scope.cancel()
