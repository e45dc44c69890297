"""The page in a real browser whose way to the real service fails in one way or another."""

import json
import re
import time
from collections.abc import Iterator

import pytest
from e2e.chat_page import (
    ANSWER_MS,
    LONG,
    RETIME,
    begin_chat,
    composer,
    delete_conversation,
    expect_as_stored,
    expect_connection,
    expect_drawn,
    expect_longer,
    expect_phase,
    last_answer,
    let_it_begin,
    new_answer,
    open_context,
    said,
    say,
    send,
    short,
    shown_text,
    stop,
    stored_so_far,
)
from playwright.sync_api import Browser, BrowserContext, Page, WebSocketRoute, expect

pytestmark = pytest.mark.needs_program("chromium")

SOCKET = re.compile("/v1/responses")

# What the browser says of a network that is away, of a socket that was cut, and of a deletion.
EXPECTED = r"net::ERR_INTERNET_DISCONNECTED|WebSocket connection to .* failed|status of 404"

# By their numbers: the first, the first words, and a later one. The last of an answer, after which
# nothing would show that it is missing, has a higher number, into however few deltas it falls.
FRAMES_LOST = {0, 5, 7}

# What a page sees of a proxy that answers the upgrade by an error.
NO_WEBSOCKET = """
window.WebSocket = class {
  readyState = 0;
  constructor() {
    setTimeout(() => {
      this.readyState = 3;
      this.onclose?.({ code: 1006, reason: "" });
    }, 20);
  }
  send() {}
  close() {}
};
"""

# A machine that sleeps: no timer runs, and then much time has passed.
JUMPING_CLOCK = """
window.jumpMs = 0;
const now = Date.now;
Date.now = () => now() + window.jumpMs;
"""
PING_MS = 20_000
NEVER_MS = 10**9


@pytest.fixture
def context(browser: Browser, service_url: str) -> Iterator[BrowserContext]:
    """One browser of one reader; a test opens its tabs."""
    with open_context(browser, service_url, allowed=EXPECTED) as context:
        yield context


def open_chat(context: BrowserContext) -> Page:
    page = context.new_page()
    begin_chat(page, LONG)
    return page


def open_tab(context: BrowserContext, url: str) -> Page:
    page = context.new_page()
    page.goto(url)
    return page


def test_an_answer_survives_a_time_without_network(context: BrowserContext) -> None:
    page = open_chat(context)
    send(page, "Explain in many words how bread is made.")
    let_it_begin(page)

    context.set_offline(True)
    expect_connection(page, "offline, reading only")
    expect(page.get_by_text("You are offline")).to_be_visible()
    begun = shown_text(page)
    context.set_offline(False)
    expect_connection(page, "^live$")
    expect_longer(page, begun)
    stop(page)

    expect_phase(page, "stopped")
    expect_as_stored(page)


@pytest.mark.parametrize("how", ["refused", "silent"])
def test_where_no_websocket_gets_through_the_chat_goes_over_http(
    context: BrowserContext, how: str
) -> None:
    if how == "refused":
        context.add_init_script(NO_WEBSOCKET)
    else:
        context.route_web_socket(SOCKET, lambda _: None)
    page = open_chat(context)
    expect_connection(page, "live over HTTP")

    send(page, "Explain in many words how bread is made.")
    let_it_begin(page)
    page.get_by_role("button", name="Stop").click()
    expect_phase(page, "stopped")
    expect_as_stored(page)
    send(page, "Write a very long story about a river.")
    let_it_begin(page)
    begun = shown_text(page)
    page.reload()
    expect_connection(page, "live over HTTP")
    expect_longer(page, begun)
    stop(page)

    expect(said(page)).to_have_count(2)
    expect_as_stored(page)


def test_a_socket_takes_over_from_http_once_it_gets_through(context: BrowserContext) -> None:
    isolated = [True]

    def answer(route: WebSocketRoute) -> None:
        if not isolated[0]:
            route.connect_to_server()

    context.route_web_socket(SOCKET, answer)
    page = open_chat(context)
    expect_connection(page, "live over HTTP")
    send(page, "Explain in many words how bread is made.")
    let_it_begin(page)

    isolated[0] = False
    page.evaluate("() => window.dispatchEvent(new Event('online'))")

    expect_connection(page, "^live$")
    expect_longer(page, shown_text(page))
    stop(page)
    expect_as_stored(page)


def test_a_proxy_that_closes_every_socket_in_the_middle_costs_no_word(
    context: BrowserContext,
) -> None:
    sockets: list[WebSocketRoute] = []

    def answer(route: WebSocketRoute) -> None:
        sockets.append(route)
        server = route.connect_to_server()
        num_frames = 0

        def forward(frame: str | bytes) -> None:
            nonlocal num_frames
            num_frames += 1
            route.send(frame)
            if num_frames == 7:
                server.close()
                route.close(code=1001)

        server.on_message(forward)

    context.route_web_socket(SOCKET, answer)
    page = context.new_page()
    begin_chat(page, short(100))
    send(page, "Explain in many words how bread is made.")

    expect_phase(page, "cut")
    assert len(sockets) > 1, "it was cut in the middle"
    expect_as_stored(page)


def test_frames_that_are_lost_or_come_twice_are_neither_missing_nor_shown_twice(
    context: BrowserContext,
) -> None:
    lost: set[int] = set()

    def answer(route: WebSocketRoute) -> None:
        server = route.connect_to_server()

        def forward(frame: str | bytes) -> None:
            number = json.loads(frame).get("sequence_number")
            if number in FRAMES_LOST - lost:
                lost.add(number)
                return
            route.send(frame)
            route.send(frame)

        server.on_message(forward)

    context.route_web_socket(SOCKET, answer)
    page = context.new_page()
    begin_chat(page, short(40))
    send(page, "Explain in many words how bread is made.")

    expect_phase(page, "cut")
    assert lost == FRAMES_LOST
    expect_as_stored(page)


def test_a_message_that_was_refused_is_sent_again_by_retry(context: BrowserContext) -> None:
    refusal = {"type": "too_many_requests", "code": "queue_full", "message": "the queue is full"}
    refused: list[str] = []

    def answer(route: WebSocketRoute) -> None:
        server = route.connect_to_server()

        def forward(frame: str | bytes) -> None:
            event = json.loads(frame)
            if event["type"] != "response.create" or refused:
                server.send(frame)
                return
            refused.append(event["event_id"])
            lane = event["stream_id"]
            error = {"type": "error", "status": 429, "stream_id": lane, "error": refusal}
            route.send(json.dumps(error))

        route.on_message(forward)

    context.route_web_socket(SOCKET, answer)
    page = open_chat(context)
    send(page, "Name a river.")
    expect_phase(page, "failed")
    error = last_answer(page).get_by_role("group", name="Error")
    expect(error).to_contain_text("The queue is full")
    expect(composer(page)).to_have_value("Name a river.")

    with new_answer(page):
        error.get_by_role("button", name="Retry").click()
    let_it_begin(page)
    stop(page)

    expect(said(page)).to_have_text("Name a river.")
    expect(page.get_by_role("article", name="Answer")).to_have_count(1)
    expect(composer(page)).to_have_value("")
    expect_as_stored(page)


def test_a_machine_that_slept_finds_its_dead_socket_and_misses_nothing(
    context: BrowserContext,
) -> None:
    sockets: list[MortalSocket] = []
    context.add_init_script(JUMPING_CLOCK)
    # Nothing but the jump of the clock tells.
    context.add_init_script(f"({RETIME})({{{PING_MS}: {NEVER_MS}}})")
    context.route_web_socket(SOCKET, lambda route: sockets.append(MortalSocket(route)))
    page = open_chat(context)
    send(page, "Explain in many words how bread is made.")
    let_it_begin(page)

    devtools = context.new_cdp_session(page)
    devtools.send("Page.setWebLifecycleState", {"state": "frozen"})
    sockets[-1].die()
    num_chars = await_stored_chars(page, len(stored_so_far(page)) + 40)
    devtools.send("Page.setWebLifecycleState", {"state": "active"})
    page.evaluate("window.jumpMs = 600_000")

    expect_drawn(page, num_chars=num_chars)
    stop(page)
    expect_phase(page, "stopped")
    expect_as_stored(page)


class MortalSocket:
    """A socket through which from some moment on nothing gets any more; neither end is told.

    Owns: whether it is dead.
    Used from: one test.
    """

    def __init__(self, route: WebSocketRoute) -> None:
        self._is_dead = False
        server = route.connect_to_server()
        server.on_message(lambda frame: None if self._is_dead else route.send(frame))
        route.on_message(lambda frame: None if self._is_dead else server.send(frame))

    def die(self) -> None:
        self._is_dead = True


def await_stored_chars(page: Page, num_chars: int) -> int:
    """Wait until the answer in flight has so many characters at the server; return how many."""
    deadline = time.monotonic() + ANSWER_MS / 1000
    while (num_stored := len(stored_so_far(page))) < num_chars:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return num_stored


def test_two_tabs_on_one_session_are_in_step(context: BrowserContext) -> None:
    first = open_chat(context)
    say(first, "Name the colour of fresh snow.")
    second = open_tab(context, first.url)
    expect(second.get_by_role("article", name="Answer")).to_have_count(1)
    second.get_by_role("textbox", name="Message").fill("I am writing")

    send(first, "Explain in many words how bread is made.")
    let_it_begin(first)
    expect(said(second)).to_have_count(2)
    let_it_begin(second)
    stop(first)

    expect_phase(second, "stopped")
    expect(second.get_by_role("textbox", name="Message")).to_be_focused()
    expect(second.get_by_role("textbox", name="Message")).to_have_value("I am writing")
    for tab in (first, second):
        expect_as_stored(tab)


def test_a_session_deleted_in_one_tab_is_gone_in_the_other(context: BrowserContext) -> None:
    first = open_chat(context)
    say(first, "Name the smell of fresh rain.")
    second = open_tab(context, first.url)
    expect(second.get_by_role("article", name="Answer")).to_have_count(1)

    delete_conversation(first, "fresh rain", undo_ms=100)

    expect(second.get_by_text("That conversation is not among yours")).to_be_visible()


def test_a_draft_survives_a_reload(context: BrowserContext) -> None:
    page = open_tab(context, "/")
    page.get_by_role("textbox", name="Message").fill("Not finished")

    page.reload()

    expect(page.get_by_role("textbox", name="Message")).to_have_value("Not finished")
