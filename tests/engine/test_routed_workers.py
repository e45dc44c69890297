"""Two workers and a router: what workers tell of their caches, and where requests go for it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest_asyncio
from engine.worker_helpers import RunningWorker, enqueue, finished_log
from gateway.fake_model import MODEL, FakeModel, make_card

from chatserve.engine.api import EventKind, GenerationRequest, RequestId, SamplingParams
from chatserve.gateway.models import ServedModels
from chatserve.gateway.router import Router
from chatserve.prefix_digest import PageHashes, tenant_salt
from chatserve.store import keys
from chatserve.store.connection import Store
from chatserve.text.tokenizer import Tokenizer

PAGE_SIZE = 16
PROMPT = "the tenants of this house have long system prompts, " * 2


class Pair:
    """Two workers on a store and a gateway's router, which the test refreshes.

    Owns: all of them, until `stop`.
    """

    def __init__(self, store: Store, steal_after_ms: int = 60_000):
        self._store = store
        self.model = FakeModel()
        self.workers = [
            RunningWorker(store, name, self.model.next_token, steal_after_ms=steal_after_ms)
            for name in ("w1", "w2")
        ]
        self.models = ServedModels(store.workers)
        self.router = Router(store.workers, self.models)

    async def learn(self, *prompts: str) -> list[str]:
        """Return who holds each prompt, once the router knows what workers say of it."""
        async with asyncio.timeout(20):
            while not all(holders := [await self._holders(prompt) for prompt in prompts]):  # noqa: ASYNC110 - polled
                await asyncio.sleep(0.005)
            # What is beaten from now on tells of these digests.
            beats = [keys.GLOBAL.key(keys.WORKER + name) for name in ("w1", "w2")]
            await self._store.commands.call("DEL", *beats)
            await self.models.refresh()
            while sum(beat.digest_number > 0 for beat in self.models.beats) < 2:
                await self.models.refresh()
        await self.router.refresh()
        return [" ".join(each) for each in holders]

    async def _holders(self, prompt: str) -> list[str]:
        digests = await self._store.workers.digests(["w1", "w2"])
        name = names(prompt, "default")[-1]
        return [worker_id for worker_id, digest in digests.items() if digest.holds(name)]

    async def stop(self) -> None:
        for worker in self.workers:
            worker.stop.set()
        await asyncio.gather(*(worker.task for worker in self.workers), return_exceptions=True)


@pytest_asyncio.fixture
async def pair(store: Store) -> AsyncIterator[Pair]:
    pair = Pair(store)
    yield pair
    await pair.stop()


def token_ids(text: str) -> tuple[int, ...]:
    return tuple(Tokenizer.from_card(make_card()).encode(text))


def names(text: str, tenant: str) -> list[int]:
    hashes = PageHashes(token_ids(text), PAGE_SIZE)
    return [hashes[page] ^ tenant_salt(tenant) for page in range(hashes.num_pages)]


def make_request(text: str) -> GenerationRequest:
    return GenerationRequest(
        RequestId("r"), MODEL, token_ids(text), SamplingParams(max_tokens=2, seed=1)
    )


def route_of(pair: Pair, request: GenerationRequest) -> str | None:
    with pair.router.sending(request) as worker_id:
        return worker_id


async def answer(store: Store, name: str, prompt: str, route: str | None = None) -> int:
    """Let a prompt be answered; return how many of its tokens were cached."""
    await enqueue(store, name, prompt, route=route)
    log = await finished_log(store, RequestId(name))
    return next(e.event.cached_tokens for e in log if e.event.kind is EventKind.IN_PROGRESS)


async def test_worker_publishes_what_its_cache_holds(store: Store, pair: Pair) -> None:
    await answer(store, "a", PROMPT)

    [holder] = await pair.learn(PROMPT)

    digest = (await store.workers.digests([holder]))[holder]
    assert all(digest.holds(name) for name in names(PROMPT, "default"))
    assert not any(digest.holds(name) for name in names(PROMPT, "acme"))
    assert 0 < await store.commands.call("PTTL", keys.GLOBAL.key(keys.DIGEST + holder)) <= 300


async def test_request_is_sent_to_the_worker_that_holds_its_beginning(
    store: Store, pair: Pair
) -> None:
    others = [f"{number} {PROMPT}" for number in range(4)]
    for number, prompt in enumerate(others):
        await answer(store, f"r{number}", prompt, route=f"w{1 + number % 2}")

    holders = await pair.learn(*others)

    assert holders == ["w1", "w2", "w1", "w2"]
    routes = [route_of(pair, make_request(f"{prompt} and more")) for prompt in others]
    assert routes == holders


async def test_routed_request_runs_on_its_worker(store: Store, pair: Pair) -> None:
    await pair.learn()

    first = [await answer(store, f"a{i}", f"{i} {PROMPT}", f"w{i}") for i in (1, 2)]
    same = [await answer(store, f"b{i}", f"{i} {PROMPT}", f"w{i}") for i in (1, 2)]
    other = [await answer(store, f"c{i}", f"{i} {PROMPT}", f"w{3 - i}") for i in (1, 2)]

    assert first == other == [0, 0]
    assert min(same) > len(PROMPT) // 2


async def test_request_for_a_worker_that_is_gone_is_taken_by_another(store: Store) -> None:
    pair = Pair(store, steal_after_ms=50)
    await pair.learn()

    await enqueue(store, "a", PROMPT, route="gone")

    assert (await finished_log(store, RequestId("a")))[-1].event.kind is EventKind.INCOMPLETE
    await pair.stop()


async def test_one_worker_alone_is_sent_nothing(store: Store, pair: Pair) -> None:
    await answer(store, "a", PROMPT)
    await pair.learn(PROMPT)
    known = route_of(pair, make_request(PROMPT))
    await pair.workers[0].kill()
    await store.workers.remove("w1")

    await pair.models.refresh()
    await pair.router.refresh()

    assert known is not None
    assert route_of(pair, make_request(PROMPT)) is None


async def test_worker_that_drains_is_sent_nothing(store: Store, pair: Pair) -> None:
    await pair.learn()
    draining = replace((await store.workers.live())[0], worker_id="leaving", is_draining=True)
    await store.workers.heartbeat(draining, 60_000)

    await pair.models.refresh()
    await pair.router.refresh()

    routes = {route_of(pair, make_request(f"{i} {PROMPT}")) for i in range(16)}
    assert routes == {"w1", "w2"}
