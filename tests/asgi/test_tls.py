"""HTTPS with a certificate made for the test, judged by an ordinary client."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import trio
import trustme
from cryptography.hazmat.primitives import serialization

from rungent.asgi import Tls, serve
from rungent.testing import ScriptedModel
from rungent.testing.sse import SseReader
from tests.asgi.apps import ADA, app_of, runtime_with
from tests.asgi.test_serve import serving

PASSWORD = "canary-password"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def files(authority: trustme.CA, tmp_path: Path) -> Tls:
    issued = authority.issue_cert("127.0.0.1")
    for number, blob in enumerate(issued.cert_chain_pems):
        blob.write_to_path(str(tmp_path / "cert.pem"), append=number > 0)
    issued.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    return Tls(certfile=str(tmp_path / "cert.pem"), keyfile=str(tmp_path / "key.pem"))


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)  # pyright: ignore[reportUnknownMemberType]
    return context


@asynccontextmanager
async def client_of(url: str, trust: ssl.SSLContext) -> AsyncGenerator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        base_url=url, verify=trust, trust_env=False, headers=ADA, timeout=120
    ) as client:
        yield client


async def test_a_run_is_followed_over_https(authority: trustme.CA, files: Tls) -> None:
    runtime = runtime_with(ScriptedModel(["Rome."]))
    async with serving(runtime, tls=files) as url:
        assert url.startswith("https://127.0.0.1:")
        async with client_of(url, trusting(authority)) as client:
            session = (await client.post("/sessions", json={})).json()
            made = await client.post(f"/sessions/{session['id']}/runs", json={"input": "Hi"})
            path = f"/runs/{made.json()['run_id']}/events/stream"
            frames = SseReader().feed((await client.get(path)).content)
            assert frames[-1].event["type"] == "run.completed"


async def test_clients_that_do_not_know_the_authority_refuse_the_server(files: Tls) -> None:
    async with serving(runtime_with(ScriptedModel([])), tls=files) as url:
        stream = await secured(url, ssl.create_default_context())
        with pytest.raises(trio.BrokenResourceError) as refused:
            await stream.do_handshake()
        assert isinstance(refused.value.__cause__, ssl.SSLCertVerificationError)
        await trio.aclose_forcefully(stream)


async def secured(url: str, trust: ssl.SSLContext) -> trio.SSLStream[trio.SocketStream]:
    port = int(url.rpartition(":")[2])
    return await trio.open_ssl_over_tcp_stream(
        "127.0.0.1", port, ssl_context=trust, https_compatible=True
    )


@pytest.mark.parametrize("offered", [["h2", "http/1.1"], ["http/1.1"], ["h2"]])
async def test_nothing_but_http_1_1_is_agreed_on(
    authority: trustme.CA, files: Tls, offered: list[str]
) -> None:
    trust = trusting(authority)
    trust.set_alpn_protocols(offered)
    async with (
        serving(runtime_with(ScriptedModel([])), tls=files) as url,
        await secured(url, trust) as stream,
    ):
        await stream.do_handshake()
        agreed = stream.selected_alpn_protocol()
        assert agreed == ("http/1.1" if "http/1.1" in offered else None)


async def test_clients_must_show_a_certificate_when_an_authority_is_given(
    authority: trustme.CA, files: Tls, tmp_path: Path
) -> None:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    strict = Tls(certfile=files.certfile, keyfile=files.keyfile, client_ca=str(tmp_path / "ca.pem"))
    async with serving(runtime_with(ScriptedModel([])), tls=strict) as url:
        async with client_of(url, trusting(authority)) as stranger:
            with pytest.raises(httpx.TransportError):
                await stranger.get("/sessions")
        known = trusting(authority)
        card = authority.issue_cert("client@example.org")
        card.configure_cert(known)  # pyright: ignore[reportUnknownMemberType]
        async with client_of(url, known) as client:
            assert (await client.get("/sessions")).status_code == 200


async def test_an_encrypted_key_needs_its_password(
    authority: trustme.CA, files: Tls, tmp_path: Path
) -> None:
    assert files.keyfile is not None
    key_file, sealed = trio.Path(files.keyfile), tmp_path / "sealed.pem"
    key = serialization.load_pem_private_key(await key_file.read_bytes(), None)
    await trio.Path(sealed).write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(PASSWORD.encode()),
        )
    )
    runtime = runtime_with(ScriptedModel([]))
    for wrong in (None, "wrong"):
        with pytest.raises(ssl.SSLError):
            Tls(certfile=files.certfile, keyfile=str(sealed), password=wrong).context()
    right = Tls(certfile=files.certfile, keyfile=str(sealed), password=PASSWORD)
    assert PASSWORD not in repr(right)
    async with (
        serving(runtime, tls=right) as url,
        client_of(url, trusting(authority)) as client,
    ):
        assert (await client.get("/sessions")).status_code == 200


async def test_a_file_that_cannot_be_used_is_an_error_before_anything_starts(
    files: Tls, tmp_path: Path
) -> None:
    (tmp_path / "empty.pem").write_text("")
    for broken in ("missing.pem", "empty.pem"):
        runtime = runtime_with(ScriptedModel([]))
        tls = Tls(certfile=str(tmp_path / broken), keyfile=files.keyfile)
        with pytest.raises(OSError):  # noqa: PT011 - the system's words
            await serve(app_of(runtime), runtime=runtime, port=0, tls=tls, shutdown=trio.Event())
        assert not runtime.serving
