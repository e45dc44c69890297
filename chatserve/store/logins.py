"""What stands for a key for a while: the logins of browsers, and tickets for one use.

Owns their tokens and lifetimes. Both are random and stored by their digest, like a key's secret,
and hold the grant of the key that they were made with; whether that is still good is asked of
`api_keys.py` at every use. The grant of a login names the login, and so does that of a ticket that
was issued to it.
"""

import re
import secrets
import time

from chatserve.store import keys, scripts
from chatserve.store.api_keys import Grant, digest_of
from chatserve.store.redis_client import RedisClient

LOGIN_TTL_S = 7 * 24 * 3600
"""How long a login lasts without a request."""

MAX_LOGINS_OF_KEY = 32
"""How many browsers may be logged in with one key; the oldest login ends for another."""

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
        held = f"{int(time.time())}:{grant.key_id}:{grant.digest}"
        await self._redis.run(
            scripts.BEGIN_LOGIN,
            keys.GLOBAL.root,
            grant.key_id,
            digest_of(token),
            held,
            LOGIN_TTL_S,
            MAX_LOGINS_OF_KEY,
        )
        return token

    async def find(self, token: str) -> Grant | None:
        """Return what a login stands for, and let it last anew; None for one that is over."""
        if not _LOGIN.fullmatch(token):
            return None
        held = await self._redis.call("GETEX", _login_key(token), "EX", LOGIN_TTL_S)
        return _grant_of(held, digest_of(token))

    async def is_on(self, grant: Grant) -> bool:
        """Return whether the login of a grant is still on; one that names none needs none."""
        if not grant.login:
            return True
        held = await self._redis.call("GET", keys.GLOBAL.key(keys.LOGIN + grant.login))
        return _grant_of(held, grant.login) is not None

    async def end(self, token: str) -> None:
        """End a login, if there is one, and with it whatever was opened with it."""
        grant = await self.find(token)
        if grant is not None:
            await self._redis.run(scripts.END_LOGIN, keys.GLOBAL.root, grant.key_id, grant.login)

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


def _grant_of(held: str | None, login: str) -> Grant | None:
    """Return the grant that a login holds; None for one that is over."""
    if not held:
        return None
    began_at, key_id, digest = held.split(":")
    if time.time() - int(began_at) > keys.LOGIN_MAX_AGE_S:
        return None
    return Grant(key_id, digest, login)


def _login_key(token: str) -> str:
    return keys.GLOBAL.key(keys.LOGIN + digest_of(token))


def _ticket_key(ticket: str) -> str:
    return keys.GLOBAL.key(keys.TICKET + digest_of(ticket))
