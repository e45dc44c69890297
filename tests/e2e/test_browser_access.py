"""Whether everybody can use the page: by keyboard, by ear, in any colours and at any size."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from e2e.chat_page import (
    ANSWER_MS,
    composer,
    expect_phase,
    open_login,
    open_page,
    said,
    say,
    send,
    stop,
)
from playwright.sync_api import Browser, Page, expect

pytestmark = pytest.mark.needs_program("chromium")

AXE = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"
PHONE: dict[str, Any] = {
    "viewport": {"width": 360, "height": 740},
    "has_touch": True,
    "is_mobile": True,
}
LOOKS: list[dict[str, Any]] = [
    {"color_scheme": "light"},
    {"color_scheme": "dark"},
    {"color_scheme": "light", **PHONE},
    {"color_scheme": "dark", **PHONE},
]
LOOK_NAMES = ["light", "dark", "light phone", "dark phone"]
# What a reader may set for text: WCAG 2.2, 1.4.12.
SPACED_TEXT = """* {
    line-height: 1.5 !important;
    letter-spacing: 0.12em !important;
    word-spacing: 0.16em !important;
}
p { margin-block-end: 2em !important; }"""

RICH_ANSWER = """A *lighthouse* keeper counts ships.

```python
def count(ships: list[str]) -> int:
    return len(ships)  # all of them
```

| Ship | Length |
|---|---:|
| Aurora | 31 m |

The mean is $$\\bar{x} = \\frac{1}{n} \\sum_i x_i$$, with [its source](https://example.org)."""

# Names of what begins to move from now on: animations, and properties in a transition.
NOTE_MOVES = """() => {
    window.moves = [];
    for (const kind of ["animationstart", "transitionrun"])
        document.addEventListener(kind, (event) =>
            window.moves.push(event.animationName ?? event.propertyName));
}"""

# Touch targets that are too small; what stands in a line of text may be (WCAG 2.2, 2.5.8).
SMALL_TARGETS = """() => [...document.querySelectorAll("button, select, textarea, summary, nav a")]
    .filter((element) => element.checkVisibility())
    .map((element) => [element, element.getBoundingClientRect()])
    .filter(([, { width, height }]) => width < 40 || height < 40)
    .map(([element]) => element.outerHTML.slice(0, 120))"""


@pytest.fixture
def phone(browser: Browser, service_url: str) -> Iterator[Page]:
    with open_page(browser, service_url, **PHONE) as page:
        yield page


def violations(page: Page) -> list[str]:
    """Return what axe finds, with the elements concerned."""
    if not page.evaluate("'axe' in window"):
        page.add_script_tag(path=AXE)
    found = page.evaluate("axe.run()")["violations"]
    return [f"{each['id']}: {[node['html'] for node in each['nodes']]}" for each in found]


@pytest.mark.skipif(not AXE.exists(), reason="the page's packages are not installed")
@pytest.mark.parametrize("look", LOOKS, ids=LOOK_NAMES)
def test_axe_finds_nothing(browser: Browser, service_url: str, look: dict[str, Any]) -> None:
    # The policy of the page would not let the checker in.
    with open_page(browser, service_url, bypass_csp=True, **look) as page:
        found = {"empty": violations(page)}
        composer(page).evaluate(
            """(field) => {
                const data = new DataTransfer();
                data.items.add(new File(["milk"], "notes.md"));
                const drop = { dataTransfer: data, bubbles: true, cancelable: true };
                field.dispatchEvent(new DragEvent("drop", drop));
            }"""
        )
        expect(page.get_by_role("list", name="Attached")).to_be_visible()
        found["attached"] = violations(page)
        composer(page).fill("What is a library?")
        page.get_by_role("button", name="Send").click()
        expect_phase(page, "streaming|completed")
        stop(page)
        found["answer"] = violations(page)
        said(page).hover()
        page.get_by_role("button", name="Edit", exact=True).first.click()
        found["editor"] = violations(page)
        page.keyboard.press("Escape")
        show_list(page)
        found["list"] = violations(page)
        page.get_by_role("button", name=re.compile("^More for")).first.click()
        found["menu"] = violations(page)
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Settings").click()
        expect(page.get_by_label("Language")).to_be_visible()
        found["settings"] = violations(page)
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Inspector").click()
        found["inspector"] = violations(page)
    with open_login(browser, service_url, bypass_csp=True, **look) as page:
        found["login"] = violations(page)

    assert {state: words for state, words in found.items() if words} == {}


@pytest.mark.skipif(not AXE.exists(), reason="the page's packages are not installed")
@pytest.mark.parametrize("look", LOOKS, ids=LOOK_NAMES)
def test_axe_finds_nothing_where_there_is_something_to_show(
    browser: Browser, service_url: str, look: dict[str, Any]
) -> None:
    conversation = import_rich_answer(service_url)
    with open_page(browser, service_url, bypass_csp=True, **look) as page:
        composer(page).fill("What is a lighthouse?")  # leaves something in the cache
        page.get_by_role("button", name="Send").click()
        expect_phase(page, "streaming|completed")
        stop(page)
        page.goto(f"/#/c/{conversation}")
        expect(page.locator("math").first).to_be_visible()
        expect(page.get_by_role("table")).to_be_visible()
        expect(page.locator("pre [class^=code-]").first).to_be_visible()
        found = {"rich answer": violations(page)}
        show_list(page)
        page.get_by_role("searchbox", name="Search").fill("lighthouse")
        expect(page.get_by_role("region", name="Found").locator("mark").first).to_be_visible()
        found["search"] = violations(page)
        page.get_by_role("searchbox", name="Search").fill("")
        page.get_by_role("link", name="Cache view").click()
        expect(page.get_by_role("treeitem").first).to_be_visible()
        found["cache"] = violations(page)
        show_list(page)
        page.get_by_role("link", name="Operation").click()
        expect(page.get_by_role("row").filter(has_text="default")).to_be_visible()
        found["operation"] = violations(page)
        page.locator("body").press("?")
        expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
        found["keys"] = violations(page)

    assert {state: words for state, words in found.items() if words} == {}


def import_rich_answer(service_url: str) -> str:
    """Store a conversation whose answer has code, a table and mathematics; return its id."""
    question = {"id": "q", "parent_id": None, "role": "user", "text": "Count the ships."}
    answer = {"id": "a", "parent_id": "q", "role": "assistant", "text": RICH_ANSWER}
    items = [{**item, "created_at": 1_767_225_600} for item in (question, answer)]
    conversation = {
        "id": "conv_ships",
        "title": "Ships",
        "created_at": 1_767_225_600,
        "updated_at": 1_767_225_600,
        "items": items,
    }
    document = {"object": "chatserve.conversations", "format": 1, "conversations": [conversation]}
    response = httpx.post(f"{service_url}/v1/chatserve/conversations/import", json=document)
    assert response.status_code in (200, 201), response.text
    (conversation_id,) = response.json()["conversation_ids"]
    return str(conversation_id)


def show_list(page: Page) -> None:
    navigation = page.get_by_role("navigation", name="Conversations")
    if navigation.count() == 0:
        page.get_by_role("button", name="Show conversations").click()
    expect(navigation).to_be_visible()


def test_tab_reaches_everything_in_the_order_of_reading(page: Page) -> None:
    say(page, "Hello")
    names = focused_names(page)

    wanted = ["New chat", "Search", "Export all", "Import", "Settings", "Inspector", "Transcript"]
    wanted += ["Edit", "Copy message", "Delete", "Regenerate", "Copy answer", "Message"]
    places = [names.index(name) for name in wanted]
    assert places == sorted(places)
    assert any(name.startswith("More for") for name in names)


def focused_names(page: Page) -> list[str]:
    """Return what Tab passes from the beginning of the page to its end."""
    rounds: list[list[str]] = [[]]
    while len(rounds) < 3 and sum(map(len, rounds)) < 200:
        page.keyboard.press("Tab")
        name = page.evaluate(
            """() => {
                const element = document.activeElement;
                return element === document.body ? null :
                    element.getAttribute("aria-label") ?? element.textContent.trim();
            }"""
        )
        if name is None:
            rounds.append([])
        else:
            rounds[-1].append(name)
    return rounds[1]


def test_a_screen_reader_hears_beginning_and_end_and_no_tokens(page: Page) -> None:
    page.evaluate(
        """() => {
            window.heard = [];
            const region = document.querySelector("main > [role=status]");
            const changes = new MutationObserver(() => window.heard.push(region.textContent));
            changes.observe(region, { characterData: true, childList: true, subtree: true });
        }"""
    )
    send(page, "Write a very long story about a river.")
    expect_phase(page, "streaming")
    still = page.get_by_role("status").filter(has_text="Still writing")
    expect(still).to_have_count(1, timeout=ANSWER_MS)
    stop(page)

    expect(
        page.get_by_role("status").filter(has_text=re.compile("Answer (stop|fin)"))
    ).to_have_count(1)
    assert page.get_by_role("log").get_attribute("aria-live") == "off"
    heard = [words for words in page.evaluate("window.heard") if words != ""]
    assert heard[0] == "Answer started"
    assert len(heard) <= 5


def test_the_focus_stays_where_the_reader_goes_on(page: Page) -> None:
    page.get_by_role("button", name=re.compile("rainy afternoon")).click()
    expect_phase(page, "streaming|completed")
    expect(composer(page)).to_be_focused()
    stop(page)

    composer(page).fill("And another one?")
    page.get_by_role("button", name="Send").click()
    expect(composer(page)).to_be_focused()
    expect_phase(page, "streaming|completed")
    stop(page)

    page.get_by_role("button", name="Edit", exact=True).last.click()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Edit", exact=True).last).to_be_focused()
    page.get_by_role("button", name="Delete", exact=True).last.click()
    expect(composer(page)).to_be_focused()


def test_on_a_phone_the_panels_are_sheets(phone: Page) -> None:
    say_by_touch(phone, "Hello")
    navigation = phone.get_by_role("navigation", name="Conversations")
    expect(navigation).to_have_count(0)

    show_list(phone)
    phone.keyboard.press("Escape")
    expect(navigation).to_have_count(0)
    show_list(phone)
    phone.touchscreen.tap(350, 400)
    expect(navigation).to_have_count(0)
    show_list(phone)
    swipe(phone, 250, 40)
    expect(navigation).to_have_count(0)
    show_list(phone)
    phone.get_by_role("button", name="New chat").click()
    expect(navigation).to_have_count(0)
    expect(said(phone)).to_have_count(0)

    phone.get_by_role("button", name="Inspector").click()
    expect(phone.get_by_role("dialog", name="Inspector")).to_be_visible()
    phone.keyboard.press("Escape")
    expect(phone.get_by_role("dialog")).to_have_count(0)


def say_by_touch(page: Page, text: str) -> None:
    composer(page).fill(text)
    page.get_by_role("button", name="Send").tap()
    expect_phase(page, "streaming|completed")
    stop(page)


def swipe(page: Page, from_x: int, to_x: int) -> None:
    devtools = page.context.new_cdp_session(page)
    for kind, x in (("touchStart", from_x), ("touchMove", to_x)):
        devtools.send(
            "Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": 500}]}
        )
    devtools.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_on_a_phone_everything_can_be_hit_with_a_finger_and_enter_makes_a_line(
    phone: Page,
) -> None:
    composer(phone).press_sequentially("one")
    composer(phone).press("Enter")
    expect(composer(phone)).to_have_value("one\n")
    small = phone.evaluate(SMALL_TARGETS)
    say_by_touch(phone, "Hello")
    small += phone.evaluate(SMALL_TARGETS)
    show_list(phone)
    small += phone.evaluate(SMALL_TARGETS)
    phone.get_by_role("button", name="Settings").click()
    expect(phone.get_by_label("Language")).to_be_visible()
    small += phone.evaluate(SMALL_TARGETS)

    assert small == []


@pytest.mark.parametrize("width", [320, 360, 640, 800])
def test_no_width_makes_the_page_scroll_sideways(page: Page, width: int) -> None:
    """320 CSS pixels are what is left of 1280 at 400 %, and 640 at 200 %."""
    say(page, "Hello")
    page.set_viewport_size({"width": width, "height": 600})
    overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    expect(composer(page)).to_be_in_viewport(ratio=1)

    assert overflow <= 0


def test_spaced_text_stays_whole(browser: Browser, service_url: str) -> None:
    with open_page(browser, service_url, bypass_csp=True) as page:
        say(page, "Hello")
        page.add_style_tag(content=SPACED_TEXT)
        page.set_viewport_size({"width": 640, "height": 600})

        # A long title ends in dots at any spacing, and stands in full in the list.
        cut = page.evaluate(
            """() => [...document.querySelectorAll("main :not(h1, .visually-hidden)")]
                .filter((element) => element.checkVisibility() &&
                    getComputedStyle(element).overflowX !== "visible" &&
                    element.scrollWidth > element.clientWidth + 1)
                .map((element) => element.outerHTML.slice(0, 120))"""
        )
        assert cut == []


def test_right_to_left_text_runs_from_the_right(page: Page) -> None:
    say(page, "مرحبا، ما هي المكتبة؟")

    assert said(page).evaluate("(message) => message.firstElementChild.matches(':dir(rtl)')")
    page.evaluate("document.documentElement.dir = 'rtl'")
    rail = page.locator(".rail").bounding_box()
    overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert rail is not None
    assert rail["x"] > 600
    assert overflow <= 0


def test_in_colours_of_the_reader_the_bar_still_shows_two(
    browser: Browser, service_url: str
) -> None:
    with open_page(browser, service_url, forced_colors="active") as page:
        say(page, "Hello")

        fills = page.evaluate(
            """() => [...document.querySelectorAll(".cache-bar rect")]
                .map((part) => getComputedStyle(part).fill)"""
        )
        assert len(set(fills)) == 2


def test_nothing_moves_where_that_is_not_wanted(browser: Browser, service_url: str) -> None:
    def moves(page: Page) -> list[str]:
        send(page, "Write a very long story about a river.")
        expect_phase(page, "streaming|completed")
        stop(page)
        names: list[str] = page.evaluate("window.moves")
        return names

    with open_page(browser, service_url) as page:
        page.evaluate(NOTE_MOVES)
        assert "breathe" in moves(page)
    with open_page(browser, service_url, reduced_motion="reduce") as page:
        page.evaluate(NOTE_MOVES)
        assert moves(page) == []
