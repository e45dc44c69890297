"""Text that means harm, and a page that is watched for any that was done."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from e2e.chat_page import open_context
from playwright.sync_api import Browser, Dialog, Page

CORPUS: list[str] = json.loads(
    (Path(__file__).parents[2] / "web" / "test" / "xss_corpus.json").read_text()
)

WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(`${event.violatedDirective}: ${event.blockedURI || event.sample}`);
});
"""

FORBIDDEN = "script, iframe, object, embed, base, meta[http-equiv], form[action], img, video, audio"

# What of the page the text has become that it must not be: elements, handlers, links.
HARM = """(forbidden) => [
    ...[...document.querySelectorAll(`body :is(${forbidden})`)]
        .filter((element) => !element.matches("body > script[type=module]"))
        .map((element) => element.outerHTML.slice(0, 200)),
    ...[...document.querySelectorAll("body *")]
        .flatMap((element) => element.getAttributeNames().filter((name) => /^on/i.test(name))),
    ...[...document.querySelectorAll(".markdown a")]
        .map((link) => link.href)
        .filter((link) => !/^(https?:|mailto:)/.test(link)),
]"""


def in_batches(size: int) -> list[str]:
    """Return the whole corpus, in texts of so many pieces each."""
    starts = range(0, len(CORPUS), size)
    return ["\n\n".join(CORPUS[start : start + size]) for start in starts]


# What the tool that drives the browser says of its own doing.
WORKER_BLOCKED = "Service Worker registration blocked"


@contextmanager
def open_watched(browser: Browser, url: str, *, allowed: str) -> "Iterator[Watched]":
    """A page that is watched, of a browser that complains of nothing but what is allowed."""
    allowed = f"{allowed}|{WORKER_BLOCKED}"
    with open_context(browser, url, allowed=allowed, service_workers="block") as context:
        yield Watched(context.new_page(), url)


class Watched:
    """A page, with what it did that hostile text must not make it do.

    Owns: the lists of dialogs, of requests to elsewhere, and of errors that nobody caught.
    Used from: one test.
    """

    def __init__(self, page: Page, service_url: str) -> None:
        self.page = page
        self._harm: list[str] = []
        self._service_url = service_url
        page.add_init_script(WATCH)
        page.on("dialog", self._dismiss)
        page.on("request", lambda request: self._note(request.url))
        page.on("pageerror", lambda error: self._harm.append(str(error)))

    def expect_harmless(self) -> None:
        harm: Sequence[str] = self.page.evaluate(HARM, FORBIDDEN)
        violations: Sequence[str] = self.page.evaluate("window.violations")
        done = [*harm, *violations, *self._harm]
        assert not done, "\n".join(done)

    def _dismiss(self, dialog: Dialog) -> None:
        self._harm.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _note(self, url: str) -> None:
        if not re.match(rf"{re.escape(self._service_url)}/|blob:|data:image/svg", url):
            self._harm.append(f"request: {url}")
