"""The options of `rungent demo`, and what they and the environment decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import platformdirs

__all__ = ["DemoOptions", "Provider", "UsageError", "choose_provider", "database_path"]

MEMORY = ":memory:"
_DEFAULT_URL = "https://api.openai.com/v1"


class UsageError(Exception):
    """Options that do not go together. The message is for the person at the terminal."""


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """What a person may choose; None stands for the default or the environment."""

    db: str | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    model_url: str | None = None
    model: str | None = None
    api_key: str | None = field(default=None, repr=False)
    once: str | None = None


@dataclass(frozen=True, slots=True)
class Provider:
    """A real model behind an OpenAI-compatible endpoint."""

    base_url: str
    model: str
    api_key: str | None = field(repr=False)

    @property
    def host(self) -> str:
        """The host and port of the address: what may be shown, whatever else it holds."""
        return httpx.URL(self.base_url).netloc.decode()


def choose_provider(options: DemoOptions, environ: Mapping[str, str]) -> Provider | None:
    """The provider that was asked for, or None for the offline model.

    A model name decides: from `--model`, or from OPENAI_MODEL. A key or an address that merely
    lies in the environment sends nobody's messages anywhere.
    Raises UsageError when options name an address or a key but no model is known, for an
    address that is none, and for a key that no header can hold.
    """
    model = (options.model or environ.get("OPENAI_MODEL") or "").strip()
    if not model:
        if options.model_url or options.api_key:
            raise UsageError("Say which model to use: --model NAME, or set OPENAI_MODEL.")
        return None
    key = options.api_key or environ.get("OPENAI_API_KEY") or None
    if key is not None and not (key.isascii() and key.isprintable() and key == key.strip()):
        raise UsageError("The API key must be printable ASCII without blanks around it.")
    return Provider(
        base_url=_checked(options.model_url or environ.get("OPENAI_BASE_URL") or _DEFAULT_URL),
        model=model,
        api_key=key,
    )


def _checked(address: str) -> str:
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL:
        url = httpx.URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise UsageError("The address of the model must look like https://host/v1.")
    return address


def database_path(db: str | None) -> Path | None:
    """The database file, by default in the user's data folder; None for `:memory:`."""
    if db == MEMORY:
        return None
    if db:
        return Path(db).expanduser()
    return Path(platformdirs.user_data_dir("rungent", appauthor=False)) / "demo.sqlite3"
