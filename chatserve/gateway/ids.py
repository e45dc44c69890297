"""Ids of what a gateway creates: a prefix that says what it is, and 128 bits.

An id is all that a client needs to read or stop an answer while there are no keys, so it cannot be
guessed. The one exception is the id of a create that carries the client's own `event_id`: it is a
digest of the frame, so that the same frame sent again, over whichever gateway, names the same
response.
"""

import hashlib
import secrets

_NUM_BYTES = 16


def new_id(prefix: str) -> str:
    """Return a fresh id such as `msg_0123…`; the prefix brings its own separator."""
    return prefix + secrets.token_hex(_NUM_BYTES)


def id_of_frame(prefix: str, frame: str) -> str:
    """Return the id that belongs to exactly this frame."""
    digest = hashlib.blake2b(frame.encode(), digest_size=_NUM_BYTES)
    return prefix + digest.hexdigest()
