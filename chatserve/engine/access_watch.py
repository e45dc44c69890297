"""Ends what a worker does for tenants and keys that have lost access.

Owns who they are, as far as a worker may still meet a request of theirs: one that was queued before
and is claimed afterwards. Nothing here lets anybody in; that is the gateways' business.

A tenant that is gone loses all that was cached and saved of it; of a key only the requests end.
"""

import logging
from collections.abc import Awaitable, Callable, Container, Iterable

from chatserve.engine.api import GenerationRequest, RequestId
from chatserve.engine.engine_thread import EngineThread
from chatserve.engine.response_writer import ResponseWriter
from chatserve.store.tenant_bell import AccessNews, TenantBell

logger = logging.getLogger(__name__)

_LISTEN_MS = 10_000

# More than the bell keeps.
_MAX_REVOKED = 2_000


class AccessWatch:
    """The tenants and keys that lost access lately.

    Owns: their names. Used from: the event loop of a worker.
    """

    def __init__(self, bell: TenantBell, engine: EngineThread, writer: ResponseWriter) -> None:
        self._bell = bell
        self._engine = engine
        self._writer = writer
        self._cursor: str | None = None
        self._revoked: dict[str, None] = {}

    @property
    def bodies(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """What is to be repeated for ever, by the name of its task."""
        return {"access": self._follow}

    def end_revoked(self) -> None:
        """End the open requests of those who have lost access; to be called after a claim."""
        self._writer.cancel(self._ids_of(self._writer.open_requests))

    async def _follow(self) -> None:
        """Wait for news and act on them; what had happened before the start is only noted."""
        if self._cursor is None:
            self._cursor, before = await self._bell.history()
            self._note(before)
        self._cursor, news = await self._bell.wait(self._cursor, _LISTEN_MS)
        known = set(self._revoked)
        self._note(news)
        self.end_revoked()
        self._drop_cached(news, known)

    def _drop_cached(self, news: Iterable[AccessNews], known: Container[str]) -> None:
        """Drop what is cached of tenants that are gone, those that were known to be among them.

        The bell rings when a removal begins and once more when it is over, since what was in flight
        in between may have left something; it is told once.
        """
        for tenant in dict.fromkeys(
            each.tenant for each in news if each.is_revoked and not each.key_id
        ):
            if _subject(tenant, "") not in known:
                logger.info("tenant %r is gone, dropping what is cached of it", tenant)
            self._engine.revoke(tenant)

    def _note(self, news: Iterable[AccessNews]) -> None:
        for each in news:
            subject = _subject(each.tenant, each.key_id)
            self._revoked.pop(subject, None)
            if each.is_revoked:
                self._revoked[subject] = None
        while len(self._revoked) > _MAX_REVOKED:
            del self._revoked[next(iter(self._revoked))]

    def _ids_of(self, requests: Iterable[GenerationRequest]) -> list[RequestId]:
        return [
            request.request_id
            for request in requests
            if _subject(request.tenant, "") in self._revoked
            or (request.key_id and _subject(request.tenant, request.key_id) in self._revoked)
        ]


def _subject(tenant: str, key_id: str) -> str:
    """Return a name for a tenant or one of its keys; a slash is in no name of a tenant."""
    return f"{tenant}/{key_id}"
