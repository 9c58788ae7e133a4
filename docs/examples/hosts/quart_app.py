"""Nothing but the assistant: `rungent serve quart_app:app` or `hypercorn -k trio quart_app:app`."""

from __future__ import annotations

from assistant import identity_of, new_runtime
from quart import Request

from rungent import Identity
from rungent.asgi import create_app


def identify(request: Request) -> Identity | None:
    """Who sends a request."""
    return identity_of(request.headers.get("Authorization", ""))


app = create_app(new_runtime(), identity_resolver=identify, url_prefix="/api/assistant")
