"""Whether axe, which knows many rules of accessible pages, finds any broken in any state of ours.

It is let in by the tool that drives the browser, past the policy of the page, which stays in force
for the page itself.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from e2e.archive import conversation, import_conversations, message
from e2e.chat_page import (
    LONG,
    PHONE,
    actions_of_last_said,
    composer,
    last_answer,
    open_login,
    open_page,
    say_by_button,
    show_list,
)
from playwright.sync_api import Browser, Page, expect

WEB = Path(__file__).parents[2] / "web"
AXE = WEB / "node_modules/axe-core/axe.min.js"

pytestmark = [
    pytest.mark.needs_program("chromium"),
    pytest.mark.skipif(not AXE.exists(), reason="the page's packages are not installed"),
]

# Colours in the middle of a change are neither those before nor those after it.
STILL: dict[str, Any] = {"reduced_motion": "reduce"}
LOOKS: list[dict[str, Any]] = [
    {"color_scheme": "light", **STILL},
    {"color_scheme": "dark", **STILL},
    {"color_scheme": "light", **STILL, **PHONE},
    {"color_scheme": "dark", **STILL, **PHONE},
]
LOOK_NAMES = ["light", "dark", "light phone", "dark phone"]
RICH_ANSWER = """A *lighthouse* keeper counts ships.

```python
def count(ships: list[str]) -> int:
    return len(ships)  # all of them
```

| Ship | Length |
|---|---:|
| Aurora | 31 m |

The mean is $$\\bar{x} = \\frac{1}{n} \\sum_i x_i$$, with [its source](https://example.org)."""
QUESTION = "Count the ships."
RTL_QUESTION = "عدّ السفن."
RTL_ANSWER = """حارس *المنارة* يعدّ السفن.

```python
print(len(ships))
```

| السفينة | الطول |
|---|---:|
| أورورا | 31 |

- الأولى
- الثانية، و[مصدرها](https://example.org)"""

WORDS: dict[str, dict[str, str]] = {
    language: json.loads((WEB / f"src/i18n/{language}.json").read_text())
    for language in ("de", "ja", "zh")
}
SPEAK = """(language) =>
    localStorage.setItem("chatserve:settings", JSON.stringify({ language }))"""


def violations(page: Page, look: dict[str, Any] | None = None) -> list[str]:
    """Return what axe finds, with the elements concerned; a dark page differs in its colours."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())
    is_dark = look is not None and look["color_scheme"] == "dark"
    options = {"runOnly": ["color-contrast"]} if is_dark else {}
    found = page.evaluate("(options) => axe.run(options)", options)["violations"]
    return [f"{each['id']}: {[node['html'] for node in each['nodes']]}" for each in found]


@pytest.mark.parametrize("look", LOOKS, ids=LOOK_NAMES)
def test_axe_finds_nothing(browser: Browser, service_url: str, look: dict[str, Any]) -> None:
    with open_page(browser, service_url, answers=LONG, **look) as page:
        found = {"empty": violations(page, look)}
        composer(page).evaluate(
            """(field) => {
                const data = new DataTransfer();
                data.items.add(new File(["milk"], "notes.md"));
                const drop = { dataTransfer: data, bubbles: true, cancelable: true };
                field.dispatchEvent(new DragEvent("drop", drop));
            }"""
        )
        expect(page.get_by_role("list", name="Attached")).to_be_visible()
        found["attached"] = violations(page, look)
        say_by_button(page, "What is a library?")
        found["answer"] = violations(page, look)
        actions_of_last_said(page).get_by_role("button", name="Edit").click()
        expect(page.get_by_role("textbox", name="Edit your message")).to_be_visible()
        found["editor"] = violations(page, look)
        page.keyboard.press("Escape")
        show_list(page)
        found["list"] = violations(page, look)
        page.get_by_role("button", name=re.compile("^More for")).click()
        expect(page.get_by_role("button", name="Rename")).to_be_visible()
        found["menu"] = violations(page, look)
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Settings").click()
        expect(page.get_by_label("Language")).to_be_visible()
        found["settings"] = violations(page, look)
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Inspector").click()
        expect(page.get_by_role("textbox", name="Temperature")).to_be_visible()
        found["inspector"] = violations(page, look)
    with open_login(browser, service_url, **look) as page:
        found["login"] = violations(page, look)

    assert {state: words for state, words in found.items() if words} == {}


@pytest.mark.parametrize("look", LOOKS, ids=LOOK_NAMES)
def test_axe_finds_nothing_where_there_is_something_to_show(
    browser: Browser, service_url: str, look: dict[str, Any]
) -> None:
    messages = [message("user", QUESTION), message("assistant", RICH_ANSWER)]
    (session_id,) = import_conversations(service_url, [conversation("Ships", messages)])
    with open_page(browser, service_url, answers=LONG, **look) as page:
        say_by_button(page, "What is a lighthouse?")  # leaves something in the cache
        page.goto(f"/#/c/{session_id}")
        expect(page.locator("math").first).to_be_visible()
        expect(page.get_by_role("table")).to_be_visible()
        expect(page.locator("pre [class^=code-]").first).to_be_visible()
        found = {"rich answer": violations(page, look)}
        show_list(page)
        page.get_by_role("searchbox", name="Search").fill("lighthouse")
        expect(page.get_by_role("region", name="Found").locator("mark").first).to_be_visible()
        found["search"] = violations(page, look)
        page.get_by_role("searchbox", name="Search").fill("")
        page.get_by_role("link", name="Cache view").click()
        expect(page.get_by_role("treeitem").first).to_be_visible()
        found["cache"] = violations(page, look)
        show_list(page)
        page.get_by_role("link", name="Operation").click()
        expect(page.get_by_role("row").filter(has_text="default")).to_be_visible()
        found["operation"] = violations(page, look)
        page.locator("body").press("?")
        expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
        found["keys"] = violations(page, look)

    assert {state: words for state, words in found.items() if words} == {}


@pytest.mark.parametrize("size", [{}, PHONE], ids=["wide", "phone"])
def test_axe_finds_nothing_in_other_languages(
    browser: Browser, service_url: str, size: dict[str, Any]
) -> None:
    (session_id,) = import_conversations(service_url, [long_conversation()])
    found: dict[str, list[str]] = {}
    with open_page(browser, service_url, **STILL, **size) as page:
        for language, words in WORDS.items():
            page.evaluate(SPEAK, language)
            page.goto("about:blank")
            page.goto(f"/#/c/{session_id}")
            expect(page.locator("html")).to_have_attribute("lang", language)
            expect(page.locator("table").last).to_be_visible()
            expect(page.locator("math").last).to_be_visible()
            found[f"{language} conversation"] = violations(page)
            page.get_by_role("button", name=words["header.inspector"], exact=True).click()
            expect(page.locator(".parameter").first).to_be_visible()
            found[f"{language} inspector"] = violations(page)
            page.keyboard.press("Escape" if size else "Control+.")
            expect(page.locator(".parameter")).to_have_count(0)
            page.goto("/#/cache")
            expect(page.get_by_role("treeitem").first).to_be_visible()
            found[f"{language} cache"] = violations(page)
            page.goto("/#/operator")
            expect(page.get_by_role("row").filter(has_text="default")).to_be_visible()
            if size:
                page.get_by_role("button", name=words["header.menu"]).click()
            page.get_by_role("button", name=words["header.settings"]).click()
            expect(page.get_by_label(words["settings.language"])).to_be_visible()
            found[f"{language} settings over operation"] = violations(page)
            page.keyboard.press("Escape")
            expect(page.get_by_role("dialog", name=words["header.settings"])).to_have_count(0)
            found[f"{language} operation"] = violations(page)
    with open_login(browser, service_url, **STILL, **size) as page:
        for language, words in WORDS.items():
            page.evaluate(SPEAK, language)
            page.reload()
            expect(page.get_by_label(words["login.key"])).to_be_visible()
            found[f"{language} login"] = violations(page)

    assert {state: words for state, words in found.items() if words} == {}


def test_axe_finds_nothing_in_a_long_conversation_from_right_to_left(
    browser: Browser, service_url: str
) -> None:
    (session_id,) = import_conversations(service_url, [long_conversation(RTL_QUESTION, RTL_ANSWER)])
    with open_page(browser, service_url, **STILL) as page:
        page.goto(f"/#/c/{session_id}")
        page.evaluate("document.documentElement.dir = 'rtl'")
        answer = last_answer(page).locator(".markdown")
        expect(answer.locator("table")).to_be_visible()

        assert answer.evaluate("(text) => text.matches(':dir(rtl)')")
        assert answer.locator("pre").evaluate("(code) => code.matches(':dir(ltr)')")
        assert violations(page) == []


def long_conversation(question: str = QUESTION, answer: str = RICH_ANSWER) -> dict[str, Any]:
    turn = [message("user", question), message("assistant", answer)]
    return conversation(question, turn * 60)


def test_axe_would_find_what_is_wrong(page: Page) -> None:
    page.evaluate(
        """() => {
            const button = document.createElement("button");
            document.querySelector("main").append(button);
        }"""
    )
    assert any(words.startswith("button-name") for words in violations(page))
