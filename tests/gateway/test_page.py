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


async def get(static_dir: Path, path: str) -> httpx.Response:
    app = Starlette()
    app.router.default = Page(static_dir)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://page") as http:
        return await http.get(path)


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


@pytest.mark.parametrize("path", ["/missing.js", "/assets/missing.js", "/../secret", "/assets"])
async def test_what_is_not_there_is_not_found(built: Path, path: str) -> None:
    reply = await get(built, path)

    assert reply.status_code == 404


async def test_page_that_was_not_built_says_how(tmp_path: Path) -> None:
    reply = await get(tmp_path / "nothing", "/")
    other = await get(tmp_path / "nothing", "/favicon.svg")

    assert "make run" in reply.text
    assert (reply.status_code, other.status_code) == (404, 404)
