"""The example host: the official client finds its sign-in, signs in and calls."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import mcp_types as types
import pytest
import trio
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from docs.examples.oauth_host.app import TRIPS, create_host
from tests.mcp.serving import address, free_socket, served

BACK = "http://127.0.0.1:1/back"


class Memory:
    """What the client remembers."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Browser:
    """A user who signs in wherever the client sends them."""

    def __init__(self, user: str, password: str) -> None:
        self._fields = {"user": user, "password": password}
        self.arrived = ""

    async def open(self, url: str) -> None:
        async with httpx2.AsyncClient() as http:
            page = await http.get(url, follow_redirects=True)
            pending = parse_qs(urlsplit(str(page.url)).query)["request"][0]
            done = await http.post(str(page.url), data={**self._fields, "request": pending})
        assert done.status_code == 303, done.text
        self.arrived = done.headers["location"]

    async def code(self) -> AuthorizationCodeResult:
        query = parse_qs(urlsplit(self.arrived).query)
        return AuthorizationCodeResult(code=query["code"][0], state=query["state"][0])


def signing_in(url: str, browser: Browser, memory: Memory) -> OAuthClientProvider:
    metadata = OAuthClientMetadata(client_name="Test client", redirect_uris=[AnyUrl(BACK)])
    return OAuthClientProvider(
        f"{url}/mcp",
        metadata,
        memory,
        redirect_handler=browser.open,
        callback_handler=browser.code,
    )


async def approve(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    await trio.lowlevel.checkpoint()
    assert isinstance(params, types.ElicitRequestFormParams)
    assert params.message == "Delete the trip to Oslo?"
    return types.ElicitResult(action="accept", content={"decision": "approve"})


async def test_a_client_signs_in_with_a_code_and_acts_for_its_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(TRIPS, "bob", ["Oslo"])
    listening = free_socket()
    url, memory = address(listening), Memory()
    with trio.fail_after(300):
        async with served(create_host(url), listening):
            auth = signing_in(url, Browser("bob", "builder"), memory)
            async with httpx2.AsyncClient(auth=auth) as http:
                transport = streamable_http_client(f"{url}/mcp", http_client=http)
                async with Client(transport, elicitation_callback=approve) as client:
                    before = await client.call_tool("list_trips", {})
                    await client.call_tool("delete_trip", {"city": "Oslo"})
    assert memory.tokens is not None
    assert "Oslo" in str(before.content)
    assert TRIPS["bob"] == []
    assert TRIPS["ada"] == ["Rome"]


async def test_without_a_token_a_client_learns_where_to_sign_in() -> None:
    listening = free_socket()
    url = address(listening)
    with trio.fail_after(300):
        async with served(create_host(url), listening), httpx2.AsyncClient() as http:
            refused = await http.post(f"{url}/mcp", json={})
            described = await http.get(f"{url}/.well-known/oauth-protected-resource/mcp")
            wrong = await http.post(
                f"{url}/mcp", json={}, headers={"Authorization": "Bearer nothing"}
            )
            skill = await http.get(f"{url}/skill")
    assert refused.status_code == wrong.status_code == 401
    assert str(described.url) in refused.headers["www-authenticate"]
    assert described.json()["resource"] == f"{url}/mcp"
    assert "### `list_trips`" in skill.text
