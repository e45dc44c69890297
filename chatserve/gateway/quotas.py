"""Which limits hold for a caller, and what a request reserves of them.

Owns how the quotas of a tenant and of a key become limits. What they are is remembered by the
directory, what is left of a limit is known by the store alone.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from chatserve.engine.api import GenerationRequest
from chatserve.errors import StoreError
from chatserve.gateway.directory import Directory
from chatserve.gateway.rate_limits import refusal_of
from chatserve.identity import Identity
from chatserve.store.connection_leases import ConnectionScope
from chatserve.store.limits import (
    NO_ALLOWANCES,
    Allowances,
    Limited,
    Limits,
    Reservation,
    ScopeLimits,
)
from chatserve.store.tenants import NO_QUOTAS, Quotas

logger = logging.getLogger(__name__)

# How much of a minute's tokens an answer may take whose client set no limit: where it took all, two
# users of a tenant could never be answered at once.
_SHARE_OF_ANSWER = 4


@dataclass(frozen=True, slots=True)
class CallerQuotas:
    """What holds for requests with one key: its tenant's quotas, and its own."""

    tenant: str
    key_id: str
    of_tenant: Quotas = NO_QUOTAS
    of_key: Quotas = NO_QUOTAS

    def reservation(self, num_tokens: int, together: int = 1) -> Reservation | None:
        """Return what a request of so many tokens reserves; None where nothing is limited."""
        scopes = tuple(scope for scope in self.scopes if scope.is_limited)
        return Reservation(scopes, num_tokens, together) if scopes else None

    def requests_alone(self, together: int) -> Reservation | None:
        """Return what is reserved of requests per minute; None where these are not limited."""
        scopes = tuple(
            ScopeLimits(scope.name, requests=scope.requests)
            for scope in self.scopes
            if scope.requests is not None
        )
        return Reservation(scopes, 0, together) if scopes else None

    def connection_scopes(self) -> tuple[ConnectionScope, ...]:
        """Return whose connections are counted."""
        limits = zip(self.scopes, (self.of_tenant, self.of_key), strict=True)
        return tuple(
            ConnectionScope(scope.name, quotas.connections)
            for scope, quotas in limits
            if quotas.connections is not None
        )

    def default_max_tokens(self, prompt_len: int) -> int | None:
        """Return how long an answer may get whose client named no limit; None for any length."""
        both = (self.of_tenant.tokens_per_minute, self.of_key.tokens_per_minute)
        limits = [limit for limit in both if limit is not None]
        if not limits:
            return None
        return max(1, min(min(limits) // _SHARE_OF_ANSWER, min(limits) - prompt_len))

    @property
    def scopes(self) -> tuple[ScopeLimits, ScopeLimits]:
        return (
            ScopeLimits.of_tenant(self.tenant, self.of_tenant),
            ScopeLimits.of_key(self.key_id, self.of_key),
        )


class KnownQuotas:
    """The quotas of callers, and what requests reserve of them.

    Owns: nothing; what is remembered of tenants and keys is the directory's.
    Used from: the event loop.
    """

    def __init__(self, limits: Limits, directory: Directory) -> None:
        self._limits = limits
        self._directory = directory

    async def of(self, tenant: str, key_id: str) -> CallerQuotas:
        """Return the quotas that hold for a key of a tenant; none hold while there are no keys.

        Raises:
            StoreError: They are not remembered, and the store does not answer.
        """
        if not key_id:
            return CallerQuotas(tenant, key_id)
        of_tenant = (await self._directory.tenant(tenant)).quotas
        of_key = await self._directory.quotas_of_key(key_id)
        return CallerQuotas(tenant, key_id, of_tenant, of_key)

    async def reservation(self, request: GenerationRequest, together: int) -> Reservation | None:
        """Return what a request reserves, of its tenant's limits and of its key's."""
        caller = await self.of(request.tenant, request.key_id)
        max_output = request.sampling.max_tokens if request.generates else 0
        return caller.reservation(len(request.prompt_token_ids) + max_output, together)

    async def check_requests(self, identity: Identity, together: int = 1) -> None:
        """Raise what so many further requests would be refused with, before there is work for them.

        They are taken when they are queued.
        """
        await self._ask(identity, self._limits.room, together)

    async def take_request(self, identity: Identity) -> None:
        """Take a request that makes no answer, or raise why it is refused."""
        await self._ask(identity, self._limits.take, 1)

    async def _ask(
        self,
        identity: Identity,
        ask: Callable[[str, Reservation], Awaitable[Limited | None]],
        together: int,
    ) -> None:
        caller = await self.of(identity.tenant, identity.key_id)
        reservation = caller.requests_alone(together)
        limited = await ask(identity.tenant, reservation) if reservation else None
        if limited is not None:
            raise refusal_of(limited)

    async def default_max_tokens(self, identity: Identity, prompt_len: int) -> int | None:
        """Return how long an answer may get whose client named no limit; None for any length."""
        caller = await self.of(identity.tenant, identity.key_id)
        return caller.default_max_tokens(prompt_len)

    async def left(self, identity: Identity) -> Allowances:
        """Return what is left of a caller's limits, nothing where the store does not say."""
        try:
            caller = await self.of(identity.tenant, identity.key_id)
            return await self._limits.read(caller.tenant, caller.scopes)
        except StoreError as error:  # an answer that has ended shall not look like one that failed
            logger.log(error.log_level, "what is left of the limits is not known: %s", error)
            return NO_ALLOWANCES
