"""The disconnect table, without sockets."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from chatserve.engine.api import RequestId
from chatserve.errors import StoreError
from chatserve.gateway import readers as readers_module
from chatserve.gateway.readers import Readers
from chatserve.store.responses import Abandonment

A, B = RequestId("a"), RequestId("b")


class Store:
    """Counts cancels, and fails as often as it is told to."""

    def __init__(self) -> None:
        self.cancelled: list[RequestId] = []
        self.num_failures = 0
        self.news = asyncio.Event()

    async def cancel(self, request_id: RequestId) -> None:
        if self.num_failures:
            self.num_failures -= 1
            raise StoreError("away")
        self.cancelled.append(request_id)
        self.news.set()

    async def wait(self) -> None:
        async with asyncio.timeout(10):
            await self.news.wait()


@pytest.fixture
def store() -> Store:
    return Store()


@pytest_asyncio.fixture
async def readers(store: Store) -> AsyncIterator[Readers]:
    readers = Readers(store.cancel, grace_s=0.01)
    yield readers
    await readers.aclose()


async def test_abort_cancels_at_once_and_only_after_the_last_reader(
    readers: Readers, store: Store
) -> None:
    readers.enter(A, Abandonment.ABORT)
    readers.enter(A, Abandonment.ABORT)

    readers.leave(A)
    await asyncio.sleep(0)
    assert store.cancelled == []
    readers.leave(A)
    await store.wait()

    assert store.cancelled == [A]


async def test_run_is_never_cancelled(readers: Readers, store: Store) -> None:
    readers.enter(A, Abandonment.RUN)
    readers.enter(B, Abandonment.ABORT)

    readers.leave(A)
    readers.leave(B)
    await store.wait()

    assert store.cancelled == [B]


async def test_grace_cancels_when_nobody_comes_back(readers: Readers, store: Store) -> None:
    readers.enter(A, Abandonment.GRACE)

    readers.leave(A)
    await store.wait()

    assert store.cancelled == [A]


async def test_reader_that_comes_back_ends_the_grace(store: Store) -> None:
    readers = Readers(store.cancel, grace_s=0.0)
    readers.enter(A, Abandonment.GRACE)
    readers.leave(A)
    readers.enter(A, Abandonment.GRACE)
    readers.enter(B, Abandonment.GRACE)
    readers.leave(B)

    await store.wait()

    assert store.cancelled == [B]


@pytest.mark.parametrize("abandonment", [Abandonment.ABORT, Abandonment.GRACE])
async def test_answer_that_has_ended_is_not_cancelled(
    readers: Readers, store: Store, abandonment: Abandonment
) -> None:
    readers.enter(A, abandonment)
    readers.finish(A)
    readers.leave(A)
    readers.enter(B, Abandonment.ABORT)
    readers.leave(B)

    await store.wait()

    assert store.cancelled == [B]


async def test_cancel_is_tried_again_while_the_store_is_away(
    readers: Readers, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers_module, "_RETRY_DELAYS_S", (0.0, 0.0, 0.0))
    store.num_failures = 2
    readers.enter(A, Abandonment.ABORT)

    readers.leave(A)
    await store.wait()

    assert store.cancelled == [A]


async def test_cancel_that_never_succeeds_is_reported(
    readers: Readers,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(readers_module, "_RETRY_DELAYS_S", (0.0,))
    store.num_failures = 1
    readers.enter(A, Abandonment.ABORT)

    readers.leave(A)
    await readers.aclose()

    assert store.cancelled == []
    assert "a has no readers" in caplog.text


async def test_close_waits_for_cancels_and_drops_graces(store: Store) -> None:
    readers = Readers(store.cancel, grace_s=60.0)
    readers.enter(A, Abandonment.ABORT)
    readers.enter(B, Abandonment.GRACE)
    readers.leave(A)
    readers.leave(B)

    await readers.aclose()

    assert store.cancelled == [A]


async def test_a_gateway_that_stops_abandons_nothing_that_is_stored(
    readers: Readers, store: Store
) -> None:
    """Its sockets close first, and their answers were cancelled before anybody could come back."""
    for request_id in (A, B):
        readers.enter(request_id, Abandonment.GRACE)
    readers.leave(A)

    readers.drop_grace()
    readers.leave(B)
    await asyncio.sleep(0.05)  # longer than the grace period

    assert store.cancelled == []


async def test_close_gives_up_what_is_read_and_could_not_be_read_again(store: Store) -> None:
    """A gateway that stopped used to leave the answers of its HTTP requests running."""
    readers = Readers(store.cancel, grace_s=60.0)
    readers.enter(A, Abandonment.ABORT)
    readers.enter(B, Abandonment.GRACE)

    await readers.aclose()

    assert store.cancelled == [A]
