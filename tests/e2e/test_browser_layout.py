"""Where things stand on the page: at any width, with spaced text, from right to left, unmoved."""

from typing import Any

import pytest
from e2e.archive import conversation, import_conversations, message
from e2e.chat_page import LONG, composer, last_answer, open_page, said, say
from playwright.sync_api import Browser, Page, expect

pytestmark = pytest.mark.needs_program("chromium")

# 320 CSS pixels are what is left of 1280 at 400 %, and 640 at 200 %.
WIDTHS = [320, 360, 640, 800, 1000, 1280]

WORD = "w" + "o" * 250 + "rd"
ROW = "|".join(["", *(f" cell {number} {'x' * 20} " for number in range(12)), ""])
WIDE_ANSWER = f"""# {WORD}

{WORD} and `{WORD}` and [{WORD}](https://example.org/{WORD}) and https://example.org/{WORD}

- one
  - two
    - three
      - {WORD}

> > > {WORD}

{ROW}
{"|".join(["", *["---"] * 12, ""])}
{ROW}

```python
return {" + ".join(f"number_{number}" for number in range(60))}  # all of them
```

$$ {" + ".join(f"x_{{{number}}}" for number in range(60))} $$"""
WIDE_QUESTION = f"""{WORD} مرحبا {WORD}

```md file="{WORD}.md"
{WORD}
```"""

# What lies outside the window and not in a box of its own that scrolls, or that cuts it off.
STICKING_OUT = """() => {
    const isKept = (element) => {
        for (let box = element.parentElement; box !== null; box = box.parentElement) {
            const { left, right } = box.getBoundingClientRect();
            const isBox = getComputedStyle(box).overflowX !== "visible";
            if (isBox && left >= -1 && right <= innerWidth + 1) return true;
        }
        return false;
    };
    // A page that cannot scroll must not cut anything off either.
    const inner = document.querySelectorAll(".transcript, main, nav");
    const frames = [document.documentElement, ...inner];
    const wide = frames.filter((frame) => frame.scrollWidth > frame.clientWidth + 1);
    const out = [...document.body.querySelectorAll("*")].filter((element) => {
        const { left, right, width } = element.getBoundingClientRect();
        const isOut = width > 0 && (left < -1 || right > innerWidth + 1);
        return isOut && element.checkVisibility() && !isKept(element);
    });
    return [...wide, ...out].map((element) => element.outerHTML.slice(0, 120));
}"""

# As the page's own policy allows it: a sheet that no markup holds.
ADD_STYLE = """(rules) => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(rules);
    document.adoptedStyleSheets.push(sheet);
}"""

# What a reader may set for text: WCAG 2.2, 1.4.12.
SPACED_TEXT = """* {
    line-height: 1.5 !important;
    letter-spacing: 0.12em !important;
    word-spacing: 0.16em !important;
}
p { margin-block-end: 2em !important; }"""

# Names of what begins to move from now on: animations, and properties in a transition.
NOTE_MOVES = """() => {
    window.moves = [];
    for (const kind of ["animationstart", "transitionrun"])
        document.addEventListener(kind, (event) =>
            window.moves.push(event.animationName ?? event.propertyName));
}"""


def test_no_width_makes_the_page_scroll_sideways(page: Page, service_url: str) -> None:
    messages = [message("user", WIDE_QUESTION), message("assistant", WIDE_ANSWER)]
    (session_id,) = import_conversations(service_url, [conversation(WORD[:200], messages)])
    page.goto(f"/#/c/{session_id}")
    page.reload()
    expect(last_answer(page).locator("math")).to_be_visible()
    expect(page.locator("pre [class^=code-]").first).to_be_visible()
    data = {"name": f"{WORD[:180]}.txt", "mimeType": "text/plain", "buffer": b"text"}
    page.locator("input[type=file][multiple]").set_input_files(data)  # type: ignore[arg-type]
    expect(page.get_by_role("list", name="Attached")).to_be_visible()
    composer(page).fill(WORD)

    found: dict[str, Any] = {}
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 700})
        expect(composer(page)).to_be_in_viewport(ratio=1)
        for panel in ("none", "list", "inspector"):
            set_panel(page, panel)
            found[f"{width}, {panel}"] = page.evaluate(STICKING_OUT)

    assert {state: elements for state, elements in found.items() if elements} == {}


def set_panel(page: Page, panel: str) -> None:
    """Have one of the two panels open, or none; narrow windows show them as sheets."""
    navigation = page.get_by_role("navigation", name="Conversations")
    inspector = page.get_by_label("Inspector", exact=True).filter(
        has=page.get_by_text("Temperature")
    )
    for name, key, place in (("list", "b", navigation), ("inspector", ".", inspector)):
        is_open = place.count() > 0
        if is_open and page.get_by_role("dialog").count() > 0:
            page.keyboard.press("Escape")
        elif is_open != (name == panel):
            page.keyboard.press(f"Control+{key}")
        expect(place).to_have_count(1 if name == panel else 0)


def test_spaced_text_stays_whole(browser: Browser, service_url: str) -> None:
    messages = [message("user", "Hello"), message("assistant", "**Good** morning to you.")]
    (session_id,) = import_conversations(service_url, [conversation("Hello", messages)])
    with open_page(browser, service_url) as page:
        page.goto(f"/#/c/{session_id}")
        expect(last_answer(page)).to_contain_text("Good morning")
        page.evaluate(ADD_STYLE, SPACED_TEXT)
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
    with open_page(browser, service_url, answers=LONG, forced_colors="active") as page:
        say(page, "Hello")

        fills = page.evaluate(
            """() => [...document.querySelectorAll(".cache-bar rect")]
                .map((part) => getComputedStyle(part).fill)"""
        )
        assert len(set(fills)) == 2


def test_nothing_moves_where_that_is_not_wanted(browser: Browser, service_url: str) -> None:
    def moves(page: Page) -> list[str]:
        say(page, "Write a very long story about a river.")
        names: list[str] = page.evaluate("window.moves")
        return names

    with open_page(browser, service_url, answers=LONG) as page:
        page.evaluate(NOTE_MOVES)
        assert "breathe" in moves(page)
    with open_page(browser, service_url, answers=LONG, reduced_motion="reduce") as page:
        page.evaluate(NOTE_MOVES)
        assert moves(page) == []
