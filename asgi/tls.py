"""The certificate of a server, and whose clients it takes.

Source: docs/serving.md#tls.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field

__all__ = ["Tls"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """PEM files of a certificate chain and its key, which may be in one file.

    `password` opens an encrypted key. With `client_ca` clients must show a certificate of that
    authority.
    """

    certfile: str
    keyfile: str | None = None
    password: str | None = field(default=None, repr=False)
    client_ca: str | None = None

    def context(self) -> ssl.SSLContext:
        """What the server's connections are secured with: TLS 1.2 or newer, HTTP/1.1 only.

        Raises OSError (ssl.SSLError is one) when a file cannot be used.
        """
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # The server's HTTP/2 buffers without bound for a reader that does not read.
        context.set_alpn_protocols(["http/1.1"])
        # Without a password a terminal would be asked for one, which servers do not have.
        context.load_cert_chain(self.certfile, self.keyfile, password=self.password or "")
        if self.client_ca is not None:
            context.load_verify_locations(self.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
        return context
