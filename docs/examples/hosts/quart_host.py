"""A Quart-Trio application of your own with the blueprint: `hypercorn -k trio quart_host:app`."""

from __future__ import annotations

from assistant import identity_of, new_runtime
from quart import Request
from quart_trio import QuartTrio

from rungent import Identity
from rungent.asgi import create_blueprint

app = QuartTrio(__name__)
runtime = new_runtime()


def identify(request: Request) -> Identity | None:
    """Who sends a request."""
    return identity_of(request.headers.get("Authorization", ""))


app.register_blueprint(
    create_blueprint(runtime, identity_resolver=identify), url_prefix="/api/assistant"
)


@app.get("/health")
async def health() -> dict[str, bool]:
    """A route of the host."""
    return {"serving": runtime.serving}


@app.before_serving
async def begin() -> None:
    """Serve the runtime as long as the application is served."""
    await app.nursery.start(runtime.serve)


@app.after_serving
async def end() -> None:
    """Stop it in order."""
    await runtime.stop()
