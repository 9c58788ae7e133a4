"""The routes as a FastAPI router, under its short name; see `rungent.asgi.fastapi_router`."""

from rungent.asgi.fastapi_router import create_router

__all__ = ["create_router"]
