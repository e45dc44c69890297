"""The page in a real browser, on the real service and model."""

import re
from pathlib import Path

import pytest
from e2e.chat_page import (
    composer,
    delete_conversation,
    expect_phase,
    last_answer,
    list_link,
    open_menu,
    said,
    send,
    stop,
)
from playwright.sync_api import Locator, Page, expect

pytestmark = pytest.mark.needs_program("chromium")

LONG_MS = 20_000  # generous: what is bounded is that it never hangs

SYSTEM = "You are a friendly librarian who answers in one or two short sentences."


def let_it_say_something(page: Page) -> Locator:
    """Wait for the last answer's first words, then end it: the model likes to talk for long."""
    expect_phase(page, "streaming|completed")
    expect(last_answer(page).locator(".markdown")).not_to_be_empty()
    stop(page)
    return last_answer(page)


def test_a_chat_streams_and_shows_what_was_cached(page: Page) -> None:
    page.get_by_role("button", name="Add a system prompt").click()
    expect(page.get_by_role("textbox", name="System prompt")).to_be_focused()
    page.get_by_role("textbox", name="System prompt").fill(SYSTEM)
    send(page, "What is a library card?")
    let_it_say_something(page)
    send(page, "And what does it cost?")
    answer = let_it_say_something(page)

    figures = answer.get_by_role("group", name="Figures")
    words = figures.locator(".cached-tokens").inner_text()
    found = re.fullmatch(r"([\d,]+) of ([\d,]+) prompt tokens cached", words)
    assert found, words
    num_cached, num_prompt = (int(number.replace(",", "")) for number in found.groups())
    assert num_prompt / 2 < num_cached < num_prompt
    expect(figures.locator(".ttft")).to_contain_text("TTFT")
    expect(figures).to_have_attribute("title", re.compile("Time to first token"))


def test_stop_ends_an_answer_and_keeps_what_was_said(page: Page) -> None:
    send(page, "Write a very long story about a river.")
    answer = last_answer(page)
    expect_phase(page, "streaming")

    page.get_by_role("button", name="Stop").click()

    expect_phase(page, "stopped")
    text = answer.locator(".markdown").inner_text()
    page.reload()
    expect(last_answer(page).locator(".markdown")).to_have_text(text, use_inner_text=True)
    expect(page.get_by_role("button", name="Send")).to_be_visible()


def test_a_reload_in_the_middle_of_an_answer_loses_nothing(page: Page) -> None:
    send(page, "Explain in many words how bread is made.")
    expect_phase(page, "streaming")
    begun = last_answer(page).locator(".markdown").inner_text()

    page.reload()
    expect_phase(page, "streaming|completed")
    expect(last_answer(page).locator(".markdown")).to_contain_text(begun.strip()[:20])
    let_it_say_something(page)


def test_conversations_are_listed_opened_by_their_link_and_deleted(page: Page) -> None:
    send(page, "Name the colour of fresh snow.")
    let_it_say_something(page)
    address = page.url
    page.get_by_role("button", name="New chat").click()
    expect(page.get_by_role("article", name="Answer")).to_have_count(0)

    page.goto(address)
    expect(page.get_by_role("article", name="You")).to_contain_text("fresh snow")

    delete_conversation(page, "colour of fresh snow")
    expect(list_link(page, "colour of fresh snow")).to_have_count(0)
    page.goto("/")
    expect(list_link(page, "colour of fresh snow")).to_have_count(0)


def test_a_deleted_conversation_can_be_had_back(page: Page) -> None:
    send(page, "Name the colour of a ripe lemon.")
    let_it_say_something(page)

    delete_conversation(page, "ripe lemon")
    expect(list_link(page, "ripe lemon")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()

    list_link(page, "ripe lemon").click()
    expect(page.get_by_role("article", name="You")).to_contain_text("ripe lemon")


def test_undo_is_within_reach_beside_a_title_of_one_long_word(page: Page) -> None:
    send(page, "Name the colour of a clear sky.")
    let_it_say_something(page)
    session_id = page.url.rpartition("/")[2]
    title = f"sky{'y' * 197}"
    path = f"/v1/chatserve/conversations/{session_id}/title"
    expect(page.request.post(path, data={"title": title})).to_be_ok()
    page.reload()

    delete_conversation(page, title)

    expect(page.get_by_role("button", name="Undo")).to_be_in_viewport(ratio=1)
    page.get_by_role("button", name="Undo").click()
    expect(list_link(page, title)).to_be_visible()


def test_conversations_are_found_renamed_and_pinned(page: Page) -> None:
    send(page, "Name the colour of a zebra crossing.")
    let_it_say_something(page)

    open_menu(page, "zebra crossing").get_by_role("button", name="Rename").click()
    page.get_by_role("textbox", name="Rename").fill("Stripes")
    page.get_by_role("textbox", name="Rename").press("Enter")
    expect(page.get_by_role("heading", name="Stripes")).to_be_visible()
    open_menu(page, "Stripes").get_by_role("button", name="Pin", exact=True).click()
    pinned = page.get_by_role("region", name="Pinned")
    expect(pinned.get_by_role("link", name="Stripes")).to_be_visible()

    page.get_by_role("button", name="New chat").click()
    page.get_by_role("searchbox", name="Search").fill("a zebra crossing")
    page.get_by_role("link", name=re.compile("Name the colour")).click()

    expect(page.get_by_role("heading", name="Stripes")).to_be_visible()
    expect(page.get_by_role("article", name="You")).to_be_in_viewport()


def test_conversations_move_by_export_and_import(page: Page, tmp_path: Path) -> None:
    send(page, "Name the colour of a moving van.")
    let_it_say_something(page)

    with page.expect_download() as download:
        page.get_by_role("link", name="Export all").click()
    archive = tmp_path / "chatserve.json"
    download.value.save_as(archive)
    conversations = page.get_by_role("navigation", name="Conversations")
    import_field = conversations.get_by_label("Import")
    import_field.set_input_files(archive)

    expect(conversations.get_by_text(re.compile("there already"))).to_be_visible()
    expect(list_link(page, "moving van")).to_have_count(1)
    delete_conversation(page, "moving van")
    page.reload()
    expect(list_link(page, "moving van")).to_have_count(0)
    import_field.set_input_files(archive)
    expect(conversations.get_by_text(re.compile(r"conversations? imported"))).to_be_visible()
    expect(list_link(page, "moving van")).to_have_count(1)
    import_field.set_input_files(
        {"name": "x.json", "mimeType": "application/json", "buffer": b"[1, 2"}
    )
    expect(conversations.get_by_text("Nothing was imported.")).to_be_visible()


def test_a_conversation_of_500_long_messages_is_opened_written_to_and_read(page: Page) -> None:
    page.set_default_timeout(LONG_MS)
    page.goto(f"/#/c/{import_long_conversation(page, num_messages=500)}")

    expect(page.get_by_text("The end of 499.")).to_be_in_viewport(timeout=LONG_MS)
    composer(page).press_sequentially("Are you there?")
    expect(composer(page)).to_have_value("Are you there?")
    num_drawn = said(page).count()
    assert num_drawn < 100
    last_answer(page).hover()
    page.mouse.wheel(0, -1_000_000)

    earlier = page.get_by_text(f"The end of {499 - 2 * num_drawn}.")
    expect(earlier).to_be_attached(timeout=LONG_MS)


def import_long_conversation(page: Page, *, num_messages: int) -> str:
    """Store messages of 2 kB, each after the one before; return the conversation's id."""
    items = [
        {
            "id": f"m{number}",
            "parent_id": f"m{number - 1}" if number else None,
            "role": "assistant" if number % 2 else "user",
            "text": f"{number}\n\n{'One **more** word. ' * 110}\n\nThe end of {number}.",
            "created_at": number,
        }
        for number in range(num_messages)
    ]
    session = {"id": "c", "title": "Long", "created_at": 0, "updated_at": 0, "items": items}
    document = {"object": "chatserve.conversations", "format": 1, "conversations": [session]}
    reply = page.request.post("/v1/chatserve/conversations/import", data=document)
    expect(reply).to_be_ok()
    session_id: str = reply.json()["conversation_ids"][0]
    return session_id


def test_a_message_said_otherwise_begins_a_branch(page: Page) -> None:
    send(page, "What is a lake?")
    let_it_say_something(page)
    page.get_by_role("article", name="You").hover()
    page.get_by_role("button", name="Edit").first.click()
    page.get_by_role("textbox", name="Edit your message").fill("What is a river?")
    page.get_by_role("button", name="Send").first.click()
    let_it_say_something(page)

    branches = page.get_by_role("group", name="Versions")
    expect(branches).to_have_text("2/2")
    expect(page.get_by_role("article", name="You")).to_have_text("What is a river?")
    branches.get_by_role("button", name="Previous version").click()
    expect(page.get_by_role("article", name="You")).to_have_text("What is a lake?")
    page.reload()
    expect(page.get_by_role("article", name="You")).to_have_text("What is a river?")


def test_an_answer_is_made_anew_next_to_the_old_one(page: Page) -> None:
    send(page, "Invent a name for a boat.")
    first = let_it_say_something(page).locator(".markdown").inner_text()

    old_key = last_answer(page).get_attribute("data-key")
    page.get_by_role("button", name="Regenerate").click()
    expect(last_answer(page)).not_to_have_attribute("data-key", str(old_key))
    let_it_say_something(page)

    expect(page.get_by_role("article", name="You")).to_have_count(1)
    branches = page.get_by_role("group", name="Versions")
    expect(branches).to_have_text("2/2")
    branches.get_by_role("button", name="Previous version").click()
    expect(last_answer(page).locator(".markdown")).to_have_text(first, use_inner_text=True)


def test_a_stopped_answer_goes_on_where_it_stood(page: Page) -> None:
    send(page, "Write a very long story about a mountain.")
    expect_phase(page, "streaming")
    page.get_by_role("button", name="Stop").click()
    expect_phase(page, "stopped")
    begun = last_answer(page).locator(".markdown").inner_text()

    page.get_by_role("button", name="Continue").click()
    expect_phase(page, "streaming")
    page.get_by_role("button", name="Stop").click()
    expect_phase(page, "stopped")

    whole = last_answer(page).locator(".markdown").inner_text()
    assert whole.startswith(begun.rstrip())
    assert len(whole) > len(begun)
    expect(page.get_by_role("article", name="Answer")).to_have_count(1)
    page.reload()
    expect(last_answer(page).locator(".markdown")).to_have_text(whole, use_inner_text=True)


def test_a_deleted_message_takes_what_follows_with_it(page: Page) -> None:
    send(page, "Name a tree.")
    let_it_say_something(page)
    send(page, "Name a flower.")
    let_it_say_something(page)

    page.get_by_role("article", name="You").last.hover()
    page.locator(".said").last.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("2 messages deleted.")).to_be_visible()
    expect(page.get_by_role("article", name="You")).to_have_count(1)
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("article", name="You")).to_have_count(2)
    page.locator(".said").last.get_by_role("button", name="Delete").click()
    with page.expect_response(lambda reply: reply.request.method == "DELETE", timeout=15_000):
        pass
    page.reload()

    expect(page.get_by_role("article", name="You")).to_have_text("Name a tree.")


def test_what_the_user_types_is_never_markup(page: Page) -> None:
    send(page, "<img src=x onerror=alert(1)><script>alert(2)</script> **bold**")
    let_it_say_something(page)

    question = page.get_by_role("article", name="You").last

    expect(question).to_contain_text("<img src=x onerror=alert(1)>")
    assert question.locator("img, script").count() == 0
