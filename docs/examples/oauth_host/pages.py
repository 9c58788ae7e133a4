"""The sign-in page: who are you, and may this program act for you?"""

from __future__ import annotations

import hmac
from html import escape

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from .accounts import Accounts

# A product has users and hashed passwords of its own.
PASSWORDS = {"ada": "engine", "bob": "builder"}

PAGE = """<!doctype html><title>Sign in</title>
<form method="post"><h1>{client} wants to use your trips</h1>
<input type="hidden" name="request" value="{request}">
<label>User <input name="user"></label>
<label>Password <input name="password" type="password"></label>
<button>Sign in and allow</button><p>{remark}</p></form>"""

# The page must not be framed by another site that wants a click on it.
SAFE = {"Content-Security-Policy": "frame-ancestors 'none'", "Cache-Control": "no-store"}


class SignInPage:
    """Shows the form and takes it."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts

    async def show(self, request: Request) -> Response:
        """The form for a client that waits."""
        return self._page(request.query_params.get("request", ""))

    async def take(self, request: Request) -> Response:
        """Back to the client with a code, or the form again."""
        form = await request.form()
        pending, user, password = (
            str(form.get(name, "")) for name in ("request", "user", "password")
        )
        wanted = PASSWORDS.get(user, "")
        if not wanted or not hmac.compare_digest(wanted.encode(), password.encode()):
            return self._page(pending, "Wrong user or password.")
        if self._accounts.pending(pending) is None:
            return self._page(pending)
        return RedirectResponse(self._accounts.grant(pending, user), status_code=303)

    def _page(self, pending: str, remark: str = "") -> Response:
        waiting = self._accounts.pending(pending)
        if waiting is None:
            return HTMLResponse("Nobody waits for this sign-in.", 400, SAFE)
        name = waiting.client.client_name or "A program"
        page = PAGE.format(client=escape(name), request=escape(pending), remark=remark)
        return HTMLResponse(page, 401 if remark else 200, SAFE)
