"""How many connections a tenant and a key may have open, over all gateways.

Owns this gateway's leases and their renewal. The numbers are the store's: a gateway that dies
renews nothing, and its connections count no longer than their leases.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chatserve.errors import RateLimited, StoreError
from chatserve.gateway.background import Background
from chatserve.gateway.ids import new_id
from chatserve.gateway.quotas import KnownQuotas
from chatserve.identity import Identity
from chatserve.store.connection_leases import (
    LEASE_MS,
    ConnectionLeases,
    ConnectionScope,
    CountedConnection,
)

logger = logging.getLogger(__name__)

RENEW_S = LEASE_MS / 1e3 / 4
_RETRY_AFTER_S = 5
_CLOSE_TIMEOUT_S = 2.0


class ConnectionCounts:
    """The counted connections of this gateway.

    Owns: their leases, and the task that renews them.
    Used from: the event loop.
    """

    def __init__(self, leases: ConnectionLeases, quotas: KnownQuotas) -> None:
        self._leases = leases
        self._quotas = quotas
        self._open: dict[str, CountedConnection] = {}
        self._renewing = Background(self._renew_for_ever)
        self._releasing: set[asyncio.Task[None]] = set()
        # A lease that is released while it is renewed would come back.
        self._writing = asyncio.Lock()

    def start(self) -> None:
        """Renew the leases from now on, until `aclose`."""
        self._renewing.start()

    async def aclose(self) -> None:
        """Stop, and let the releases on their way arrive, for a bounded time."""
        await self._renewing.aclose()
        if self._releasing:
            await asyncio.wait(self._releasing, timeout=_CLOSE_TIMEOUT_S)

    @asynccontextmanager
    async def counted(self, identity: Identity) -> AsyncIterator[None]:
        """Count a connection while the context is open; where nothing is limited, count nothing.

        Raises:
            RateLimited: Its tenant or its key has as many open as it may.
            StoreError: The store does not answer.
        """
        quotas = await self._quotas.of(identity.tenant, identity.key_id)
        scopes = quotas.connection_scopes()
        if not scopes:
            yield
            return
        connection = CountedConnection(new_id("lease_", identity.tenant), identity.tenant, scopes)
        try:
            # Cancelled here, it may be counted or not; leaving takes it back in either case.
            full = await self._leases.take(connection)
            if full is not None:
                raise _too_many(full)
            self._open[connection.connection_id] = connection
            yield
        finally:
            self._open.pop(connection.connection_id, None)
            releasing = asyncio.create_task(self._release(connection))
            self._releasing.add(releasing)
            releasing.add_done_callback(self._releasing.discard)

    async def _release(self, connection: CountedConnection) -> None:
        try:
            async with self._writing:
                await self._leases.release(connection)
        except StoreError as error:
            logger.log(error.log_level, "a connection counts until its lease ends: %s", error)

    async def _renew_for_ever(self) -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            try:
                async with self._writing:
                    await self._leases.renew(list(self._open.values()))
            except StoreError as error:
                logger.log(error.log_level, "the leases of connections were not renewed: %s", error)


def _too_many(full: ConnectionScope) -> RateLimited:
    whose = "this tenant" if full.name.startswith("tenant:") else "this key"
    return RateLimited(
        f"{whose} has {full.limit} connections open, which is its limit",
        retry_after_s=_RETRY_AFTER_S,
    )
