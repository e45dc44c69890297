"""What stands for a key for a while: the logins of browsers, and tickets for one use.

Owns their tokens and lifetimes. Both are random and stored by their digest, like a key's secret,
and hold the grant of the key that they were made with; whether that is still good is asked of
`api_keys.py` at every use.
"""

import re
import secrets

from chatserve.store import keys
from chatserve.store.api_keys import Grant, digest_of
from chatserve.store.redis_client import RedisClient

LOGIN_TTL_S = 7 * 24 * 3600
"""How long a login lasts without a request."""

TICKET_TTL_S = 30

_LOGIN = re.compile(r"csl_[A-Za-z0-9_-]{43}")
_TICKET = re.compile(r"cst_[A-Za-z0-9_-]{43}")


class Logins:
    """The logins and tickets of the store.

    Owns: nothing in memory.
    Used from: the event loop of a gateway.
    """

    def __init__(self, redis: RedisClient) -> None:
        self._redis = redis

    async def begin(self, grant: Grant) -> str:
        """Return the token of a new login."""
        token = f"csl_{secrets.token_urlsafe(32)}"
        await self._redis.call("SET", _login_key(token), grant.dump(), "EX", LOGIN_TTL_S)
        return token

    async def find(self, token: str) -> Grant | None:
        """Return what a login stands for, and let it last anew; None for one that is over."""
        if not _LOGIN.fullmatch(token):
            return None
        packed = await self._redis.call("GETEX", _login_key(token), "EX", LOGIN_TTL_S)
        return Grant.load(packed) if packed else None

    async def end(self, token: str) -> None:
        """Forget a login, if there is one."""
        if _LOGIN.fullmatch(token):
            await self._redis.call("DEL", _login_key(token))

    async def issue_ticket(self, grant: Grant) -> str:
        """Return a ticket, which can be redeemed once."""
        ticket = f"cst_{secrets.token_urlsafe(32)}"
        await self._redis.call("SET", _ticket_key(ticket), grant.dump(), "EX", TICKET_TTL_S)
        return ticket

    async def redeem_ticket(self, ticket: str) -> Grant | None:
        """Return what a ticket stands for, the first time and never again.

        When the reply is lost and asked for again, the ticket counts as used.
        """
        if not _TICKET.fullmatch(ticket):
            return None
        packed = await self._redis.call("GETDEL", _ticket_key(ticket))
        return Grant.load(packed) if packed else None


def _login_key(token: str) -> str:
    return keys.GLOBAL.key(keys.LOGIN + digest_of(token))


def _ticket_key(ticket: str) -> str:
    return keys.GLOBAL.key(keys.TICKET + digest_of(ticket))
