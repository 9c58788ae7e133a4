"""The authorization server's memory: clients, sign-ins that are under way, codes and tokens.

The official SDK serves the OAuth endpoints and checks PKCE; this says who is who. A product keeps
all of it in its database.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl
from typing_extensions import override

CODE_SECONDS = 60
TOKEN_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class SignIn:
    """A client waits for its user to say yes."""

    client: OAuthClientInformationFull
    params: AuthorizationParams


class Accounts(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Everything that was granted, for one protected resource."""

    def __init__(self, resource: str, sign_in_url: str) -> None:
        self.resource = resource
        self._sign_in_url = sign_in_url
        self._clients: dict[str, OAuthClientInformationFull] = {}
        self._sign_ins: dict[str, SignIn] = {}
        self._codes: dict[str, AuthorizationCode] = {}
        self._access: dict[str, AccessToken] = {}
        self._refresh: dict[str, RefreshToken] = {}

    @override
    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self._clients.get(client_id)

    @override
    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        assert client_info.client_id is not None
        self._clients[client_info.client_id] = client_info

    @override
    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        """Send the browser to our sign-in page. A token is for this resource and no other."""
        if params.resource != self.resource:
            raise AuthorizeError("invalid_target", "unknown resource")
        pending = secrets.token_urlsafe(32)
        self._sign_ins[pending] = SignIn(client, params)
        return f"{self._sign_in_url}?request={pending}"

    def pending(self, request: str) -> SignIn | None:
        """Who waits under this name."""
        return self._sign_ins.get(request)

    def grant(self, request: str, user: str) -> str:
        """The user said yes: where the browser goes with its code."""
        waiting = self._sign_ins.pop(request)
        params = waiting.params
        assert waiting.client.client_id is not None
        code = AuthorizationCode(
            code=secrets.token_urlsafe(32),
            scopes=params.scopes or [],
            expires_at=time.time() + CODE_SECONDS,
            client_id=waiting.client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=AnyUrl(str(params.redirect_uri)),
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
            subject=user,
        )
        self._codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    @override
    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self._codes.get(authorization_code)

    @override
    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        # Once: whoever brings the code again gets nothing.
        code = self._codes.pop(authorization_code.code)
        return self._issued(code.client_id, code.scopes, code.resource, code.subject)

    @override
    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        return self._refresh.get(refresh_token)

    @override
    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        old = self._refresh.pop(refresh_token.token)
        return self._issued(old.client_id, scopes, old.resource, old.subject)

    @override
    async def load_access_token(self, token: str) -> AccessToken | None:
        found = self._access.get(token)
        if found is None or (found.expires_at or 0) <= time.time():
            return None
        return found

    @override
    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self._access.pop(token.token, None)
        self._refresh.pop(token.token, None)

    def _issued(
        self, client_id: str, scopes: list[str], resource: str | None, subject: str | None
    ) -> OAuthToken:
        access, refresh = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self._access[access] = AccessToken(
            token=access,
            client_id=client_id,
            scopes=scopes,
            expires_at=int(time.time()) + TOKEN_SECONDS,
            resource=resource,
            subject=subject,
        )
        self._refresh[refresh] = RefreshToken(
            token=refresh, client_id=client_id, scopes=scopes, resource=resource, subject=subject
        )
        return OAuthToken(
            access_token=access,
            expires_in=TOKEN_SECONDS,
            scope=" ".join(scopes),
            refresh_token=refresh,
        )
