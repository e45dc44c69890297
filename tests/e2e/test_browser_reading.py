"""How an answer reads: what it is drawn as, and that the page leaves the reader where they are."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import httpx
import pytest
from e2e.chat_page import (
    LONG,
    expect_longer,
    expect_phase,
    last_answer,
    let_it_begin,
    open_inspector,
    open_page,
    send,
    set_fields,
    short,
    shown_text,
    stop,
)
from playwright.sync_api import Browser, Locator, Page, expect

pytestmark = pytest.mark.needs_program("chromium")

CODE = """def count(ships: list[str]) -> int:
\treturn len(ships)  # "all" <of> them


print(count([]))"""
RICH_ANSWER = f"""The keeper writes a list.

```python
{CODE}
```

| Ship | Length |
|---|---:|
| Aurora | 31 m |

The mean is \\(\\bar{{x}}\\), that is

$$
\\bar{{x}} = \\frac{{1}}{{n}} \\sum_i x_i
$$
"""
WIDE = {"width": 1280, "height": 720}
NUM_ITEMS = 15_000
NUM_FORMULAS = 1_000
# Of computing, whatever else the machine does meanwhile. A list of this length took two seconds at
# a stretch, and the bound is for what has no bound.
LONGEST_TASK_S = 1.0
MAIN_TASK = "ThreadControllerImpl::RunTask"  # as a trace of the browser calls it
IS_AT_END = """() => {
    const log = document.querySelector("[role=log]");
    return log.scrollHeight - log.clientHeight - log.scrollTop <= 4;
}"""
HAS_MUCH_ABOVE = """() => {
    const log = document.querySelector("[role=log]");
    return log !== null && log.scrollHeight > 2 * log.clientHeight;
}"""

# Where the transcript stands once the motion of the wheel is over.
RESTING_TOP = """async (log) => {
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    for (let top = NaN, numStill = 0; numStill < 20; await frame()) {
        numStill = log.scrollTop === top ? numStill + 1 : 0;
        top = log.scrollTop;
    }
    return log.scrollTop;
}"""
# Where a text begins and ends on the screen in each frame: an intersection is computed when a frame
# is laid out and scrolled, right before it is painted.
WATCH_PLACES = """() => {
    window.places = [];
    const watch = () => {
        const answer = [...document.querySelectorAll("article.answer")].at(-1);
        const { phase } = answer.dataset;
        const observer = new IntersectionObserver(([{ boundingClientRect: { top, bottom } }]) => {
            window.places.push([phase, top, bottom]);
            observer.disconnect();
        });
        observer.observe(answer.querySelector(".markdown"));
        requestAnimationFrame(watch);
    };
    requestAnimationFrame(watch);
}"""


def import_answer(service_url: str, text: str, num_turns: int = 1) -> str:
    """Store a conversation whose answers all have this text; return its id."""
    items = [
        {
            "id": f"m{number}",
            "parent_id": f"m{number - 1}" if number else None,
            "role": "assistant" if number % 2 else "user",
            "text": text if number % 2 else f"Question {number // 2}",
            "created_at": 1_767_225_600 + number,
        }
        for number in range(2 * num_turns)
    ]
    moment = {"created_at": 1_767_225_600, "updated_at": 1_767_225_600}
    conversation = {"id": "conv_reading", "title": "Reading", **moment, "items": items}
    document = {"object": "chatserve.conversations", "format": 1, "conversations": [conversation]}
    response = httpx.post(
        f"{service_url}/v1/chatserve/conversations/import", json=document, timeout=60
    )
    assert response.status_code in (200, 201), response.text
    (conversation_id,) = response.json()["conversation_ids"]
    return str(conversation_id)


@contextmanager
def open_answer(
    browser: Browser,
    service_url: str,
    text: str,
    num_turns: int = 1,
    viewport: Mapping[str, int] = WIDE,
) -> Iterator[Page]:
    conversation_id = import_answer(service_url, text, num_turns)
    with open_page(browser, service_url, viewport=viewport) as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.goto("about:blank")
        page.goto(f"/#/c/{conversation_id}")
        yield page


def transcript(page: Page) -> Locator:
    return page.get_by_role("log")


def latest(page: Page) -> Locator:
    return page.get_by_role("button", name="Latest")


def expect_at_end(page: Page) -> None:
    expect(latest(page)).to_have_count(0)
    page.wait_for_function(IS_AT_END)


def scroll_up(page: Page, pixels: int) -> None:
    transcript(page).hover()
    page.mouse.wheel(0, -pixels)
    expect(latest(page)).to_be_visible()


def test_tables_mathematics_and_code_with_colours_are_drawn(
    browser: Browser, service_url: str
) -> None:
    with open_answer(browser, service_url, RICH_ANSWER) as page:
        answer = last_answer(page)
        expect(answer.get_by_role("table")).to_contain_text("Aurora")
        expect(answer.locator("math")).to_have_count(2)
        expect(answer.locator("math mfrac")).to_be_visible()
        expect(answer.locator("pre .code-keyword").first).to_have_text("def")

        colours = answer.locator("pre").evaluate(
            """(code) => [...code.querySelectorAll("span")]
                .map((piece) => getComputedStyle(piece).color)"""
        )
        assert len(set(colours)) > 2
        right = answer.get_by_role("cell", name="31 m")
        assert right.evaluate("(cell) => getComputedStyle(cell).textAlign") == "end"


def test_the_copy_button_of_a_block_copies_exactly_its_code(
    browser: Browser, service_url: str
) -> None:
    with open_answer(browser, service_url, RICH_ANSWER) as page:
        page.evaluate("navigator.clipboard.writeText('')")
        page.locator("figure").get_by_role("button", name="Copy code").click()
        page.wait_for_function("() => navigator.clipboard.readText().then((text) => text !== '')")

        assert page.evaluate("navigator.clipboard.readText()") == CODE


def test_the_end_is_followed_until_the_reader_goes_up(browser: Browser, service_url: str) -> None:
    with open_answer(browser, service_url, RICH_ANSWER, num_turns=3) as page:
        page.wait_for_function(HAS_MUCH_ABOVE)
        expect_at_end(page)
        set_fields(page, LONG)
        send(page, "Write a very long story about a river.")
        let_it_begin(page)
        expect_at_end(page)

        scroll_up(page, 300)
        top = transcript(page).evaluate(RESTING_TOP)
        expect_longer(page, shown_text(page))
        expect_phase(page, "streaming")
        stop(page)
        expect(last_answer(page).get_by_role("button", name="Copy answer")).to_have_count(1)

        assert transcript(page).evaluate("(log) => log.scrollTop") == pytest.approx(top, abs=1)
        latest(page).click()
        expect_at_end(page)


@pytest.mark.parametrize(
    ("width", "has_inspector"),
    [(390, False), (860, False), (1000, False), (1300, False), (1000, True), (1300, True)],
)
def test_an_answer_ends_without_moving_its_text(
    browser: Browser, service_url: str, width: int, has_inspector: bool
) -> None:
    size = {"width": width, "height": 440}
    with open_answer(browser, service_url, RICH_ANSWER, num_turns=4, viewport=size) as page:
        set_fields(page, short(300))
        if has_inspector:
            open_inspector(page)
        send(page, "Write a long story about a river.")
        let_it_begin(page)
        page.evaluate(WATCH_PLACES)
        expect_phase(page, "cut")
        page.wait_for_timeout(300)

        places = page.evaluate("window.places")
        ends = [place[2] for place in places]
        assert {place[0] for place in places} == {"streaming", "cut"}
        assert max(ends) - min(ends) <= 1


def test_an_answer_ends_without_moving_what_a_reader_further_up_reads(
    browser: Browser, service_url: str
) -> None:
    size = {"width": 1000, "height": 440}
    with open_page(browser, service_url, answers=LONG, viewport=size) as page:
        send(page, "Write a long story about a river.")
        page.wait_for_function(HAS_MUCH_ABOVE)
        scroll_up(page, 100)
        transcript(page).evaluate(RESTING_TOP)
        page.evaluate(WATCH_PLACES)
        page.wait_for_timeout(300)
        stop(page)
        page.wait_for_timeout(300)

        places = page.evaluate("window.places")
        beginnings = [place[1] for place in places]
        assert {place[0] for place in places} == {"streaming", "stopped"}
        assert max(beginnings) - min(beginnings) <= 1


def test_a_reader_who_sets_out_for_the_end_follows_it(browser: Browser, service_url: str) -> None:
    size = {"width": 1000, "height": 440}
    with open_page(browser, service_url, answers=LONG, viewport=size) as page:
        send(page, "Write a very long story about a river.")
        page.wait_for_function(HAS_MUCH_ABOVE)
        ways_down: list[Callable[[], None]] = [
            lambda: page.keyboard.press("End"),
            lambda: page.keyboard.press("Control+End"),
            lambda: page.mouse.wheel(0, 5_000),
        ]
        for go_down in ways_down:
            transcript(page).focus()
            scroll_up(page, 250)
            transcript(page).evaluate(RESTING_TOP)
            go_down()
            expect_at_end(page)
        stop(page)


def test_a_text_in_two_scripts_has_a_direction_for_each_block(
    browser: Browser, service_url: str
) -> None:
    text = "An English line.\n\nسطر بالعربية.\n\n- واحد\n- two\n\n`x = 1` ثم نص"
    with open_answer(browser, service_url, text) as page:
        expect(last_answer(page).locator("li")).to_have_count(2)
        directions = (
            last_answer(page)
            .locator(".markdown :is(p, li, code)")
            .evaluate_all("(blocks) => blocks.map((block) => getComputedStyle(block).direction)")
        )
        assert directions == ["ltr", "rtl", "rtl", "ltr", "rtl", "ltr"]


def test_a_long_conversation_opens_at_its_end_and_goes_back_to_its_beginning(
    browser: Browser, service_url: str
) -> None:
    with open_answer(browser, service_url, RICH_ANSWER, num_turns=30) as page:
        expect(page.get_by_text("Question 29", exact=True)).to_be_attached()
        expect_at_end(page)

        first = page.get_by_text("Question 0", exact=True)
        transcript(page).hover()
        while first.count() == 0:
            page.mouse.wheel(0, -100_000)
            page.wait_for_timeout(100)
        expect(latest(page)).to_be_visible()
        expect(page.get_by_role("article", name="You")).to_have_count(30)


@pytest.mark.parametrize(
    ("text", "selector", "number"),
    [
        ("- an item\n" * NUM_ITEMS, "li", NUM_ITEMS),
        ("words of a paragraph " * 10_000, ".piece", 43),
        ("$$\nx_1\n$$\n\n" * NUM_FORMULAS, "math", NUM_FORMULAS),
    ],
    ids=["list", "paragraph", "formulas"],
)
def test_a_long_answer_opens_without_standing_still(
    browser: Browser, service_url: str, text: str, selector: str, number: int
) -> None:
    with main_task_times(browser) as times_s, open_answer(browser, service_url, text) as page:
        # Looking for roles in so long a document would be a long task of its own.
        drawn = f"() => document.querySelectorAll('.markdown {selector}').length"
        page.wait_for_function(f"() => ({drawn})() >= {number}", polling=500)

        assert page.evaluate(drawn) == number
        expect_at_end(page)

    assert 0 < max(times_s) < LONGEST_TASK_S


@contextmanager
def main_task_times(browser: Browser) -> Iterator[list[float]]:
    """Note how long main threads of pages compute at a stretch, in seconds, until the end."""
    times_s: list[float] = []
    browser.start_tracing(categories=["toplevel"])
    try:
        yield times_s
    finally:
        events = json.loads(browser.stop_tracing())["traceEvents"]
        main_threads = {
            (event["pid"], event["tid"])
            for event in events
            if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
        }
        times_s += [
            event.get("tdur", 0) / 1e6
            for event in events
            if event["name"] == MAIN_TASK and (event["pid"], event["tid"]) in main_threads
        ]
