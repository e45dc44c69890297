"""A store behind a password and TLS, as one on another machine is."""

import asyncio
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from store.store_helpers import enqueue

from chatserve.errors import StoreError
from chatserve.store.connection import open_store

SERVER, OPENSSL = shutil.which("redis-server"), shutil.which("openssl")
PASSWORD = "p%40ss"
START_TIMEOUT_S = 20.0

pytestmark = pytest.mark.skipif(
    SERVER is None or OPENSSL is None, reason="no redis-server with TLS, or no openssl, on PATH"
)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that signs itself; its key lies next to it."""
    folder = tmp_path_factory.mktemp("tls")
    path = folder / "cert.pem"
    subprocess.run(
        [
            *(str(OPENSSL), "req", "-x509", "-newkey", "ec", "-pkeyopt"),
            *("ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(folder / "key.pem"), "-out", str(path)),
        ],
        check=True,
        capture_output=True,
    )
    return path


@pytest_asyncio.fixture
async def secured_url(certificate: Path, tmp_path: Path) -> AsyncIterator[str]:
    """The address of a server with password and TLS, without the certificate to trust."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        str(SERVER),
        *("--port", "0", "--tls-port", str(port), "--bind", "127.0.0.1", "--dir", str(tmp_path)),
        *("--tls-cert-file", str(certificate), "--tls-ca-cert-file", str(certificate)),
        *("--tls-key-file", str(certificate.with_name("key.pem")), "--tls-auth-clients", "no"),
        *("--requirepass", "p@ss", "--save", "", "--loglevel", "warning"),
        stdout=asyncio.subprocess.DEVNULL,
    )
    await _until_it_listens(port)
    yield f"rediss://:{PASSWORD}@127.0.0.1:{port}/0"
    process.kill()
    await process.wait()


async def test_store_works_over_tls_with_a_password(secured_url: str, certificate: Path) -> None:
    store = await open_store(f"{secured_url}?ssl_ca_certs={certificate}")

    await enqueue(store, "a")

    assert await store.queue.depth("tiny") == 1
    assert "ss@" not in repr(store)
    await store.aclose()


async def test_certificate_that_nobody_vouches_for_is_refused(secured_url: str) -> None:
    with pytest.raises(StoreError):
        await open_store(secured_url)


async def test_wrong_password_is_refused_without_repeating_it(
    secured_url: str, certificate: Path
) -> None:
    url = secured_url.replace(PASSWORD, "wrong-secret")

    with pytest.raises(StoreError) as failure:
        await open_store(f"{url}?ssl_ca_certs={certificate}")

    assert "wrong-secret" not in str(failure.value)


async def _until_it_listens(port: int) -> None:
    async with asyncio.timeout(START_TIMEOUT_S):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)
            else:
                writer.close()
                return
