"""Hostile text in what the service says: answers as they grow, tools, errors, personas, models.

The real service takes no such names and no model can be had to say such things, so what it says is
replaced on its way to the page.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from e2e.chat_page import (
    begin_chat,
    composer,
    expect_phase,
    last_answer,
    open_inspector,
    send,
    short,
)
from e2e.hostile_text import CORPUS, Watched, in_batches, open_watched
from playwright.sync_api import Browser, WebSocketRoute, expect

pytestmark = pytest.mark.needs_program("chromium")

WHOLE = "\n\n".join([*CORPUS, "sentinel"])
NUM_DELTAS = 40

# What the browser says of a request that a test keeps from the service or that it refuses.
EXPECTED = r"net::ERR_FAILED|status of 4\d\d"


@pytest.fixture
def watched(browser: Browser, service_url: str) -> Iterator[Watched]:
    with open_watched(browser, service_url, allowed=EXPECTED) as watched:
        yield watched


class HostileStream:
    """What a socket brings, with the corpus in the place of what the model says.

    Owns: what of the corpus was not said yet.
    Used from: one test.
    """

    def __init__(self, route: WebSocketRoute) -> None:
        size = -(-len(WHOLE) // NUM_DELTAS)
        self._pieces = [WHOLE[start : start + size] for start in range(0, len(WHOLE), size)]
        self._page = route
        route.connect_to_server().on_message(self._forward)

    def _forward(self, frame: str | bytes) -> None:
        event: dict[str, Any] = json.loads(frame)
        match event["type"]:
            case "response.output_text.delta":
                event["delta"] = self._pieces.pop(0) if self._pieces else ""
                self._send_tool_events(event)
            case "response.output_text.done":
                event["text"] = WHOLE
            case "response.incomplete":
                event["type"] = "response.failed"
                event["response"]["status"] = "failed"
                event["response"]["error"] = {"code": WHOLE, "message": WHOLE}
        self._page.send(json.dumps(event))

    def _send_tool_events(self, event: dict[str, Any]) -> None:
        """Events that the page does not know, for the answer that it follows."""
        text = event["delta"]
        item = {"type": "function_call", "name": text, "arguments": text, "output": text}
        for kind in ("response.function_call_arguments.delta", f"chatserve:{text}"):
            of_tool = {"type": kind, "stream_id": event["stream_id"], "delta": text, "item": item}
            self._page.send(json.dumps(of_tool))


def test_corpus_streamed_as_an_answer_with_tools_and_as_its_error(watched: Watched) -> None:
    page = watched.page
    page.route_web_socket("**/v1/responses", lambda route: HostileStream(route))
    begin_chat(page, short(2 * NUM_DELTAS))
    # What was stored is not what was shown; here it is never read again.
    page.route("**/v1/conversations/*/items*", lambda route: route.abort())

    send(page, "Hello")

    expect_phase(page, "failed")
    expect(last_answer(page).locator(".markdown")).to_contain_text("sentinel")
    expect(last_answer(page).get_by_role("group", name="Error")).to_contain_text("sentinel")
    expect(last_answer(page).locator("math").first).to_be_visible()
    watched.expect_harmless()


def test_corpus_in_personas_their_texts_and_variables(watched: Watched) -> None:
    page = watched.page
    personas = [
        {
            "name": " ".join(text.split()),
            "version": 1,
            "excerpt": text,
            "variables": [{"name": f"{text} {number}", "default": None} for number in range(2)],
            "workers": [{"model": text, "state": "pinned", "num_tokens": 7}],
            "text": f"{text}\n\nsentinel",
        }
        for text in in_batches(16)
    ]
    page.route(
        "**/v1/chatserve/prompts?*",
        lambda route: route.fulfill(json={"data": personas, "has_more": False}),
    )
    page.route("**/v1/chatserve/prompts/*", lambda route: route.fulfill(json=personas[0]))
    page.goto("/")
    open_inspector(page)
    picker = page.get_by_role("main").get_by_role("group", name="Persona")
    expect(picker.get_by_role("radio")).to_have_count(1 + len(personas))

    for number in range(len(personas)):
        choice = picker.get_by_role("radio").nth(1 + number)
        choice.check()
        expect(choice).to_be_checked()
        expect(page.locator(".obstacle")).to_be_visible()
        expect(page.get_by_role("blockquote").filter(has_text="sentinel")).to_be_visible()
        watched.expect_harmless()

    values = picker.get_by_role("textbox")
    for number in range(2):
        values.nth(number).fill(WHOLE[:10_000])
    send(page, "Hello")
    expect_phase(page, "failed")
    watched.expect_harmless()


def test_corpus_in_names_of_models_and_of_their_fields(watched: Watched) -> None:
    page = watched.page
    models = [
        {
            "id": text,
            "max_model_len": 8192,
            "chatserve:base_model": text,
            "chatserve:sampling": [
                {"name": text, "type": "strings", "default": [text]},
                {"name": f"{text} 2", "type": "number", "default": 1, "minimum": 0, "maximum": 2},
                {"name": f"{text} 3", "type": text, "default": text},
            ],
        }
        for text in in_batches(16)
    ]
    page.route("**/v1/models", lambda route: route.fulfill(json={"data": models}))
    page.goto("/")
    open_inspector(page)
    choice = page.get_by_role("combobox", name="Model")
    expect(choice.get_by_role("option")).to_have_count(len(models))

    for model in models:
        choice.select_option(str(model["id"]))
        expect(composer(page)).to_be_visible()
        watched.expect_harmless()
    send(page, "Hello")
    expect_phase(page, "failed")
    watched.expect_harmless()
