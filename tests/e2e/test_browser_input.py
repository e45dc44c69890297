"""What the reader types, pastes, drops and presses, in a real browser."""

import re

import pytest
from e2e.chat_page import (
    actions_of_last_said,
    composer,
    expect_phase,
    last_answer,
    let_it_begin,
    list_link,
    new_answer,
    open_login,
    open_menu,
    said,
    say,
    send,
    stop,
)
from playwright.sync_api import Browser, Locator, Page, expect

pytestmark = pytest.mark.needs_program("chromium")

# Of computing, whatever else the machine does meanwhile.
KEY_S = 0.05
KEYS_S = 4

LONG_TEXT = "\n".join(
    f"line {number} of a text that was copied somewhere" for number in range(20_000)
)

PASTE = """(field, text) => {
    const data = new DataTransfer();
    data.setData("text/plain", text);
    const paste = { clipboardData: data, bubbles: true, cancelable: true };
    if (field.dispatchEvent(new ClipboardEvent("paste", paste))) field.value += text;
}"""

DROP = """(field, files) => {
    const data = new DataTransfer();
    for (const [name, bytes] of files) data.items.add(new File([new Uint8Array(bytes)], name));
    const drop = { dataTransfer: data, bubbles: true, cancelable: true };
    field.dispatchEvent(new DragEvent("dragover", drop));
    field.dispatchEvent(new DragEvent("drop", drop));
}"""

# The orders in which browsers report an Enter that commits a composition; true if its default was
# prevented, as where the Enter would send a form by itself.
COMMIT = {
    "Chromium": """(field, more) => {
        const enter = { key: "Enter", keyCode: 229, isComposing: true, bubbles: true, ...more };
        field.dispatchEvent(new CompositionEvent("compositionstart", { bubbles: true }));
        const isOpen = field.dispatchEvent(
            new KeyboardEvent("keydown", { ...enter, cancelable: true }));
        field.dispatchEvent(new CompositionEvent("compositionend", { bubbles: true }));
        return !isOpen;
    }""",
    "Safari": """(field, more) => {
        const enter = { key: "Enter", keyCode: 229, bubbles: true, ...more };
        field.dispatchEvent(new CompositionEvent("compositionstart", { bubbles: true }));
        field.dispatchEvent(new CompositionEvent("compositionend", { bubbles: true }));
        return !field.dispatchEvent(new KeyboardEvent("keydown", { ...enter, cancelable: true }));
    }""",
    "Safari, with an ordinary code": """(field, more) => {
        const enter = { key: "Enter", keyCode: 13, bubbles: true, ...more };
        field.dispatchEvent(new CompositionEvent("compositionstart", { bubbles: true }));
        field.dispatchEvent(new CompositionEvent("compositionend", { bubbles: true }));
        return !field.dispatchEvent(new KeyboardEvent("keydown", { ...enter, cancelable: true }));
    }""",
}

# Changes of the address, each told at once; what is drawn for it comes later.
COUNT_MOVES = """() => {
    window.numMoves = 0;
    navigation.addEventListener("navigate", () => { window.numMoves += 1; });
}"""


def commit(field: Locator, order: str, **modifiers: bool) -> bool:
    prevented: bool = field.evaluate(COMMIT[order], modifiers)
    return prevented


def test_a_word_is_composed_before_anything_is_sent(page: Page) -> None:
    devtools = page.context.new_cdp_session(page)
    composer(page).focus()
    devtools.send(
        "Input.imeSetComposition", {"text": "にほん", "selectionStart": 3, "selectionEnd": 3}
    )
    key = {"type": "rawKeyDown", "key": "Enter", "windowsVirtualKeyCode": 229}
    devtools.send("Input.dispatchKeyEvent", key)
    devtools.send("Input.insertText", {"text": "日本"})

    expect(composer(page)).to_have_value("日本")
    expect(said(page)).to_have_count(0)

    page.wait_for_timeout(100)  # longer than the moment in which Safari's Enter may still come
    page.keyboard.press("Enter")
    expect(said(page)).to_have_text("日本")
    let_it_begin(page)
    stop(page)


@pytest.mark.parametrize("order", COMMIT)
def test_the_first_enter_only_commits_in_every_field(page: Page, order: str) -> None:
    composer(page).fill("日本")
    commit(composer(page), order)
    expect(said(page)).to_have_count(0)
    page.wait_for_timeout(100)
    say(page, "日本")
    expect(said(page)).to_have_count(1)

    page.keyboard.press("ArrowUp")
    editor = page.get_by_role("textbox", name="Edit your message")
    commit(editor, order, ctrlKey=True)
    expect(editor).to_be_visible()
    page.keyboard.press("Escape")

    search = page.get_by_role("searchbox", name="Search")
    search.fill("日本")
    expect(page.get_by_text("Found in")).to_be_visible()
    page.get_by_role("button", name="New chat").click()
    expect(said(page)).to_have_count(0)
    page.evaluate(COUNT_MOVES)
    commit(search, order)
    assert page.evaluate("window.numMoves") == 0
    page.wait_for_timeout(100)
    search.press("Enter")
    expect(said(page)).to_have_text("日本")
    assert page.evaluate("window.numMoves") == 1
    search.press("Escape")

    open_menu(page, "日本").get_by_role("button", name="Rename").click()
    title = page.get_by_role("textbox", name="Rename")
    title.fill("東京")
    commit(title, order)
    expect(title).to_have_value("東京")
    page.wait_for_timeout(100)
    title.press("Enter")
    expect(list_link(page, "東京")).to_be_visible()


@pytest.mark.parametrize("order", COMMIT)
def test_the_first_enter_only_commits_in_the_login(
    browser: Browser, service_url: str, order: str
) -> None:
    with open_login(browser, service_url) as page:
        assert commit(page.get_by_label("Your key"), order)


def test_a_paste_of_twenty_thousand_lines_is_attached_and_typing_stays_fast(page: Page) -> None:
    composer(page).evaluate(PASTE, LONG_TEXT)
    chips = page.get_by_role("list", name="Attached")
    expect(chips).to_contain_text("pasted text")
    expect(chips).to_contain_text("20,000 lines")
    expect(composer(page)).to_have_value("")

    composer(page).focus()
    words = "What do these lines say?"
    assert seconds_computed(composer(page), *words) < len(words) * KEY_S
    expect(composer(page)).to_have_value(words)

    chips.get_by_role("button", name=re.compile("^pasted text")).click()
    dialog = page.get_by_role("dialog", name="pasted text")
    expect(dialog).to_contain_text("line 0 of a text")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    page.get_by_role("button", name="Remove pasted text").click()
    expect(chips).to_have_count(0)
    expect(composer(page)).to_be_focused()


def test_every_field_takes_twenty_thousand_lines_without_a_freeze(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.evaluate("(text) => navigator.clipboard.writeText(text)", LONG_TEXT)

    page.get_by_role("button", name="Add a system prompt").click()
    prompt = page.get_by_role("textbox", name="System prompt")
    assert seconds_computed(prompt, "Control+v", "Control+z", "Control+Shift+z", "x") < KEYS_S
    assert prompt.evaluate("(field) => field.value.length") == len(LONG_TEXT) + 1
    prompt.fill("")

    search = page.get_by_role("searchbox", name="Search")
    assert seconds_computed(search, "Control+v", "x") < KEYS_S
    assert search.evaluate("(field) => field.value.length") == 200
    expect(page.get_by_text("Nothing found")).to_be_visible()


def seconds_computed(field: Locator, *keys: str) -> float:
    """Return how long the page computes until what the keys did is drawn."""
    devtools = field.page.context.new_cdp_session(field.page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def now() -> float:
        metrics = devtools.send("Performance.getMetrics")["metrics"]
        return float({metric["name"]: metric["value"] for metric in metrics}["TaskDuration"])

    field.focus()
    start = now()
    for key in keys:
        field.press(key)
    field.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    return now() - start


def test_a_long_paste_can_become_text_again(page: Page) -> None:
    text = "word\n" * 250
    composer(page).fill("Look: ")
    composer(page).evaluate(PASTE, text)

    page.get_by_role("list", name="Attached").get_by_role("button").first.click()
    page.get_by_role("button", name="Put into the text").click()

    expect(composer(page)).to_have_value("Look: \n" + text)
    expect(page.get_by_role("list", name="Attached")).to_have_count(0)


def test_dropped_text_files_go_with_the_message_and_fold_in_the_transcript(page: Page) -> None:
    notes = [*b"# Notes\nRemember the milk.\n"]
    composer(page).evaluate(DROP, [["notes.md", notes], ["picture.png", [0x89, 0x50, 0x00, 0xFF]]])

    expect(page.get_by_role("list", name="Attached")).to_contain_text("notes.md")
    expect(page.get_by_role("alert")).to_contain_text(["picture.png is not a text file"])

    say(page, "What is in my notes?")
    folded = said(page).locator("details")
    expect(said(page)).to_contain_text("What is in my notes?")
    expect(folded).to_contain_text("2 lines, 27 B")
    expect(said(page)).not_to_contain_text("milk")
    folded.locator("summary").click()
    expect(folded).to_contain_text("Remember the milk.")

    page.reload()
    expect(said(page).locator("details")).to_contain_text("notes.md")
    composer(page).focus()
    page.keyboard.press("ArrowUp")
    editor = page.get_by_role("textbox", name="Edit your message")
    expect(editor).to_have_value("What is in my notes?")
    expect(page.get_by_role("list", name="Attached")).to_contain_text("notes.md")


def test_files_are_chosen_with_a_button(page: Page) -> None:
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Attach text files").click()
    files = [
        {"name": name, "mimeType": "text/plain", "buffer": b"print()\n"}
        for name in ("a.py", "b.py")
    ]
    chooser.value.set_files(files)  # type: ignore[arg-type]

    chips = page.get_by_role("list", name="Attached")
    expect(chips).to_contain_text("a.py")
    expect(chips).to_contain_text("b.py")
    expect(page.get_by_role("button", name="Send")).to_be_enabled()


def test_keys_open_and_close_what_they_name(page: Page) -> None:
    navigation = page.get_by_role("navigation", name="Conversations")
    inspector = page.get_by_role("complementary", name="Inspector")
    page.keyboard.press("Control+b")
    expect(navigation).to_have_count(0)

    page.keyboard.press("Control+k")
    expect(page.get_by_role("searchbox", name="Search")).to_be_focused()

    page.keyboard.press("Control+.")
    expect(inspector).to_be_visible()
    page.keyboard.press("Control+.")
    expect(inspector).to_have_count(0)

    page.keyboard.press("?")
    expect(page.get_by_role("searchbox", name="Search")).to_have_value("?")
    page.get_by_role("button", name="New chat").focus()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_contain_text("Ctrl")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="New chat")).to_be_focused()


def test_escape_does_one_thing_at_a_time(page: Page) -> None:
    say(page, "Hello")
    send(page, "Write a very long story about a river.")
    let_it_begin(page)

    page.get_by_role("button", name="Settings").click()
    expect(page.get_by_role("dialog", name="Settings")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    row = open_menu(page, "Hello")
    expect(row.get_by_role("button", name="Rename")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Rename")).to_have_count(0)
    actions_of_last_said(page).get_by_role("button", name="Edit").click()
    expect(page.get_by_role("textbox", name="Edit your message")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("textbox", name="Edit your message")).to_have_count(0)
    expect_phase(page, "streaming")

    page.keyboard.press("Escape")
    expect_phase(page, "stopped")


def test_versions_change_by_keys_and_a_new_chat_begins(page: Page) -> None:
    say(page, "Name a river.")
    page.keyboard.press("ArrowUp")
    editor = page.get_by_role("textbox", name="Edit your message")
    editor.fill("Name a mountain.")
    with new_answer(page):
        editor.press("Control+Enter")
    expect(said(page)).to_have_text("Name a mountain.")
    expect(composer(page)).to_be_focused()
    let_it_begin(page)
    stop(page)
    address = page.url

    page.keyboard.press("Alt+ArrowLeft")
    expect(said(page)).to_have_text("Name a river.")
    page.keyboard.press("Alt+ArrowLeft")
    expect(said(page)).to_have_text("Name a river.")
    page.keyboard.press("Alt+ArrowRight")
    expect(said(page)).to_have_text("Name a mountain.")
    assert page.url == address

    page.keyboard.press("Control+Shift+o")
    expect(said(page)).to_have_count(0)
    expect(composer(page)).to_be_focused()


def test_choices_take_effect_are_kept_and_can_be_deleted(page: Page) -> None:
    page.get_by_role("button", name="Settings").click()
    settings = page.get_by_role("dialog", name="Settings")
    expect(settings).to_contain_text(re.compile(r"chatserve \d+\.\d+"))
    settings.get_by_label("Enter key").select_option("line")
    settings.get_by_label("Colours").select_option("dark")
    settings.get_by_label("Language").select_option("de")
    expect(page.locator("html")).to_have_attribute("lang", "de")
    page.keyboard.press("Escape")

    page.reload()
    field = page.get_by_role("textbox", name="Nachricht")
    field.press_sequentially("eins")
    field.press("Enter")
    expect(field).to_have_value("eins\n")
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"

    page.get_by_role("button", name="Einstellungen").click()
    page.get_by_role("button", name="Löschen, was").click()
    page.get_by_role("button", name="Jetzt löschen").click()
    expect(page.locator("html")).to_have_attribute("lang", "en")
    expect(composer(page)).to_have_value("")


def test_an_answer_that_runs_never_takes_the_focus(page: Page) -> None:
    send(page, "Write a very long story about a river.")
    expect_phase(page, "streaming")
    page.get_by_role("searchbox", name="Search").focus()

    expect(last_answer(page)).to_contain_text(re.compile(r"(\S+\s+){8}"))
    expect(page.get_by_role("searchbox", name="Search")).to_be_focused()
    page.get_by_role("button", name="Stop").click()
    expect_phase(page, "stopped")
