"""Take the pictures of the page in docs/ anew: `make screenshots`.

Starts a service of its own on the default model, talks to it in a real browser, and leaves
page.png, page-dark.png, page-phone.png and cache-view.png. The conversations are real: what stands
below each answer was measured while it was made.
"""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from benchmarks.service import running_service

DOCS = Path(__file__).parents[1] / "docs"
PORT = 8767
SYSTEM = (
    "You are a patient science teacher. You explain things to curious children in two or three "
    "short sentences, with one everyday example, and you never use jargon."
)
QUESTIONS = ("What is gravity?", "Why is the sky blue?")
OTHERS = ("What is a magnet?", "Why do cats purr?", "How does a bird fly?", "What is snow?")
ANSWER_MS = 120_000
SCALE = 1.5


def main() -> None:
    with running_service(PORT, ["--num-pages", "512"]) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        _chat(browser, address)
        _cache_view(browser, address)
        browser.close()


def _chat(browser: Browser, address: str) -> None:
    """Have one conversation, and show it by day, by night, and on a phone."""
    context = _context(browser, address, dark=False)
    page = context.new_page()
    page.goto("/")
    page.get_by_role("button", name="Add a system prompt").click()
    page.get_by_role("textbox", name="System prompt").fill(SYSTEM)
    for question in QUESTIONS:
        _ask(page, question)
    page.get_by_role("button", name="Regenerate").last.click()
    _await_answer(page)
    page.mouse.move(0, 0)
    page.screenshot(path=DOCS / "page.png")
    where = page.url
    context.close()
    for name, phone in (("page-dark.png", False), ("page-phone.png", True)):
        context = _context(browser, address, dark=True, phone=phone)
        page = context.new_page()
        page.goto(where)
        expect(page.get_by_role("article", name="Answer").last).to_be_visible()
        if not phone:
            page.get_by_role("button", name="Inspector").first.click()
            expect(page.get_by_label("Temperature").first).to_be_visible()
        page.wait_for_timeout(500)
        page.screenshot(path=DOCS / name)
        context.close()


def _cache_view(browser: Browser, address: str) -> None:
    """Let four answers run under one system prompt, and show where their keys and values are."""
    context = _context(browser, address, dark=False)
    page = context.new_page()
    page.set_viewport_size({"width": 1200, "height": 1640})
    with _running(address, OTHERS):
        page.goto("/#/cache")
        row = page.get_by_role("button", name=re.compile("prompt tokens cached"))
        expect(row.first).to_be_visible(timeout=ANSWER_MS)
        row.first.click()
        page.wait_for_timeout(4_000)
        page.screenshot(path=DOCS / "cache-view.png")
    context.close()


def _context(browser: Browser, address: str, *, dark: bool, phone: bool = False) -> BrowserContext:
    return browser.new_context(
        base_url=address,
        viewport={"width": 390, "height": 800} if phone else {"width": 1200, "height": 800},
        device_scale_factor=SCALE,
        color_scheme="dark" if dark else "light",
        has_touch=phone,
        is_mobile=phone,
    )


def _ask(page: Page, question: str) -> None:
    page.get_by_role("textbox", name="Message").fill(question)
    page.get_by_role("textbox", name="Message").press("Enter")
    _await_answer(page)


def _await_answer(page: Page) -> None:
    answer = page.get_by_role("article", name="Answer").last
    expect(answer).to_have_attribute(
        "data-phase", re.compile("completed|cut|failed"), timeout=ANSWER_MS
    )


@contextmanager
def _running(address: str, questions: tuple[str, ...]) -> Iterator[None]:
    """Let answers run that nobody reads to their end."""
    is_over = threading.Event()
    threads = [
        threading.Thread(target=_stream, args=(address, question, is_over))
        for question in questions
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def _stream(address: str, question: str, is_over: threading.Event) -> None:
    body = {
        "model": "smollm2-135m-instruct",
        "messages": [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": question},
        ],
        "max_tokens": 1_000,
        "ignore_eos": True,
        "stream": True,
    }
    with httpx.stream("POST", f"{address}/v1/chat/completions", json=body, timeout=60) as reply:
        for _ in reply.iter_lines():
            if is_over.is_set():
                return


if __name__ == "__main__":
    main()
