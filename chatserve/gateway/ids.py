"""Ids of what a gateway creates: a prefix that says what it is, and 128 bits.

An id is all that a client needs to read or stop an answer while there are no keys, so it cannot be
guessed. The one exception is the id of a create that carries the client's own `event_id`: it is a
digest of that and of whose it is, so that the same create sent again, over whichever gateway, names
the same response. A tenant's mark goes into it, so that one that comes back under the name of a
tenant that was removed is somebody else.
"""

import hashlib
import secrets

import orjson

from chatserve.identity import Identity
from chatserve.store.keys import digit_of

_NUM_BYTES = 16


def new_id(prefix: str, tenant: str | None = None) -> str:
    """Return a fresh id such as `msg_0123…`; the prefix brings its own separator.

    Name the tenant for what has keys of its own in the store: its digit stands first.
    """
    digits = secrets.token_hex(_NUM_BYTES)
    return prefix + digits if tenant is None else f"{prefix}{digit_of(tenant):x}{digits[1:]}"


def id_of_event(prefix: str, identity: Identity, *words: str) -> str:
    """Return the id of what one user's event with this id asks for.

    Another user's event of the same id means something else, and so does any other word.
    """
    named = orjson.dumps([*identity.owner, identity.tenant_mark, *words])
    digest = hashlib.blake2b(named, digest_size=_NUM_BYTES).hexdigest()
    return f"{prefix}{digit_of(identity.tenant):x}{digest[1:]}"
