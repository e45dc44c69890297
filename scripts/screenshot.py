"""Take the README's picture of the page: `scripts/screenshot.py ADDRESS FILE`.

Asks the running service at ADDRESS two questions under a system prompt, in a real browser.
"""

import re
import sys

from playwright.sync_api import Page, expect, sync_playwright

SYSTEM = (
    "You are a patient science teacher. You explain things to curious children in two or three "
    "short sentences, with one everyday example, and you never use jargon."
)
QUESTIONS = ("What is gravity?", "Why is the sky blue?")
ANSWER_MS = 120_000


def ask(page: Page, question: str) -> None:
    page.get_by_role("textbox", name="Message").fill(question)
    page.get_by_role("textbox", name="Message").press("Enter")
    answer = page.get_by_role("article", name="Answer").last
    expect(answer).to_have_attribute(
        "data-phase", re.compile("completed|cut|failed"), timeout=ANSWER_MS
    )


def main(address: str, path: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        page = browser.new_page(
            viewport={"width": 1100, "height": 720}, device_scale_factor=1.5, base_url=address
        )
        page.goto("/")
        page.get_by_role("button", name="Add a system prompt").click()
        page.get_by_role("textbox", name="System prompt").fill(SYSTEM)
        for question in QUESTIONS:
            ask(page, question)
        page.screenshot(path=path)
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
