"""The page: the built files of `static/`, served with a strict policy and with cache headers.

`page/` holds the sources. Whoever installs the package needs no Node: the built files are in it.
"""

from __future__ import annotations

from pathlib import Path

from quart import Blueprint, Response, abort

__all__ = ["page_blueprint"]

# Everything comes from this server, and nothing that runs or paints stands in the document.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types dompurify"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
# The name of an asset holds the digest of its content; the document names the assets.
_FOR_GOOD = "public, max-age=31536000, immutable"
_ASK_AGAIN = "no-cache"


def page_blueprint() -> Blueprint:
    """Routes for the document at `/` and its files below `/assets/`. Reads the files once."""
    folder = Path(__file__).with_name("static")
    built = {path.name: path.read_bytes() for path in folder.iterdir()}
    page = Blueprint("page", __name__)

    async def document() -> Response:  # noqa: ASYNC124 - a plain function would get a thread
        return _file("index.html", built["index.html"], _ASK_AGAIN)

    async def asset(name: str) -> Response:  # noqa: ASYNC124
        if name not in built or name == "index.html":
            abort(404)
        return _file(name, built[name], _FOR_GOOD if "-" in name else _ASK_AGAIN)

    page.add_url_rule("/", view_func=document)
    page.add_url_rule("/assets/<name>", view_func=asset)
    return page


def _file(name: str, content: bytes, caching: str) -> Response:
    return Response(
        content,
        content_type=_TYPES[Path(name).suffix],
        headers={**_HEADERS, "Cache-Control": caching},
    )
