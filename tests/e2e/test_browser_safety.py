"""Hostile text that people write, import or follow: nothing of it runs, loads or is an element."""

import json
import re
from collections.abc import Iterator

import pytest
from e2e.archive import conversation, import_conversations, message
from e2e.chat_page import (
    LONG,
    begin_chat,
    composer,
    expect_phase,
    last_answer,
    open_page,
    said,
    send,
    stop,
)
from e2e.hostile_text import CORPUS, Watched, in_batches, open_watched
from playwright.sync_api import Browser, Page, expect

pytestmark = pytest.mark.needs_program("chromium")

# What the browser says of what the service refuses, and of the one image that is to be refused.
EXPECTED = r"status of 4\d\d|elsewhere\.example"

ROWS_AT_ONCE = 50  # of the list of conversations

# Go to each address in turn, and return when nothing is on its way any more.
FOLLOW_ADDRESSES = """async (addresses) => {
    const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    for (const address of addresses) {
        location.hash = "#/";
        await frame();
        location.hash = address;
        do await frame();
        while (document.querySelector("main .quiet-notice") !== null);
        if (document.querySelector("main > :not(header, p)") === null) throw new Error(address);
    }
}"""

VIOLATE = """() => new Promise((heard) => {
    document.addEventListener("securitypolicyviolation", heard, { once: true });
    const image = document.createElement("img");
    image.src = "https://elsewhere.example/x.png";
    document.body.append(image);
}).then(() => true)"""


@pytest.fixture
def watched(browser: Browser, service_url: str) -> Iterator[Watched]:
    with open_watched(browser, service_url, allowed=EXPECTED) as watched:
        watched.page.goto("/")
        yield watched


def test_corpus_in_titles(watched: Watched, service_url: str) -> None:
    titled = [conversation(text[:200] or "empty", []) for text in CORPUS]
    import_conversations(service_url, titled)
    page = watched.page
    page.reload()
    menus = page.get_by_role("button", name=re.compile("^More for"))
    num_shown = ROWS_AT_ONCE
    while num_shown < len(titled):
        expect(menus).to_have_count(num_shown)
        page.get_by_role("button", name="Show older").click()
        num_shown = min(num_shown + ROWS_AT_ONCE, len(titled))
    expect(menus).to_have_count(len(titled))

    watched.expect_harmless()


def test_corpus_in_messages_answers_and_system_prompts(watched: Watched, service_url: str) -> None:
    conversations = [
        conversation(
            text[:200],
            [
                message("system", text),
                message("user", text),
                message("assistant", f"{text}\n\nsentinel-{number}"),
            ],
        )
        for number, text in enumerate(in_batches(6))
    ]
    page = watched.page
    for number, session_id in enumerate(import_conversations(service_url, conversations)):
        page.goto(f"/#/c/{session_id}")
        expect(page.get_by_text(f"sentinel-{number}", exact=True)).to_be_visible()
        page.locator(".system-prompt summary").click()
        watched.expect_harmless()


def test_corpus_rendered_at_once_and_found_by_search(watched: Watched, service_url: str) -> None:
    text = "\n\n".join(CORPUS)
    messages = [message("user", text), message("assistant", text)]
    (session_id,) = import_conversations(service_url, [conversation("<b>all</b>", messages)])
    page = watched.page
    page.goto(f"/#/c/{session_id}")
    # What comes last: mathematics, and the colours of code.
    expect(last_answer(page).locator("math").first).to_be_visible()
    expect(last_answer(page).locator("pre [class^=code-]").first).to_be_visible()
    watched.expect_harmless()

    found = page.get_by_role("region", name="Found")
    for words in ("onerror=", "<script>", "javascript:", "<b>all", "&lt;"):
        page.get_by_role("searchbox", name="Search").fill(words)
        expect(found.locator("mark").first).to_have_text(re.compile(re.escape(words), re.I))
        watched.expect_harmless()


def test_corpus_said_by_the_reader(watched: Watched) -> None:
    page = watched.page
    for text in in_batches(32):
        begin_chat(page, LONG)
        send(page, text)
        stop(page)
        expect(said(page)).to_contain_text(text.rpartition("\n\n")[2].strip())
        watched.expect_harmless()
        said(page).hover()
        page.locator(".said").get_by_role("button", name="Edit").click()
        expect(page.get_by_role("textbox", name="Edit your message")).to_be_focused()
        watched.expect_harmless()


def test_corpus_in_what_a_refusal_says(watched: Watched) -> None:
    page = watched.page
    for text in in_batches(42):
        refuse(page, {"type": text, "code": text, "message": f"{text}\n\nsentinel"})
        send(page, "Hello")
        expect_phase(page, "failed")
        expect(last_answer(page).get_by_role("group", name="Error")).to_contain_text("sentinel")
        watched.expect_harmless()
        page.unroute("**/v1/conversations")
        composer(page).fill("")


def refuse(page: Page, error: dict[str, str]) -> None:
    """Have the page hear that no conversation can be stored."""
    reply = {"error": error}
    page.route("**/v1/conversations", lambda route: route.fulfill(status=400, json=reply))


def test_corpus_in_import_files_and_their_errors(watched: Watched) -> None:
    page = watched.page
    list_panel = page.get_by_role("navigation", name="Conversations")
    field = list_panel.get_by_label("Import", exact=True)
    for text in in_batches(6):
        strange = {"format": text, "conversations": [{"id": text, text: text}]}
        document = {"object": "chatserve.conversations", **strange}
        with page.expect_response("**/conversations/import"):
            field.set_input_files(
                {
                    "name": "<img src=x onerror=alert(1)>.json",
                    "mimeType": "application/json",
                    "buffer": json.dumps(document).encode(),
                }
            )
        expect(list_panel.get_by_text("Nothing was imported.")).to_be_visible()
        watched.expect_harmless()


def test_corpus_in_addresses_of_the_page(watched: Watched) -> None:
    for form in ("#/c/{0}/{0}", "#/cache?tenant={0}"):
        watched.page.evaluate(FOLLOW_ADDRESSES, [form.format(text) for text in CORPUS])
        watched.expect_harmless()


def test_harm_would_be_noticed(watched: Watched) -> None:
    watched.page.evaluate(VIOLATE)
    with pytest.raises(AssertionError, match=r"(?s)<img.*img-src: https://elsewhere"):
        watched.expect_harmless()


def test_a_violation_of_the_policy_fails_whichever_test_it_happens_in(
    browser: Browser, service_url: str
) -> None:
    with (
        pytest.raises(AssertionError, match="policy: img-src: https://elsewhere"),
        open_page(browser, service_url) as page,
    ):
        page.evaluate(VIOLATE)
