"""Who may use this gateway: keys and tenants, remembered for seconds, and who lost access.

Owns a copy of what the store says of a grant, the answer to whether keys are needed at all, and the
wait for the end of a grant. Knows no header and no socket.

    bell ──> forget everything ──> look up the grants that are waited for ──> wake whose is over

1. What is remembered is at most `REMEMBER_S` old, and forgotten at the bell. A look-up that was
   under way when the bell rang is not remembered.
2. A grant that is waited for is looked up when the bell names its key or tenant, when its own time
   is over, and after an outage of the store, in which a bell may have been missed.
3. While the store is away nothing new is let in that is not remembered, and nobody is thrown out.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from chatserve.errors import StoreError
from chatserve.gateway.background import Background
from chatserve.identity import Identity
from chatserve.store.api_keys import ApiKey, Grant
from chatserve.store.connection import Store
from chatserve.store.tenant_bell import AccessNews
from chatserve.store.tenants import NO_QUOTAS, Quotas, Tenant

K = TypeVar("K")
V = TypeVar("V")

logger = logging.getLogger(__name__)

REMEMBER_S = 3.0
_MAX_REMEMBERED = 10_000
_LISTEN_MS = 1_000
"""How long after its time an expired key keeps its sockets at most."""

_RETRY_S = 0.5


@dataclass(frozen=True, slots=True)
class Account:
    """Whose grant it is: a key and its tenant. `valid_until` is in seconds since 1970."""

    grant: Grant
    key: ApiKey
    tenant: Tenant
    valid_until: float | None

    @property
    def identity(self) -> Identity:
        return replace(self.key.identity, tenant_mark=self.tenant.mark)

    @property
    def is_over(self) -> bool:
        return self.valid_until is not None and self.valid_until <= time.time()


@dataclass(slots=True)
class _Watched:
    """A grant that somebody waits for the end of. Mutable: others come and go.

    `account` is None until it has been looked up.
    """

    account: Account | None = None
    callbacks: dict[object, Callable[[], None]] = field(default_factory=dict)


class _Remembered(Generic[K, V]):
    """What was looked up in the last seconds.

    Owns: the values. Used from: the directory.
    """

    def __init__(self) -> None:
        self._values: dict[K, tuple[V, float]] = {}
        self.num_cleared = 0

    def get(self, key: K) -> V | None:
        value, until = self._values.get(key, (None, 0.0))
        return value if until > time.monotonic() else None

    def put(self, key: K, value: V, num_cleared: int) -> None:
        """Remember what was looked up since there had been `num_cleared` clearings, if still so."""
        if num_cleared != self.num_cleared:
            return
        if len(self._values) >= _MAX_REMEMBERED:
            self._values.clear()
        self._values[key] = value, time.monotonic() + REMEMBER_S

    def clear(self) -> None:
        self._values.clear()
        self.num_cleared += 1


class Directory:
    """The keys and tenants of the store.

    Owns: what it remembers, and the task that follows the bell.
    Used from: the event loop of a gateway.

    Args:
        store: Where tenants and keys are.
        may_be_open: Whether callers need no key while there is no tenant.
    """

    def __init__(self, store: Store, *, may_be_open: bool) -> None:
        self._store = store
        self._may_be_open = may_be_open
        self._has_tenants = True
        self._accounts: _Remembered[Grant, Account] = _Remembered()
        self._tenants: _Remembered[str, Tenant] = _Remembered()
        self._key_quotas: _Remembered[str, Quotas] = _Remembered()
        self._watched: dict[Grant | None, _Watched] = {}
        self._cursor = "0-0"
        self._missed_bells = False
        self._following = Background(self._follow)

    async def start(self) -> None:
        """Find out whether keys are needed, then follow the bell until `aclose`."""
        self._cursor, _ = await self._store.tenant_bell.history()
        self._has_tenants = await self._store.tenants.any()
        self._following.start()

    async def aclose(self) -> None:
        await self._following.aclose()

    @property
    def has_tenants(self) -> bool:
        return self._has_tenants

    @property
    def is_open(self) -> bool:
        """Whether everybody is let in, because nobody has made a tenant yet."""
        return self._may_be_open and not self._has_tenants

    async def find(self, grant: Grant) -> Account | None:
        """Return whose grant it is; None when it is not valid.

        Raises:
            StoreError: It is not remembered, and the store does not answer.
        """
        account = self._accounts.get(grant)
        if account is None:
            num_bells = self._accounts.num_cleared
            account = await self._look_up(grant)
            if account is not None:
                self._accounts.put(grant, account, num_bells)
        return None if account is None or account.is_over else account

    async def has_expired(self, grant: Grant) -> bool:
        """Return whether a grant that is not valid was, until its key expired."""
        return await self._store.api_keys.has_expired(grant)

    async def tenant(self, name: str) -> Tenant:
        """Return a tenant; one that nobody has made yet has no quotas and may use every model.

        Raises:
            StoreError: It is not remembered, and the store does not answer.
        """
        tenant = self._tenants.get(name)
        if tenant is None:
            num_bells = self._tenants.num_cleared
            tenant = await self._store.tenants.get(name) or Tenant(name)
            self._tenants.put(name, tenant, num_bells)
        return tenant

    async def quotas_of_key(self, key_id: str) -> Quotas:
        """Return the quotas of a key; one that is gone has none, and will not be let in again.

        Raises:
            StoreError: They are not remembered, and the store does not answer.
        """
        quotas = self._key_quotas.get(key_id)
        if quotas is None:
            num_bells = self._key_quotas.num_cleared
            key = await self._store.api_keys.get(key_id)
            quotas = key.quotas if key is not None else NO_QUOTAS
            self._key_quotas.put(key_id, quotas, num_bells)
        return quotas

    @asynccontextmanager
    async def watching(
        self, grant: Grant | None, on_over: Callable[[], None]
    ) -> AsyncIterator[None]:
        """Call back when a grant is not valid any more; for None, when keys are needed.

        It is called at most once, from the event loop, and not after the context has ended.
        """
        watched = self._watched.setdefault(grant, _Watched())
        mark = object()
        watched.callbacks[mark] = on_over
        try:
            # After the note, so that no bell comes in between unheard. What cannot be looked up now
            # stays doubtful, and is looked up again with the next news.
            with suppress(StoreError):
                await self._check(grant, watched)
            yield
        finally:
            watched.callbacks.pop(mark, None)
            if not watched.callbacks and self._watched.get(grant) is watched:
                del self._watched[grant]

    async def _look_up(self, grant: Grant) -> Account | None:
        valid = await self._store.api_keys.check(grant)
        if valid is None or not await self._store.logins.is_on(grant):
            return None
        tenant = await self._store.tenants.get(valid.key.tenant)
        if tenant is None or tenant.is_closed:
            return None
        return Account(grant, valid.key, tenant, valid.valid_until)

    async def _follow(self) -> None:
        while True:
            try:
                self._cursor, news = await self._store.tenant_bell.wait(self._cursor, _LISTEN_MS)
                await self._take(news)
            except StoreError as error:
                logger.log(error.log_level, "news of tenants and keys cannot be read: %s", error)
                self._missed_bells = True
                await asyncio.sleep(_RETRY_S)

    async def _take(self, news: Sequence[AccessNews]) -> None:
        if news or self._missed_bells:
            self._accounts.clear()
            self._tenants.clear()
            self._key_quotas.clear()
        self._has_tenants = await self._store.tenants.any()
        for grant, watched in self._doubtful(news):
            await self._check(grant, watched)
        self._missed_bells = False

    def _doubtful(self, news: Sequence[AccessNews]) -> list[tuple[Grant | None, _Watched]]:
        """Return the grants that may be over, and whether keys are needed."""
        key_ids = {each.key_id for each in news}
        tenants = {each.tenant for each in news if not each.key_id}
        return [
            (grant, watched)
            for grant, watched in self._watched.items()
            if self._missed_bells
            or watched.account is None
            or watched.account.is_over
            or watched.account.key.key_id in key_ids
            or watched.account.key.tenant in tenants
        ]

    async def _check(self, grant: Grant | None, watched: _Watched) -> None:
        """Tell those who wait for the end of a grant, if it has come."""
        if grant is None:
            is_over = not self.is_open
        else:
            watched.account = await self.find(grant)
            is_over = watched.account is None
        if is_over:
            self._watched.pop(grant, None)
            for mark in list(watched.callbacks):
                asyncio.get_running_loop().call_soon(_call, watched, mark)


def _call(watched: _Watched, mark: object) -> None:
    """Call back, unless whoever waited has left meanwhile."""
    callback = watched.callbacks.pop(mark, None)
    if callback is not None:
        callback()
