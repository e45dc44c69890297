"""Steps on the page that the tests in a browser share.

What the model says nobody can know before, nor when it comes to its end by itself. So a chat is
begun with fields that decide on the length of its answers: `LONG` ones last until a test stops
them, `short(n)` ones are cut after n tokens.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, expect

ANSWER_MS = 60_000

Fields = Mapping[str, object]

# Before it has so many tokens, nothing but a stop ends an answer.
LONG: Fields = {"max_output_tokens": 3000, "min_tokens": 3000}
PHONE: dict[str, Any] = {
    "viewport": {"width": 360, "height": 740},
    "has_touch": True,
    "is_mobile": True,
}

ENDED = "completed|stopped|cut"

NOTHING = r"(?!)"
NO_KEY = "status of 401"

# Timers of some lengths go off after others: {before: after}, in milliseconds.
RETIME = """(lengths) => {
    for (const name of ["setTimeout", "setInterval"]) {
        const set = window[name].bind(window);
        window[name] = (task, ms, ...more) => set(task, lengths[ms] ?? ms, ...more);
    }
}"""
UNDO_MS = 8_000

# What the content security policy has refused is said aloud, in whatever tab it was.
TELL_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) => {
    console.error(`policy: ${event.violatedDirective}: ${event.blockedURI || event.sample}`);
});
"""

FILLED_CLIPBOARD = """async () => {
    for (;;) {
        const text = await navigator.clipboard.readText();
        if (text !== "") return text;
        await new Promise((done) => setTimeout(done, 20));
    }
}"""

# All that a script of a later page can read in this browser, apart from the built page itself.
KEPT = """async () => {
    const asked = (request) => new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
    });
    const tables = [];
    for (const { name } of await indexedDB.databases()) {
        const database = await asked(indexedDB.open(name));
        for (const table of database.objectStoreNames) {
            const store = database.transaction(table).objectStore(table);
            tables.push(await asked(store.getAllKeys()), await asked(store.getAll()));
        }
        database.close();
    }
    const replies = [];
    for (const name of await caches.keys())
        for (const { url } of await (await caches.open(name)).keys())
            replies.push(new URL(url).pathname);
    const isShell = (path) => /[/](?:assets[/][^/]+|favicon.svg)?$/.test(path);
    return JSON.stringify({
        tables,
        replies: replies.filter((path) => !isShell(path)),
        texts: [{...localStorage}, {...sessionStorage}, document.cookie],
    });
}"""


def short(num_tokens: int = 8) -> Fields:
    """Return the fields of answers that are cut after so many tokens, and end in no other way."""
    return {"max_output_tokens": num_tokens, "min_tokens": num_tokens}


@contextmanager
def open_context(
    browser: Browser, url: str, *, allowed: str = NOTHING, **options: object
) -> Iterator[BrowserContext]:
    """One browser of one reader, which fails its test for anything that it complains about.

    `allowed` is what the complaints look like that the test itself gives cause for.
    """
    permissions = ["clipboard-read", "clipboard-write"]
    context = browser.new_context(base_url=url, permissions=permissions, **options)  # type: ignore[arg-type]
    complaints: list[str] = []

    def note(words: str) -> None:
        if re.search(allowed, words) is None:
            complaints.append(words)

    def note_message(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            note(message.text)

    context.add_init_script(TELL_VIOLATIONS)
    context.on("console", note_message)
    context.on("weberror", lambda error: note(str(error.error)))
    context.set_default_timeout(ANSWER_MS)
    try:
        yield context
    finally:
        context.close()
    assert not complaints, "\n".join(complaints)


@contextmanager
def open_page(
    browser: Browser,
    url: str,
    *,
    answers: Fields | None = None,
    allowed: str = NOTHING,
    **options: object,
) -> Iterator[Page]:
    """A page with a new chat; its answers are of the page's own length where none is given."""
    with open_context(browser, url, allowed=allowed, **options) as context:
        page = context.new_page()
        if answers is None:
            page.goto("/")
        else:
            begin_chat(page, answers)
        yield page


@contextmanager
def open_login(browser: Browser, url: str, **options: object) -> Iterator[Page]:
    """The page as a service shows it that wants a key."""
    with open_context(browser, url, allowed=NO_KEY, **options) as context:
        page = context.new_page()
        page.route("**/v1/chatserve/me", lambda route: route.fulfill(status=401, json={}))
        page.goto("/")
        expect(page.get_by_label("Your key")).to_be_visible()
        yield page


def begin_chat(page: Page, answers: Fields) -> None:
    """Begin a new chat with these parameters."""
    page.goto("/")
    set_fields(page, answers)


def set_fields(page: Page, answers: Fields) -> None:
    """Have the answers to come in the conversation on the screen be of another length."""
    open_inspector(page)
    shortest = page.get_by_role("textbox", name="Shortest answer")
    longest = page.get_by_role("textbox", name="Longest answer")
    # In this order none of them is out of bounds at any time.
    shortest.fill("0")
    longest.fill(str(answers["max_output_tokens"]))
    shortest.fill(str(answers["min_tokens"]))
    for field in (shortest, longest):
        expect(field).not_to_have_attribute("aria-invalid", "true")
    # On a phone the sheet has a button of its own as well.
    page.get_by_role("button", name="Close").last.click()
    expect(longest).to_have_count(0)


def open_inspector(page: Page) -> Locator:
    """Open the inspector of a page that may just have begun; return it as a wide page has it."""
    page.get_by_role("button", name="Inspector", exact=True).click()
    return page.get_by_role("complementary", name="Inspector")


def retime(page: Page, lengths: Mapping[int, int]) -> None:
    """Have the page's timers of some lengths, in milliseconds, go off after others from now on."""
    page.evaluate(RETIME, {str(before): after for before, after in lengths.items()})


def composer(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Message")


def last_answer(page: Page) -> Locator:
    return page.get_by_role("article", name="Answer").last


def said(page: Page) -> Locator:
    return page.get_by_role("article", name="You")


def actions_of_last_said(page: Page) -> Locator:
    """Return what can be done with the message that was said last; all is shown on hover."""
    said(page).last.hover()
    return page.locator(".said").last.locator(".actions")


def expect_phase(page: Page, phase: str) -> None:
    expect(last_answer(page)).to_have_attribute("data-phase", re.compile(phase), timeout=ANSWER_MS)


@contextmanager
def new_answer(page: Page) -> Iterator[None]:
    """Wait, after what is done inside, until an answer that was not there before is the last."""
    answers = page.get_by_role("article", name="Answer")
    before = answers.last.get_attribute("data-key") if answers.count() > 0 else None
    yield
    expect(answers.last).to_be_attached()
    if before is not None:
        expect(answers.last).not_to_have_attribute("data-key", before)


def send(page: Page, text: str) -> None:
    """Say something, and return when its answer is on the screen, as little as there is of it."""
    composer(page).fill(text)
    expect(page.get_by_role("button", name="Send")).to_be_enabled()
    with new_answer(page):
        composer(page).press("Enter")


def let_it_begin(page: Page) -> None:
    """Wait for the first words of the last answer."""
    expect_phase(page, f"streaming|{ENDED}")
    expect(last_answer(page).locator(".markdown")).not_to_be_empty()


def stop(page: Page) -> None:
    page.keyboard.press("Escape")  # does nothing if the answer has just ended
    expect_phase(page, ENDED)


def say(page: Page, text: str) -> None:
    """Send a message and end its answer after its first words."""
    send(page, text)
    let_it_begin(page)
    stop(page)


def say_by_button(page: Page, text: str) -> None:
    """Say something as it is done where Enter makes a line."""
    composer(page).fill(text)
    with new_answer(page):
        page.get_by_role("button", name="Send").click()
    let_it_begin(page)
    stop(page)


def show_list(page: Page) -> None:
    navigation = page.get_by_role("navigation", name="Conversations")
    if navigation.count() == 0:
        page.get_by_role("button", name="Show conversations").click()
    expect(navigation).to_be_visible()


def shown_text(page: Page) -> str:
    """Return the last answer as it is drawn."""
    return last_answer(page).locator(".markdown").inner_text()


def copied_text(page: Page) -> str:
    """Return the last answer exactly as the page has it; it must have ended."""
    page.bring_to_front()
    page.evaluate("navigator.clipboard.writeText('')")
    last_answer(page).get_by_role("button", name="Copy answer").click()
    text: str = page.evaluate(FILLED_CLIPBOARD)
    return text


def stored_text(page: Page) -> str:
    """Return the last message of the conversation as the server has it."""
    path = f"{conversation_path(page)}/items"
    reply = page.request.get(path, params={"order": "desc", "limit": "1"})
    expect(reply).to_be_ok()
    (item,) = reply.json()["data"]
    assert item["role"] == "assistant", item
    return "".join(part["text"] for part in item["content"])


def stored_so_far(page: Page) -> str:
    """Return the answer in flight as the server has it; what is drawn of it has lost its signs."""
    session = page.request.get(conversation_path(page)).json()
    (response_id,) = session["active_response_ids"]
    (message,) = page.request.get(f"/v1/responses/{response_id}").json()["output"]
    return "".join(part["text"] for part in message["content"])


def conversation_path(page: Page) -> str:
    return f"/v1/conversations/{page.url.rpartition('/')[2]}"


def expect_as_stored(page: Page) -> None:
    """The last answer has ended, and the page has all of it, once, and nothing else."""
    expect_phase(page, ENDED)
    whole = stored_text(page)
    assert whole != ""
    assert copied_text(page) == whole


def expect_longer(page: Page, than: str) -> None:
    """Wait until the last answer, as it is drawn, has grown well beyond a text."""
    expect_drawn(page, num_chars=len(than) + 20)


def expect_drawn(page: Page, *, num_chars: int) -> None:
    """Wait until so much of the last answer is drawn."""
    text = last_answer(page).locator(".markdown")
    long_enough = re.compile(rf"[\s\S]{{{num_chars}}}")
    expect(text).to_have_text(long_enough, use_inner_text=True, timeout=ANSWER_MS)


def expect_connection(page: Page, words: str) -> None:
    expect(page.locator("header .connection")).to_have_text(re.compile(words), timeout=ANSWER_MS)


def list_link(page: Page, words: str) -> Locator:
    conversations = page.get_by_role("navigation", name="Conversations")
    return conversations.get_by_role("link", name=re.compile(words))


def open_menu(page: Page, words: str) -> Locator:
    """Open what can be done with a conversation, and return its row."""
    conversations = page.get_by_role("navigation", name="Conversations")
    link = page.get_by_role("link", name=re.compile(words))
    row = conversations.get_by_role("listitem").filter(has=link)
    row.hover()
    row.get_by_role("button", name=re.compile("^More for")).click()
    return row


def delete_conversation(page: Page, words: str, *, undo_ms: int = 60_000) -> None:
    """Delete a conversation, which can be taken back for so long, in milliseconds."""
    retime(page, {UNDO_MS: undo_ms})
    open_menu(page, words).get_by_role("button", name="Delete").click()
