"""The Lua scripts, as sources and digests.

Owns how a script is put together: the constants of `keys.py`, the files of shared functions, then
the file itself. Running one is `RedisClient.run`. What a script does, takes and returns, and why
it has to be one script, stands at the top of its file in `lua/`.
"""

import hashlib
from dataclasses import dataclass
from importlib import resources

from chatserve.store.keys import lua_constants

# Each may use what stands before it.
_SHARED = ("common", "fair_queue", "endings")


@dataclass(frozen=True, slots=True)
class Script:
    """A Lua script and the digest under which a server remembers it."""

    name: str
    source: str
    sha: str


def _read(name: str) -> str:
    return resources.files(__package__).joinpath("lua", f"{name}.lua").read_text("utf-8")


def _load(name: str) -> Script:
    source = lua_constants() + "".join(map(_read, (*_SHARED, name)))
    return Script(name, source, hashlib.sha1(source.encode()).hexdigest())


ENQUEUE = _load("enqueue")
CLAIM = _load("claim")
EXTEND = _load("extend")
RELEASE = _load("release")
REAP = _load("reap")
END_OVERDUE = _load("end_overdue")
POSITION = _load("position")
CANCEL = _load("cancel")
APPEND = _load("append")
CREATE_SESSION = _load("create_session")
UPDATE_SESSION = _load("update_session")
DELETE_SESSION = _load("delete_session")
DELETE_RESPONSE = _load("delete_response")
ADD_PROMPT = _load("add_prompt")
REMOVE_PROMPT = _load("remove_prompt")
