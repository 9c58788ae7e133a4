"""The host: its tools at `/mcp`, the OAuth endpoints beside them, and the way from one to the other.

Run it with `python -m docs.examples.oauth_host`.
"""

from __future__ import annotations

from mcp.server.auth.routes import create_auth_routes, create_protected_resource_routes
from mcp.server.auth.settings import ClientRegistrationOptions
from pydantic import AnyHttpUrl
from quart import Request
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from rungent import Agent, Identity, ToolContext, tool
from rungent.mcp import create_mcp_asgi

from .accounts import Accounts
from .pages import SignInPage

SCOPE = "trips"
TRIPS = {"ada": ["Rome"], "bob": ["Oslo"]}


@tool(effect="read", approval="never")
async def list_trips(ctx: ToolContext) -> list[str]:
    """List the cities of the user's trips."""
    return TRIPS[ctx.identity.subject_id]


@tool(effect="destructive", approval="always", confirmation="Delete the trip to {city}?")
async def delete_trip(ctx: ToolContext, city: str) -> dict[str, bool]:
    """Delete a trip of the user."""
    mine = TRIPS[ctx.identity.subject_id]
    if city not in mine:
        return {"ok": False}
    mine.remove(city)
    return {"ok": True}


agent = Agent(name="trips", instructions="You manage trips.", tools=[list_trips, delete_trip])


def create_host(url: str) -> Starlette:
    """The application that is reached at `url`, for example `https://trips.example`."""
    resource = f"{url}/mcp"
    accounts = Accounts(resource, f"{url}/sign-in")
    page = SignInPage(accounts)

    async def resolve(request: Request) -> Identity | None:
        """The user behind a bearer token that was made for this resource."""
        kind, _, value = request.headers.get("Authorization", "").partition(" ")
        token = await accounts.load_access_token(value) if kind.lower() == "bearer" else None
        if token is None or token.resource != resource or token.subject is None:
            return None
        return Identity(token.subject)

    endpoint = create_mcp_asgi(
        agent,
        identity_resolver=resolve,
        approval="elicit",
        resource_metadata_url=f"{url}/.well-known/oauth-protected-resource/mcp",
    )
    issuer = AnyHttpUrl(url)
    registration = ClientRegistrationOptions(
        enabled=True, valid_scopes=[SCOPE], default_scopes=[SCOPE]
    )

    async def skill(_: object) -> PlainTextResponse:
        return PlainTextResponse(agent.export_skill(), media_type="text/markdown")

    return Starlette(
        routes=[
            # A route and not a mount: a mount answers `/mcp` with a redirect.
            Route("/mcp", endpoint=endpoint),
            Route("/skill", skill),
            Route("/sign-in", page.show, methods=["GET"]),
            Route("/sign-in", page.take, methods=["POST"]),
            *create_auth_routes(accounts, issuer, client_registration_options=registration),
            *create_protected_resource_routes(AnyHttpUrl(resource), [issuer], [SCOPE]),
        ]
    )
