"""Heartbeats and model cards."""

from dataclasses import replace

from chatserve.engine.api import EngineStats, ModelCard
from chatserve.prefix_digest import HeldPrefixes, PrefixDigest
from chatserve.store import keys
from chatserve.store.connection import Store
from chatserve.store.workers import WorkerBeat

TTL_MS = 60_000


def make_card(name: str = "tiny", *, tokenizer_json: str = '{"model": "grüße"}') -> ModelCard:
    return ModelCard(
        name=name,
        max_model_len=100,
        max_prompt_tokens=90,
        vocab_size=256,
        tokenizer_json=tokenizer_json,
        chat_template="{{ messages }}",
        bos_token=None,
        eos_token="<end>",
        eos_token_ids=(1, 2),
        adds_bos=False,
    )


def make_beat(worker_id: str, card_fingerprint: str = "none") -> WorkerBeat:
    stats = EngineStats(num_pages=10, pages_free=10)
    return WorkerBeat(worker_id, "tiny", card_fingerprint, "1.0", stats, "http://127.0.0.1:1/m")


async def test_card_is_read_as_it_was_published(store: Store) -> None:
    await store.workers.publish_card(make_card())

    assert await store.workers.card("tiny") == make_card()
    assert await store.workers.card("other") is None


async def test_equal_cards_are_stored_once(store: Store) -> None:
    first = await store.workers.publish_card(make_card())
    second = await store.workers.publish_card(make_card())

    assert first == second
    assert len(await store.commands.call("KEYS", keys.GLOBAL.key(keys.CARD + "*"))) == 1


async def test_changed_card_replaces_the_one_before(store: Store) -> None:
    changed = replace(make_card(), max_model_len=200)
    first = await store.workers.publish_card(make_card())

    second = await store.workers.publish_card(changed)

    assert first != second
    assert await store.workers.card("tiny") == changed


async def test_live_returns_the_last_beat_of_each_worker(store: Store) -> None:
    later = replace(make_beat("w1"), stats=EngineStats(num_steps=5))
    await store.workers.heartbeat(make_beat("w2"), TTL_MS)
    await store.workers.heartbeat(make_beat("w1"), TTL_MS)
    await store.workers.heartbeat(later, TTL_MS)

    assert await store.workers.live() == [later, make_beat("w2")]


async def test_nobody_lives_in_an_empty_store(store: Store) -> None:
    assert await store.workers.live() == []


async def test_worker_whose_beat_has_run_out_is_forgotten(store: Store) -> None:
    await store.workers.heartbeat(make_beat("w1"), TTL_MS)
    await store.workers.heartbeat(make_beat("w2"), TTL_MS)
    workers = keys.GLOBAL.key(keys.WORKERS)
    await store.commands.call("PEXPIRE", keys.GLOBAL.key(keys.WORKER + "w1"), 0)
    await store.commands.call("ZADD", workers, "XX", 1, "w1")

    live = await store.workers.live()
    await store.workers.heartbeat(make_beat("w2"), TTL_MS)

    assert [beat.worker_id for beat in live] == ["w2"]
    assert await store.commands.call("ZRANGE", workers, 0, -1) == ["w2"]


async def test_worker_beats_also_when_the_store_is_full(own_store: Store) -> None:
    await own_store.workers.publish_card(make_card())
    await own_store.commands.call("CONFIG", "SET", "maxmemory", "1mb")

    await own_store.workers.heartbeat(make_beat("w"), TTL_MS)

    assert [beat.worker_id for beat in await own_store.workers.live()] == ["w"]


async def test_beat_runs_out_by_itself(store: Store) -> None:
    await store.workers.heartbeat(make_beat("w"), TTL_MS)

    assert 0 < await store.commands.call("PTTL", keys.GLOBAL.key(keys.WORKER + "w")) <= TTL_MS


async def test_removed_worker_is_gone_at_once(store: Store) -> None:
    await store.workers.heartbeat(make_beat("w"), TTL_MS)

    await store.workers.remove("w")

    assert await store.workers.live() == []


async def test_digest_lives_as_long_as_its_workers_heartbeat(store: Store) -> None:
    digest = PrefixDigest.of(HeldPrefixes(16, 1, {"acme": bytes(range(64))}))
    await store.workers.publish_digest("w1", digest, 5_000)

    await store.workers.heartbeat(make_beat("w1"), TTL_MS)

    assert await store.workers.digests(["w0", "w1"]) == {"w1": digest}
    assert await store.commands.call("PTTL", keys.GLOBAL.key(keys.DIGEST + "w1")) > 5_000


async def test_removed_worker_leaves_no_digest(store: Store) -> None:
    digest = PrefixDigest.of(HeldPrefixes(16, 1, {}))
    await store.workers.publish_digest("w", digest, TTL_MS)

    await store.workers.remove("w")

    assert await store.workers.digests(["w"]) == {}
    assert await store.workers.digests([]) == {}


async def test_heartbeat_keeps_the_card_and_tells_when_it_is_lost(store: Store) -> None:
    fingerprint = await store.workers.publish_card(make_card())
    await store.commands.call("EXPIRE", keys.GLOBAL.key(keys.CARD + fingerprint), 5)

    kept = await store.workers.heartbeat(make_beat("w", fingerprint), TTL_MS)
    remaining_s = await store.commands.call("TTL", keys.GLOBAL.key(keys.CARD + fingerprint))
    await store.commands.call("DEL", keys.GLOBAL.key(keys.CARD + fingerprint))
    lost = await store.workers.heartbeat(make_beat("w", fingerprint), TTL_MS)

    assert kept
    assert remaining_s > 5
    assert not lost
