"""The page in a real browser, on the real service and model."""

import re
from pathlib import Path
from typing import Any

import pytest
from e2e.archive import conversation, import_conversations, message
from e2e.chat_page import (
    UNDO_MS,
    actions_of_last_said,
    begin_chat,
    composer,
    copied_text,
    delete_conversation,
    expect_as_stored,
    expect_longer,
    expect_phase,
    last_answer,
    let_it_begin,
    list_link,
    new_answer,
    open_menu,
    retime,
    said,
    say,
    send,
    set_fields,
    short,
    shown_text,
    stop,
    stored_so_far,
    stored_text,
)
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.needs_program("chromium")

WIDTH = "(element) => element.getBoundingClientRect().width"
LONG_MS = 20_000  # generous: what is bounded is that it never hangs

SYSTEM = (
    "You are a friendly librarian who answers in one or two short sentences. You know every book "
    "of the house, and where it stands, and you never send anybody away without one."
)


def test_a_chat_streams_and_shows_what_was_cached(page: Page) -> None:
    begin_chat(page, short())
    page.get_by_role("button", name="Add a system prompt").click()
    expect(page.get_by_role("textbox", name="System prompt")).to_be_focused()
    page.get_by_role("textbox", name="System prompt").fill(SYSTEM)
    send(page, "What is a library card?")
    expect_phase(page, "cut")
    send(page, "And what does it cost?")
    expect_phase(page, "cut")

    figures = last_answer(page).get_by_role("group", name="Figures")
    words = figures.locator(".cached-tokens").inner_text()
    found = re.fullmatch(r"([\d,]+) of ([\d,]+) prompt tokens cached", words)
    assert found, words
    num_cached, num_prompt = (int(number.replace(",", "")) for number in found.groups())
    assert num_prompt / 2 < num_cached < num_prompt
    expect(figures.locator(".ttft")).to_contain_text("TTFT")
    expect(figures).to_have_attribute("title", re.compile("Time to first token"))
    expect(last_answer(page).locator(".ending")).to_have_text("cut at 8 tokens")
    expect_as_stored(page)


def test_the_figures_of_an_answer_are_those_of_its_response(page: Page) -> None:
    begin_chat(page, short())
    send(page, "What is a library card? " * 10)
    expect_phase(page, "cut")
    send(page, "And what does it cost?")
    expect_phase(page, "cut")

    for moment in ("at its end", "after a reload"):
        figures = last_answer(page).get_by_role("group", name="Figures")
        response = last_response(page)
        usage, timings = response["usage"], response["chatserve:timings"]
        num_cached = usage["input_tokens_details"]["cached_tokens"]
        words = [f"{num_cached} of {usage['input_tokens']} prompt tokens cached"]
        if timings["queue_ms"] >= 0.5:
            words.append(f"queue {duration(page, timings['queue_ms'])}")
        words.append(f"TTFT {duration(page, timings['ttft_ms'])}")
        rate = timings["tok_s"]
        words.append(f"{number(page, rate, 1 if rate < 10 else 0)} tokens/s")
        shown = figures.locator("span:not(.cache-share, .visually-hidden)")
        expect(shown).to_have_text(words)
        computed, cached = (figures.locator(f"rect.{part}") for part in ("computed", "cached"))
        share = cached.evaluate(WIDTH) / computed.evaluate(WIDTH)
        assert share == pytest.approx(num_cached / usage["input_tokens"], abs=0.01), moment
        page.reload()


def last_response(page: Page) -> dict[str, Any]:
    """Return the response that the last answer is, as the server has it."""
    items = page.request.get(
        f"/v1/conversations/{page.url.rpartition('/')[2]}/items",
        params={"order": "desc", "limit": "1"},
    )
    (item,) = items.json()["data"]
    response: dict[str, Any] = page.request.get(
        f"/v1/responses/{item['chatserve:response_id']}"
    ).json()
    return response


def duration(page: Page, ms: float) -> str:
    return f"{number(page, ms, 0)} ms" if ms < 1_000 else f"{number(page, ms / 1_000, 1)} s"


def number(page: Page, value: float, num_digits: int) -> str:
    """Return a number as readers of English write it."""
    digits = {"maximumFractionDigits": num_digits}
    script = "([value, digits]) => new Intl.NumberFormat('en', digits).format(value)"
    words: str = page.evaluate(script, [value, digits])
    return words


def test_an_answer_comes_to_its_own_end(page: Page) -> None:
    begin_chat(page, {"max_output_tokens": 500, "min_tokens": 3})
    page.keyboard.press("Control+.")
    page.get_by_role("textbox", name="Stop at", exact=True).fill(" ")
    send(page, "Name all the colours of the rainbow.")

    expect_phase(page, "completed")
    expect_as_stored(page)
    # A token has one blank at most, and after the third one a blank is the end.
    assert stored_text(page).count(" ") <= 3
    expect(page.get_by_role("button", name="Continue")).to_have_count(0)


def test_stop_ends_an_answer_and_keeps_what_was_said(page: Page) -> None:
    send(page, "Write a very long story about a river.")
    let_it_begin(page)

    page.get_by_role("button", name="Stop").click()

    expect_phase(page, "stopped")
    expect_as_stored(page)
    text = copied_text(page)
    page.reload()
    expect_phase(page, "stopped")
    assert copied_text(page) == text
    expect(page.get_by_role("button", name="Send")).to_be_visible()


def test_a_reload_in_the_middle_of_an_answer_loses_nothing(page: Page) -> None:
    send(page, "Explain in many words how bread is made.")
    expect(last_answer(page)).to_contain_text(re.compile(r"(\S+\s+){12}"))
    shown, begun = shown_text(page), stored_so_far(page)

    page.reload()
    let_it_begin(page)
    expect_phase(page, "streaming")
    expect_longer(page, shown)
    stop(page)

    expect_phase(page, "stopped")
    expect_as_stored(page)
    assert stored_text(page).startswith(begun)
    expect(page.get_by_role("article", name="Answer")).to_have_count(1)


def test_conversations_are_listed_opened_by_their_link_and_deleted(page: Page) -> None:
    say(page, "Name the colour of fresh snow.")
    address = page.url
    page.get_by_role("button", name="New chat").click()
    expect(page.get_by_role("article", name="Answer")).to_have_count(0)

    page.goto(address)
    expect(said(page)).to_contain_text("fresh snow")

    with page.expect_response(lambda reply: reply.request.method == "DELETE"):
        delete_conversation(page, "colour of fresh snow", undo_ms=100)
    page.goto("/")
    expect(page.get_by_text("Conversations appear here.")).to_be_visible()
    expect(list_link(page, "colour of fresh snow")).to_have_count(0)


def test_a_deleted_conversation_can_be_had_back(page: Page) -> None:
    say(page, "Name the colour of a ripe lemon.")

    delete_conversation(page, "ripe lemon")
    expect(list_link(page, "ripe lemon")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()

    list_link(page, "ripe lemon").click()
    expect(said(page)).to_contain_text("ripe lemon")


def test_undo_is_within_reach_beside_a_title_of_one_long_word(page: Page, service_url: str) -> None:
    title = f"sky{'y' * 197}"
    messages = [message("user", "Name the colour of a clear sky.")]
    (session_id,) = import_conversations(service_url, [conversation(title, messages)])
    page.goto(f"/#/c/{session_id}")
    page.reload()

    delete_conversation(page, title)

    expect(page.get_by_role("button", name="Undo")).to_be_in_viewport(ratio=1)
    page.get_by_role("button", name="Undo").click()
    expect(list_link(page, title)).to_be_visible()


def test_conversations_are_found_renamed_and_pinned(page: Page, service_url: str) -> None:
    question = "Name the colour of a zebra crossing."
    messages = [message("user", question), message("assistant", "Black and white.")]
    (session_id,) = import_conversations(service_url, [conversation(question, messages)])
    page.goto(f"/#/c/{session_id}")
    page.reload()

    open_menu(page, "zebra crossing").get_by_role("button", name="Rename").click()
    page.get_by_role("textbox", name="Rename").fill("Stripes")
    page.get_by_role("textbox", name="Rename").press("Enter")
    expect(page.get_by_role("heading", name="Stripes")).to_be_visible()
    open_menu(page, "Stripes").get_by_role("button", name="Pin", exact=True).click()
    pinned = page.get_by_role("region", name="Pinned")
    expect(pinned.get_by_role("link", name="Stripes")).to_be_visible()

    page.get_by_role("button", name="New chat").click()
    page.get_by_role("searchbox", name="Search").fill("a zebra crossing")
    found = page.get_by_role("region", name="Found")
    found.get_by_role("link", name=re.compile("Name the colour")).click()

    expect(page.get_by_role("heading", name="Stripes")).to_be_visible()
    expect(said(page)).to_be_in_viewport()


def test_conversations_move_by_export_and_import(page: Page, tmp_path: Path) -> None:
    say(page, "Name the colour of a moving van.")

    with page.expect_download() as download:
        page.get_by_role("link", name="Export all").click()
    archive = tmp_path / "chatserve.json"
    download.value.save_as(archive)
    conversations = page.get_by_role("navigation", name="Conversations")
    import_field = conversations.get_by_label("Import")
    import_field.set_input_files(archive)

    expect(conversations.get_by_text(re.compile("there already"))).to_be_visible()
    expect(list_link(page, "moving van")).to_have_count(1)
    with page.expect_response(lambda reply: reply.request.method == "DELETE"):
        delete_conversation(page, "moving van", undo_ms=100)
    page.reload()
    expect(list_link(page, "moving van")).to_have_count(0)
    import_field.set_input_files(archive)
    expect(conversations.get_by_text(re.compile(r"conversations? imported"))).to_be_visible()
    expect(list_link(page, "moving van")).to_have_count(1)
    import_field.set_input_files(
        {"name": "x.json", "mimeType": "application/json", "buffer": b"[1, 2"}
    )
    expect(conversations.get_by_text("Nothing was imported.")).to_be_visible()


def test_a_conversation_of_500_long_messages_is_opened_written_to_and_read(
    page: Page, service_url: str
) -> None:
    page.set_default_timeout(LONG_MS)
    page.goto(f"/#/c/{import_long_conversation(service_url, num_messages=500)}")

    expect(page.get_by_text("The end of 499.")).to_be_in_viewport(timeout=LONG_MS)
    composer(page).press_sequentially("Are you there?")
    expect(composer(page)).to_have_value("Are you there?")
    num_drawn = said(page).count()
    assert num_drawn < 100
    last_answer(page).hover()
    page.mouse.wheel(0, -1_000_000)

    earlier = page.get_by_text(f"The end of {499 - 2 * num_drawn}.")
    expect(earlier).to_be_attached(timeout=LONG_MS)


def import_long_conversation(service_url: str, *, num_messages: int) -> str:
    """Store messages of 2 kB, each after the one before; return the conversation's id."""
    messages = [
        message(
            "assistant" if number % 2 else "user",
            f"{number}\n\n{'One **more** word. ' * 110}\n\nThe end of {number}.",
        )
        for number in range(num_messages)
    ]
    (session_id,) = import_conversations(service_url, [conversation("Long", messages)])
    return session_id


def test_a_message_said_otherwise_begins_a_branch(page: Page) -> None:
    say(page, "What is a lake?")
    actions_of_last_said(page).get_by_role("button", name="Edit").click()
    editor = page.get_by_role("textbox", name="Edit your message")
    editor.fill("What is a river?")
    with new_answer(page):
        editor.press("Control+Enter")
    let_it_begin(page)
    stop(page)

    branches = page.get_by_role("group", name="Versions")
    expect(branches).to_have_text("2/2")
    expect(said(page)).to_have_text("What is a river?")
    branches.get_by_role("button", name="Previous version").click()
    expect(said(page)).to_have_text("What is a lake?")
    page.reload()
    expect(said(page)).to_have_text("What is a river?")


def test_an_answer_is_made_anew_next_to_the_old_one(page: Page) -> None:
    say(page, "Invent a name for a boat.")
    first = copied_text(page)

    with new_answer(page):
        page.get_by_role("button", name="Regenerate").click()
    let_it_begin(page)
    stop(page)

    expect(said(page)).to_have_count(1)
    expect_as_stored(page)
    branches = page.get_by_role("group", name="Versions")
    expect(branches).to_have_text("2/2")
    branches.get_by_role("button", name="Previous version").click()
    expect(branches).to_have_text("1/2")
    assert copied_text(page) == first


def test_an_answer_that_was_cut_goes_on_where_it_stood(page: Page) -> None:
    begin_chat(page, short(8))
    send(page, "Write a very long story about a mountain.")
    expect(last_answer(page).locator(".ending")).to_have_text("cut at 8 tokens")
    begun = copied_text(page)

    set_fields(page, short(12))
    page.get_by_role("button", name="Continue").click()
    expect(last_answer(page).locator(".ending")).to_have_text("cut at 12 tokens")

    whole = copied_text(page)
    assert whole.startswith(begun)
    assert whole.endswith(stored_text(page))
    assert len(whole) > len(begun)
    expect(page.get_by_role("article", name="Answer")).to_have_count(1)
    page.reload()
    expect_phase(page, "cut")
    assert copied_text(page) == whole


def test_a_stopped_answer_goes_on_until_it_is_stopped_again(page: Page) -> None:
    say(page, "Write a very long story about a mountain.")
    expect_phase(page, "stopped")
    begun = copied_text(page)

    page.get_by_role("button", name="Continue").click()
    expect_phase(page, "streaming")
    page.get_by_role("button", name="Stop").click()
    expect_phase(page, "stopped")

    assert copied_text(page).startswith(begun)
    expect(page.get_by_role("article", name="Answer")).to_have_count(1)


def test_a_deleted_message_takes_what_follows_with_it(page: Page) -> None:
    say(page, "Name a tree.")
    say(page, "Name a flower.")

    retime(page, {UNDO_MS: 60_000})
    actions_of_last_said(page).get_by_role("button", name="Delete").click()
    expect(page.get_by_text("2 messages deleted.")).to_be_visible()
    expect(said(page)).to_have_count(1)
    page.get_by_role("button", name="Undo").click()
    expect(said(page)).to_have_count(2)

    retime(page, {60_000: 500, UNDO_MS: 500})
    with page.expect_response(lambda reply: reply.request.method == "DELETE"):
        actions_of_last_said(page).get_by_role("button", name="Delete").click()
    page.reload()

    expect(said(page)).to_have_text("Name a tree.")


def test_what_the_user_types_is_never_markup(page: Page) -> None:
    say(page, "<img src=x onerror=alert(1)><script>alert(2)</script> **bold**")

    question = said(page).last

    expect(question).to_contain_text("<img src=x onerror=alert(1)>")
    assert question.locator("img, script").count() == 0
