"""What workers say of the registered prompts."""

from dataclasses import replace

from chatserve.engine.api import PrefixState
from chatserve.store import keys
from chatserve.store.connection import Store
from chatserve.store.prompt_news import PromptStatus

TTL_MS = 60_000
STATUS = PromptStatus(
    tenant="acme",
    name="support",
    revision="r1",
    state=PrefixState.PINNED,
    at=1_700_000_000,
    num_tokens=512,
    num_pages=32,
    is_restored=True,
)


async def test_statuses_are_read_as_they_were_written(store: Store) -> None:
    refused = replace(STATUS, name="other", state=PrefixState.REFUSED, reason="„zu groß“")
    await store.prompt_news.write("w1", [STATUS, refused], TTL_MS)
    await store.prompt_news.write("w2", [], TTL_MS)

    news = await store.prompt_news.read(["w1", "w2", "unknown"])

    assert news == {"w1": [STATUS, refused], "w2": [], "unknown": []}
    assert news["w1"][0].state is PrefixState.PINNED
    assert await store.prompt_news.read([]) == {}


async def test_writing_replaces_what_was_said_before(store: Store) -> None:
    await store.prompt_news.write("w1", [STATUS], TTL_MS)

    await store.prompt_news.write("w1", [replace(STATUS, name="other")], TTL_MS)

    assert [each.name for each in (await store.prompt_news.read(["w1"]))["w1"]] == ["other"]


async def test_news_run_out_unless_they_are_kept(store: Store) -> None:
    await store.prompt_news.write("w1", [STATUS], 5_000)

    assert await store.prompt_news.keep("w1", TTL_MS)
    assert (
        5_000
        < await store.commands.call("PTTL", keys.GLOBAL.key(keys.PROMPT_NEWS + "w1"))
        <= TTL_MS
    )

    await store.commands.call("DEL", keys.GLOBAL.key(keys.PROMPT_NEWS + "w1"))
    assert not await store.prompt_news.keep("w1", TTL_MS)
    assert await store.prompt_news.read(["w1"]) == {"w1": []}
