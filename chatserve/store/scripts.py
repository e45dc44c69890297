"""The Lua scripts, as sources and digests.

Owns how a script is put together: flags, the constants of `keys.py`, the files of shared functions,
then the file itself. Running one is `RedisClient.run`. What a script does, takes and returns, and
why it has to be one script, stands at the top of its file in `lua/`.

The first line makes the server hold a script to its word: it may touch no key of another partition,
and one that admits something new is refused as a whole when the server's memory is full. All
others may write then, since they end or go on with what was admitted, and nothing gets free
without them.
"""

import hashlib
from dataclasses import dataclass
from importlib import resources

from chatserve.store.keys import lua_constants

# Each may use what stands before it.
_SHARED = ("common", "fair_queue", "limits", "usage", "tenants", "conversation", "endings")


@dataclass(frozen=True, slots=True)
class Script:
    """A Lua script and the digest under which a server remembers it."""

    name: str
    source: str
    sha: str


def _read(name: str) -> str:
    return resources.files(__package__).joinpath("lua", f"{name}.lua").read_text("utf-8")


def _load(name: str, *, admits: bool = False) -> Script:
    head = "#!lua\n" if admits else "#!lua flags=allow-oom\n"
    source = head + lua_constants() + "".join(map(_read, (*_SHARED, name)))
    return Script(name, source, hashlib.sha1(source.encode()).hexdigest())


ENQUEUE = _load("enqueue", admits=True)
CLAIM = _load("claim")
EXTEND = _load("extend")
RELEASE = _load("release")
REAP = _load("reap")
END_OVERDUE = _load("end_overdue")
STAGE = _load("stage")
CANCEL = _load("cancel")
APPEND = _load("append")
FOLLOW = _load("follow")
UNFOLLOW = _load("unfollow")
JOIN_READERS = _load("join_readers")
LEAVE_READERS = _load("leave_readers")
CREATE_SESSION = _load("create_session", admits=True)
SHOW_SESSIONS = _load("show_sessions", admits=True)
UPDATE_SESSION = _load("update_session", admits=True)
DELETE_SESSION = _load("delete_session")
APPEND_MESSAGES = _load("append_messages", admits=True)
DELETE_MESSAGE = _load("delete_message")
DELETE_RESPONSE = _load("delete_response")
ADD_PROMPT = _load("add_prompt", admits=True)
CHANGE_PROMPT = _load("change_prompt", admits=True)
REMOVE_PROMPT = _load("remove_prompt")
PUT_TENANT = _load("put_tenant", admits=True)
FORGET_TENANT = _load("forget_tenant")
ADD_KEY = _load("add_key", admits=True)
CHANGE_KEY = _load("change_key")
ROTATE_KEY = _load("rotate_key")
REVOKE_KEY = _load("revoke_key")
READ_LIMITS = _load("read_limits")
TAKE_REQUEST = _load("take_request")
COUNT_CONNECTION = _load("count_connection", admits=True)
RENEW_CONNECTIONS = _load("renew_connections")
BEGIN_LOGIN = _load("begin_login", admits=True)
END_LOGIN = _load("end_login")
BEAT = _load("beat")
