"""The files of the page and how long browsers may keep them."""

from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette

from chatserve.gateway.page import Page


@pytest.fixture
def built(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html>")
    (tmp_path / "favicon.svg").write_text("<svg/>")
    (tmp_path / "assets" / "index-abc123.js").write_text("run()")
    return tmp_path


def client(static_dir: Path) -> httpx.AsyncClient:
    app = Starlette()
    app.router.default = Page(static_dir)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://page")


async def get(static_dir: Path, path: str) -> httpx.Response:
    async with client(static_dir) as http:
        return await http.get(path)


async def raw(
    static_dir: Path, path: str, accepted: str, headers: dict[str, str] | None = None
) -> tuple[int, httpx.Headers, bytes]:
    """Return status, headers and the body as it was sent, not decoded."""
    async with (
        client(static_dir) as http,
        http.stream("GET", path, headers={"accept-encoding": accepted, **(headers or {})}) as reply,
    ):
        body = b"".join([piece async for piece in reply.aiter_raw()])
        return reply.status_code, reply.headers, body


async def test_page_is_asked_for_anew_each_time(built: Path) -> None:
    reply = await get(built, "/")

    assert (reply.status_code, reply.text) == (200, "<!doctype html>")
    assert reply.headers["cache-control"] == "no-cache"


async def test_assets_are_kept_for_ever(built: Path) -> None:
    reply = await get(built, "/assets/index-abc123.js")

    assert reply.text == "run()"
    assert "immutable" in reply.headers["cache-control"]


async def test_other_files_are_asked_for_anew(built: Path) -> None:
    reply = await get(built, "/favicon.svg")

    assert (reply.status_code, reply.headers["cache-control"]) == (200, "no-cache")


@pytest.mark.parametrize(
    "path", ["/missing.js", "/assets/missing.js", "/../secret", "/assets", "/" + "x" * 400]
)
async def test_what_is_not_there_is_not_found(built: Path, path: str) -> None:
    reply = await get(built, path)

    assert reply.status_code == 404


async def test_page_that_was_not_built_says_how(tmp_path: Path) -> None:
    reply = await get(tmp_path / "nothing", "/")
    other = await get(tmp_path / "nothing", "/favicon.svg")

    assert "make run" in reply.text
    assert (reply.status_code, other.status_code) == (404, 404)


def add_copies(file: Path, content: bytes = b"copy") -> None:
    for suffix in (".br", ".gz"):
        file.with_name(file.name + suffix).write_bytes(content + suffix.encode())


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("gzip, deflate, br, zstd", "br"),
        ("br;q=0.5, gzip;q=1", "br"),
        ("gzip, br;q=0", "gzip"),
        ("GZIP", "gzip"),
        ("gzip;q=0.0, br; q=0", None),
        ("identity", None),
        ("", None),
    ],
)
async def test_client_gets_the_copy_that_it_takes(
    built: Path, accepted: str, encoding: str | None
) -> None:
    script = built / "assets" / "index-abc123.js"
    add_copies(script)
    bodies = {"br": b"copy.br", "gzip": b"copy.gz", None: b"run()"}

    status, headers, body = await raw(built, "/assets/index-abc123.js", accepted)

    assert (status, body) == (200, bodies[encoding])
    assert headers.get("content-encoding") == encoding
    assert headers["content-length"] == str(len(body))
    assert "javascript" in headers["content-type"]
    assert headers["vary"] == "accept-encoding"
    assert "immutable" in headers["cache-control"]


async def test_page_itself_is_served_as_a_copy(built: Path) -> None:
    add_copies(built / "index.html")

    status, headers, body = await raw(built, "/", "br")

    assert (status, body, headers["cache-control"]) == (200, b"copy.br", "no-cache")
    assert headers["content-type"] == "text/html; charset=utf-8"


async def test_each_copy_has_a_tag_of_its_own_and_is_not_sent_again(built: Path) -> None:
    add_copies(built / "index.html")
    tags = [(await raw(built, "/", accepted))[1]["etag"] for accepted in ("br", "gzip", "")]

    status, headers, body = await raw(built, "/", "gzip", {"if-none-match": tags[1]})

    assert len(set(tags)) == 3
    assert (status, body, headers["etag"]) == (304, b"", tags[1])
    assert headers["vary"] == "accept-encoding"


@pytest.mark.parametrize("path", ["/index.html.br", "/assets/index-abc123.js.gz"])
async def test_copy_cannot_be_asked_for_by_name(built: Path, path: str) -> None:
    add_copies(built / "index.html")
    add_copies(built / "assets" / "index-abc123.js")

    assert (await raw(built, path, ""))[0] == 404


async def test_worker_and_manifest_are_asked_for_anew_under_their_types(built: Path) -> None:
    (built / "sw.js").write_text("self")
    (built / "app.webmanifest").write_text("{}")

    worker, manifest = await get(built, "/sw.js"), await get(built, "/app.webmanifest")

    assert (worker.headers["cache-control"], manifest.headers["cache-control"]) == ("no-cache",) * 2
    assert "javascript" in worker.headers["content-type"]
    assert manifest.headers["content-type"] == "application/manifest+json"
