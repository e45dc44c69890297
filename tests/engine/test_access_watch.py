"""What a worker does when a tenant is gone: its cache is dropped each time, which is told once."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import pytest

from chatserve.engine.access_watch import AccessWatch
from chatserve.store.tenant_bell import AccessNews


class FakeBell:
    """A bell that rings for the given news, one after the other, and then is silent."""

    def __init__(self, *news: AccessNews) -> None:
        self._news = [[each] for each in news]

    async def history(self) -> tuple[str, list[AccessNews]]:
        return "0-0", []

    async def wait(self, cursor: str, block_ms: int) -> tuple[str, list[AccessNews]]:
        if not self._news:
            await asyncio.Event().wait()
        return cursor, self._news.pop(0)


class FakeEngine:
    """An engine that notes whose cache it drops."""

    def __init__(self) -> None:
        self.revoked: list[str] = []

    def revoke(self, tenant: str) -> None:
        self.revoked.append(tenant)


class FakeWriter:
    """A writer of nothing."""

    open_requests: Sequence[object] = ()

    def cancel(self, request_ids: Sequence[object]) -> None:
        assert not request_ids


async def follow(engine: FakeEngine, *news: AccessNews) -> None:
    watch = AccessWatch(FakeBell(*news), engine, FakeWriter())  # type: ignore[arg-type]
    with suppress(TimeoutError):
        async with asyncio.timeout(0.2):
            while True:
                await watch.bodies["access"]()


async def test_a_removal_rings_twice_and_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    engine, gone = FakeEngine(), AccessNews("acme", "", is_revoked=True)

    await follow(engine, gone, AccessNews("acme", "k", is_revoked=True), gone)

    assert engine.revoked == ["acme", "acme"]
    assert sum("is gone" in record.getMessage() for record in caplog.records) == 1


async def test_a_tenant_that_was_made_again_is_told_of_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    engine, gone = FakeEngine(), AccessNews("acme", "", is_revoked=True)

    await follow(engine, gone, AccessNews("acme", "", is_revoked=False), gone)

    assert sum("is gone" in record.getMessage() for record in caplog.records) == 2
