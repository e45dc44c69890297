"""Whoever has a key is let in, and what they leave behind is nobody else's."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from e2e.chat_page import (
    ENDED,
    KEPT,
    NO_KEY,
    composer,
    expect_connection,
    expect_phase,
    open_context,
    said,
    say,
    send,
    stop,
)
from e2e.real_service import Service
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

pytestmark = pytest.mark.needs_program("chromium")

SECRET = "xylophone"
WAIT_MS = 60_000

# What the browser says of a key that is missing, a conversation that is somebody else's, too many
# requests, and a part of the page that was kept from it.
EXPECTED = rf"{NO_KEY}|status of (404|429)|net::ERR_FAILED"

# Where else a script could find what was typed here: the replies that are kept, whole, the
# address with its history, and the document.
AT_HAND = """async () => {
    const replies = [];
    for (const name of await caches.keys()) {
        const cache = await caches.open(name);
        for (const request of await cache.keys()) {
            const reply = await cache.match(request);
            replies.push(request.url, [...reply.headers], await reply.text());
        }
    }
    const fields = [...document.querySelectorAll("input, textarea")].map(({ value }) => value);
    const { outerHTML } = document.documentElement;
    return JSON.stringify({
        replies,
        fields,
        outerHTML,
        place: [location.href, document.referrer, history.state, window.name],
    });
}"""

# What the browser's own cache has, whatever the server says.
CACHED = """async (path) => {
    const reply = await fetch(path, { cache: "force-cache" });
    return [reply.status, await reply.text()];
}"""


@pytest.fixture(scope="module")
def service(
    default_model_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """A service that wants a key, and makes some for users of the tenant acme."""
    service = Service(tmp_path_factory.mktemp("service"), default_model_path)
    service.start()
    service.command("tenant", "add", "acme")
    yield service
    service.stop()


@pytest.fixture
def context(browser: Browser, service: Service) -> Iterator[BrowserContext]:
    with open_context(browser, service.url, allowed=EXPECTED) as context:
        yield context


def new_key(service: Service, user: str, *flags: str) -> str:
    return service.command(
        "key", "add", "--tenant", "acme", "--user", user, "--quiet", *flags
    ).strip()


def visit(context: BrowserContext, address: str = "/") -> Page:
    page = context.new_page()
    page.goto(address)
    return page


def log_in(page: Page, key: str) -> None:
    """Log in, and return in the page that begins anew, once it knows whose it is."""
    page.get_by_label("Your key").fill(key)
    with page.expect_event("load"):
        page.keyboard.press("Enter")
    expect(page.get_by_role("button", name=re.compile("^Log out"))).to_be_visible()
    expect_connection(page, "^live$")


def log_out(page: Page, user: str) -> None:
    """Log out, and return in the page that begins anew; the old one may show the login before."""
    with page.expect_event("load"):
        page.get_by_role("button", name=f"Log out {user}").click()
    expect(page.get_by_label("Your key")).to_be_visible()


def test_a_key_lets_in_and_logging_out_leaves_nothing(
    context: BrowserContext, service: Service
) -> None:
    key = new_key(service, "ann")
    page = visit(context)
    expect(page.get_by_label("Your key")).to_be_focused()
    expect(composer(page)).to_have_count(0)

    page.keyboard.type("csk_not_a_key")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("This is not a valid key")
    log_in(page, key)
    say(page, f"What is a {SECRET}?")
    composer(page).fill(f"And who plays the {SECRET}")
    address = re.sub(".*#/c/", "", page.url)
    items = f"/v1/conversations/{address}/items?order=asc&tree=true&limit=100"
    page.wait_for_function(
        "words => localStorage.getItem('chatserve:drafts')?.includes(words)", arg=SECRET
    )
    log_out(page, "ann")

    assert SECRET not in page.evaluate(KEPT)
    assert context.cookies() == []
    status, text = page.evaluate(CACHED, items)
    assert (status, SECRET in text) == (401, False)
    expect(page).to_have_title("chatserve")
    expect(page).to_have_url(f"{service.url}/#/")
    for _ in range(2):
        page.go_back()
        expect(page.get_by_text(SECRET)).to_have_count(0)


def test_a_key_is_never_where_a_script_could_read_it(
    context: BrowserContext, service: Service
) -> None:
    key = new_key(service, "ann")
    *_, secret = key.split("_", 2)
    page = visit(context)
    log_in(page, key)
    say(page, "Hello")
    composer(page).fill(f"Who plays the {SECRET}?")
    page.wait_for_function(
        "words => localStorage.getItem('chatserve:drafts')?.includes(words)", arg=SECRET
    )

    for tab in (page, visit(context)):
        readable = tab.evaluate(KEPT) + tab.evaluate(AT_HAND)
        assert SECRET in readable, "what is kept is seen"
        assert secret not in readable
    for cookie in context.cookies():
        assert cookie["httpOnly"]
        assert secret not in cookie["value"]
    log_out(page, "ann")

    assert secret not in page.evaluate(KEPT) + page.evaluate(AT_HAND)


def test_the_address_of_somebody_else_opens_a_new_chat(
    context: BrowserContext, service: Service
) -> None:
    page = visit(context)
    log_in(page, new_key(service, "ann"))
    say(page, f"What is a {SECRET}?")
    address = page.url
    log_out(page, "ann")
    page.goto(address)

    log_in(page, new_key(service, "bob"))

    expect(page.get_by_role("alert").filter(has_text="not among yours")).to_be_visible()
    expect(page).to_have_url(f"{service.url}/#/")
    expect(page.get_by_text(SECRET)).to_have_count(0)
    say(page, "Hello")
    expect(said(page)).to_have_text(["Hello"])


def test_a_key_that_is_revoked_ends_what_every_tab_shows(
    context: BrowserContext, service: Service
) -> None:
    key = new_key(service, "eve")
    pages = [visit(context), visit(context)]
    log_in(pages[0], key)
    expect(composer(pages[1])).to_be_visible()
    say(pages[0], f"What is a {SECRET}?")
    pages[1].goto(pages[0].url)
    expect(said(pages[1])).to_have_count(1)

    keys = json.loads(service.command("key", "list", "--tenant", "acme", "--json"))
    [key_id] = [each["key_id"] for each in keys if each["user"] == "eve"]
    service.command("key", "revoke", key_id)

    for page in pages:
        expect(page.get_by_label("Your key")).to_be_visible()
        expect(page.get_by_text(SECRET)).to_have_count(0)
        expect(page).to_have_title("chatserve")
    assert SECRET not in pages[0].evaluate(KEPT)


def test_who_has_sent_too_much_is_told_so_once_and_may_try_again_in_time(
    context: BrowserContext, service: Service
) -> None:
    key = new_key(service, "ann", "--requests-per-minute", "2")
    page = visit(context)
    log_in(page, key)
    say(page, "Hello")
    with httpx.Client(base_url=service.url, timeout=60) as client:
        client.headers["authorization"] = f"Bearer {key}"
        model = client.get("/v1/models").json()["data"][0]["id"]
        body = {"model": model, "prompt": "Hello", "max_tokens": 1}
        while client.post("/v1/completions", json=body).status_code == 200:
            pass  # what the time that has passed allows again, too

    send(page, "Once more")

    expect_phase(page, "failed")
    refusal = page.get_by_text("You have sent as much as is allowed for now.", exact=False)
    retry = page.get_by_role("button", name="Retry")
    expect(page.get_by_role("group", name="Error")).to_contain_text(re.compile(r"again in \d+ s"))
    expect(page.get_by_text("tenant")).to_have_count(0)
    expect(retry).to_be_disabled()
    expect(refusal).to_have_count(1)
    expect(retry).to_be_enabled(timeout=WAIT_MS)
    retry.click()
    expect_phase(page, f"streaming|{ENDED}")
    stop(page)


def test_a_part_of_the_page_that_could_not_be_loaded_can_be_had_again(
    context: BrowserContext,
) -> None:
    failures = iter([True, False])

    def answer(route: Route) -> None:
        if next(failures, False):
            route.abort()
        else:
            route.continue_()

    context.route("**/assets/login_form-*.js", answer)
    page = visit(context)
    expect(page.get_by_text("The server cannot be reached.")).to_be_visible()

    page.get_by_role("button", name="Retry").click()

    expect(page.get_by_label("Your key")).to_be_focused()
