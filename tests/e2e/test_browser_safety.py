"""Hostile text on every way into the page: nothing of it runs, loads or becomes an element."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Dialog, Page, expect

pytestmark = pytest.mark.needs_program("chromium")

CORPUS: list[str] = json.loads(
    (Path(__file__).parents[2] / "web" / "test" / "xss_corpus.json").read_text()
)
MARK = "sentinel-of-the-end"

WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(`${event.violatedDirective}: ${event.blockedURI || event.sample}`);
});
"""

HANDLERS = """
() => [...document.querySelectorAll("main *, nav *")]
  .flatMap((element) => [...element.attributes].map(({ name }) => name))
  .filter((name) => /^on/.test(name))
"""

FORBIDDEN = "script, iframe, object, embed, base, meta[http-equiv], form[action], img, video, audio"


class Watched:
    """A page, with what it did that hostile text must not make it do.

    Owns: the lists of dialogs and of requests to elsewhere.
    Used from: one test.
    """

    def __init__(self, page: Page, service_url: str) -> None:
        self.page = page
        self.dialogs: list[str] = []
        self.elsewhere: list[str] = []
        page.add_init_script(WATCH)
        page.on("dialog", self._dismiss)
        page.on("request", lambda request: self._note(request.url, service_url))

    def expect_harmless(self) -> None:
        page = self.page
        assert page.evaluate("window.violations") == []
        assert self.dialogs == []
        assert self.elsewhere == []
        found = page.locator(f"main :is({FORBIDDEN}), nav :is({FORBIDDEN}), aside :is({FORBIDDEN})")
        assert found.count() == 0, found.first.evaluate("element => element.outerHTML")
        assert page.evaluate(HANDLERS) == []
        links = page.evaluate(
            "() => [...document.querySelectorAll('.markdown a')].map((link) => link.href)"
        )
        assert [link for link in links if not re.match(r"https?:|mailto:", link)] == []

    def _dismiss(self, dialog: Dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def _note(self, url: str, service_url: str) -> None:
        if not url.startswith((service_url, "blob:", "data:image/svg")):
            self.elsewhere.append(url)


@pytest.fixture
def watched(browser: Browser, service_url: str) -> Iterator[Watched]:
    context = browser.new_context(base_url=service_url, service_workers="block")
    watched = Watched(context.new_page(), service_url)
    watched.page.goto("/")
    yield watched
    context.close()


def archive_of(texts: list[str]) -> dict[str, Any]:
    """Return a document of one conversation for each text, with the text in every place of it."""
    return {
        "object": "chatserve.conversations",
        "format": 1,
        "conversations": [
            {
                "id": f"c{number}",
                "title": text[:200] or "empty",
                "created_at": 0,
                "updated_at": 0,
                "items": [
                    {"id": "s", "role": "system", "text": text, "created_at": 0},
                    {"id": "u", "role": "user", "text": text, "created_at": 0, "parent_id": "s"},
                    {
                        "id": "a",
                        "role": "assistant",
                        "text": f"{text}\n\n{MARK}",
                        "created_at": 0,
                        "parent_id": "u",
                    },
                ],
            }
            for number, text in enumerate(texts)
        ],
    }


def imported(service_url: str, texts: list[str]) -> list[str]:
    reply = httpx.post(
        f"{service_url}/v1/chatserve/conversations/import", json=archive_of(texts), timeout=60
    )
    assert reply.status_code == 200, reply.text
    ids: list[str] = reply.json()["conversation_ids"]
    return ids


def test_corpus_in_titles_messages_answers_and_system_prompts(
    watched: Watched, service_url: str
) -> None:
    page = watched.page
    some_each = ["\n\n".join(CORPUS[first : first + 6]) for first in range(0, len(CORPUS), 6)]
    for session_id in imported(service_url, some_each):
        page.goto(f"/#/c/{session_id}")
        page.reload()
        expect(page.get_by_text(MARK)).to_be_visible()
        watched.expect_harmless()


def test_corpus_all_together_rendered_at_once_and_found_by_search(
    watched: Watched, service_url: str
) -> None:
    (session_id,) = imported(service_url, ["\n\n".join(CORPUS)])
    page = watched.page
    page.goto(f"/#/c/{session_id}")
    expect(page.get_by_role("article", name="Answer")).to_be_visible()
    page.wait_for_timeout(1500)  # mathematics and colours arrive late

    page.get_by_role("searchbox", name="Search").fill("onerror")
    expect(page.get_by_role("region", name="Found").get_by_role("link").first).to_be_visible()

    watched.expect_harmless()


def test_corpus_said_by_the_reader_and_echoed_as_an_error(watched: Watched) -> None:
    page = watched.page
    for text in CORPUS[:12]:
        page.goto("/#/")
        page.reload()
        page.get_by_role("textbox", name="Message").fill(text)
        page.get_by_role("button", name="Send").click()
        expect(page.get_by_role("article", name="You")).to_be_visible()
        page.keyboard.press("Escape")
        watched.expect_harmless()


def test_hostile_names_in_an_import_file_and_its_errors(watched: Watched) -> None:
    page = watched.page
    field = page.get_by_role("navigation", name="Conversations").get_by_label("Import", exact=True)
    for text in CORPUS[:12]:
        document = {"object": text, "format": text, "conversations": [{"id": text, text: text}]}
        field.set_input_files(
            {
                "name": "<img src=x onerror=alert(1)>.json",
                "mimeType": "application/json",
                "buffer": json.dumps(document).encode(),
            }
        )
        expect(page.get_by_text("Nothing was imported.").first).to_be_visible()
        watched.expect_harmless()


def test_hostile_addresses_of_the_page(watched: Watched) -> None:
    page = watched.page
    for text in CORPUS[:24]:
        page.evaluate("hash => { location.hash = hash }", f"#/c/{text}")
        page.evaluate("hash => { location.hash = hash }", f"#/c/{text}/{text}")
        page.evaluate("hash => { location.hash = hash }", f"#/cache?tenant={text}")
        watched.expect_harmless()


def test_policy_would_be_heard_if_something_broke_it(watched: Watched) -> None:
    page = watched.page
    page.evaluate(
        """() => {
          const script = document.createElement("img");
          script.src = "https://elsewhere.example/x.png";
          document.querySelector("main").append(script);
        }"""
    )
    page.wait_for_function("window.violations.length > 0")
    with pytest.raises(AssertionError):
        watched.expect_harmless()
