"""The names, types and lifetimes of everything in the store: the one place that spells a key.

A key is the root of its partition, a kind and mostly one id; the one that needs two, a model and a
tenant, puts the length of the first in front, so that no choice of names makes two keys equal.

All that belongs to a tenant lies in one partition: `cs:{0}` on a single server, one of `cs:{0}` to
`cs:{f}` on a cluster, by a digest of the tenant's name. Ids carry the digit (`resp_7…`), so that an
id alone leads to its keys. What belongs to nobody lies in `cs:{g}`. The braces are what a cluster
hashes: a partition never spans two of its slots, and a script only touches the one partition whose
root it is given as KEYS[1]. It gets kinds, lifetimes and rules from `lua_constants()`, placed in
front of each script.

    kind                 type    lifetime           written by                   read by
    -------------------  ------  -----------------  ---------------------------  ------------------
    response:{id}        hash    its own, see (1)   enqueue, claim, append, (2)  Responses
    request:{id}         hash    while in flight    enqueue, claim, extend,      the scripts
                                                    append, join_readers, (2)
    log:{id}             stream  10 min, see (3)    enqueue, append, (2)         ResponseLog, reader
    waiting:{model}      zset    a day, refreshed   enqueue, claim, append, (2)  claim, enqueue
    line:{model, t}      zset    a day, refreshed   enqueue, claim, (2)          claim, QueueLoad
    counters:{model}     zset    a day, refreshed   enqueue, claim, append, (2)  enqueue
    seats:{model}        hash    a day, refreshed   claim, append, (2)           claim, QueueLoad
    flow:{model}         hash    a day, refreshed   enqueue, claim, append, (2)  depth, enqueue
    pace:{model}         hash    a day, refreshed   claim, (2)                   enqueue, stage
    deadlines            zset    while not empty    enqueue, claim, (2)          end_overdue
    bell:{model}         stream  one entry, a day   whoever fills the queue      wait_for_work
    leases               zset    while not empty    claim, extend, append, (2)   reap
    inbox:{worker}       stream  a day              cancel, leave_readers        wait_for_work
    session:{id}         hash    until del., (4)     Sessions, enqueue, append    Sessions, enqueue
    messages:{id}        stream  with its session   create, enqueue, append      Sessions
    tree:{id}            hash    with its session   with messages                Sessions, enqueue
    sessions:{owner}     zset    until deleted      with session                 Sessions.list
    archived:{owner}     zset    until deleted      with session                 Sessions.list
    pinned:{owner}       zset    until deleted      with session                 Sessions.list
    meters:{scope}       hash    2 idle minutes     enqueue, append, (2)         enqueue, Limits
    parallel:{scope}     zset    a day, refreshed   enqueue, append, (2)         enqueue
    connections:{scope}  zset    seconds, renewed   ConnectionLeases             ConnectionLeases
    usage:{tenant, day}  hash    400 days           append, (2)                  UsageCounters
    usage-tenants        zset    400 days           append, (2)                  UsageCounters
    worker:{id}          string  its heartbeat      Workers.heartbeat            Workers.live
    digest:{worker}      string  its heartbeat      Workers.publish_digest       Workers.digests
    cache-watch:{w}      string  seconds, renewed   CacheSnapshots.watch         CacheSnapshots
    cache-snapshot:{w}   string  seconds, renewed   CacheSnapshots.publish       CacheSnapshots.read
    probe                string  10 minutes         Store.probe                  nobody
    workers              zset    pruned by beats    Workers.heartbeat            Workers.live
    card:{hash}          string  a day, refreshed   Workers.publish_card         Workers.card
    model:{name}         string  a day, refreshed   Workers.publish_card         Workers.card
    feed:{reader}        stream  a minute, renewed  LogReader, append, (2)       the same LogReader
    prompts              hash    until removed      add, change, remove_prompt   Prompts
    prompt-versions:{p}  hash    with its prompt    add_prompt, remove_prompt    Prompts
    prompt-bell          stream  one entry, a day   add, change, remove_prompt   Prompts
    prompt-news:{id}     string  seconds, renewed   PromptNews                   PromptNews
    tenant:{name}        hash    until removed      put_tenant, forget_tenant    Tenants
    tenants              zset    until removed      put_tenant, forget_tenant    Tenants.list
    key:{id}             hash    until revoked      add, change, rotate, revoke  ApiKeys
    keys                 zset    until revoked      add_key, revoke_key          ApiKeys.list
    users:{tenant}       zset    until removed      create, show_sessions        TenantContents
    responses:{tenant}   zset    as long as they    enqueue, append, (2)         TenantContents
    tenant-bell          stream  a day              whoever writes the four      TenantBell
    login:{digest}       string  7 days, refreshed  begin_login                  Logins.find
    logins:{key}         zset    30 days            begin_login, end_login       begin_login
    ticket:{digest}      string  30 s, one use      Logins.issue_ticket          redeem_ticket

(1) A day at most while in flight, renewed with every lease; afterwards as long as its session, or
    as long as the record itself asks for when it is in none.
(2) cancel, leave_readers, release, reap and end_overdue, which also end requests that nobody
    owns.
(3) After the end of its answer, or a minute where the response was deleted meanwhile.
(4) Ten minutes while it is hidden, see `Sessions.create`.

What the queue's keys hold, from `waiting` to `pace`, is told in `lua/fair_queue.lua`; all of one
model but `pace` are gone as soon as nothing of it waits or is leased.

A request is in flight exactly while `cs:request:{id}` exists. Whatever refers to one (a session's
active response, an entry of a queue) is void without it, so that nothing lost can block anything.
"""

import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T", bound=str)

RESPONSE = "response:"
REQUEST = "request:"
LOG = "log:"
WAITING = "waiting:"
LINE = "line:"
COUNTERS = "counters:"
SEATS = "seats:"
FLOW = "flow:"
PACE = "pace:"
BELL = "bell:"
INBOX = "inbox:"
SESSION = "session:"
MESSAGES = "messages:"
TREE = "tree:"
SESSIONS = "sessions:"
ARCHIVED = "archived:"
PINNED = "pinned:"
METERS = "meters:"
PARALLEL = "parallel:"
CONNECTIONS = "connections:"
USAGE = "usage:"
USAGE_TENANTS = "usage-tenants"
WORKER = "worker:"
DIGEST = "digest:"
CACHE_WATCH = "cache-watch:"
CACHE_SNAPSHOT = "cache-snapshot:"
CARD = "card:"
MODEL = "model:"
FEED = "feed:"
PROMPT_NEWS = "prompt-news:"
PROMPT_VERSIONS = "prompt-versions:"

LEASES = "leases"
DEADLINES = "deadlines"
WORKERS = "workers"
PROBE = "probe"
PROMPTS = "prompts"
PROMPT_BELL = "prompt-bell"

TENANT = "tenant:"
TENANTS = "tenants"
API_KEY = "key:"
API_KEYS = "keys"
TENANT_BELL = "tenant-bell"
USERS = "users:"
RESPONSES = "responses:"
LOGIN = "login:"
LOGINS = "logins:"
TICKET = "ticket:"

IDLE_TTL_S = 24 * 3600
"""How long a thing lives that somebody was to renew and did not."""

LOGIN_MAX_AGE_S = 30 * 24 * 3600
"""How long a login lasts at most, however often it is used."""

LOG_TTL_S = 600
"""How long a log can be replayed after its answer has ended."""

DELETED_LOG_TTL_S = 60
"""How long the log of a deleted response stays after its end, for those who are reading it."""

HIDDEN_TTL_S = 600
"""How long a session stays that is part of something larger, of which the rest does not come."""

METERS_TTL_S = 120
"""How long the meters of a scope matter that nobody uses: after a minute they stand at zero."""

USAGE_TTL_S = 400 * 24 * 3600
"""How long a day's usage is kept: a year, and a month to write the bill for it."""

_DIGITS = "0123456789abcdef"
_DIGIT_OF_ID = re.compile(r"[a-z]+[_-]([0-9a-f])")


@dataclass(frozen=True, slots=True)
class Partition:
    """A part of the store that lies on one server whole. `root` begins the names of its keys."""

    root: str

    def key(self, name: str) -> str:
        """Return the key of a kind and an id, such as `RESPONSE + response_id`."""
        return f"{self.root}:{name}"


FIRST = Partition("cs:{0}")
"""The only partition of tenants on a server that is no cluster."""

GLOBAL = Partition("cs:{g}")

PARTITIONS = tuple(Partition(f"cs:{{{digit}}}") for digit in _DIGITS)


@dataclass(frozen=True, slots=True)
class Partitions:
    """The partitions of tenants that a store has: one, or all of them on a cluster."""

    all: tuple[Partition, ...] = (FIRST,)

    def of_tenant(self, tenant: str) -> Partition:
        return self.all[digit_of(tenant) % len(self.all)]

    def of_id(self, name: str) -> Partition:
        """Return where the thing with an id is; one that carries no digit is in the first."""
        found = _DIGIT_OF_ID.match(name)
        return self.all[_DIGITS.index(found[1]) % len(self.all)] if found else self.all[0]

    def by_id(self, names: Iterable[T]) -> dict[Partition, list[T]]:
        """Return ids by the partition that they are in."""
        found: dict[Partition, list[T]] = {}
        for name in names:
            found.setdefault(self.of_id(name), []).append(name)
        return found


def digit_of(tenant: str) -> int:
    """Return the digit, 0 to 15, that all ids of a tenant carry."""
    return zlib.crc32(tenant.encode()) % len(_DIGITS)


_LUA_KINDS = {
    "response": RESPONSE,
    "request": REQUEST,
    "log": LOG,
    "waiting": WAITING,
    "line": LINE,
    "counters": COUNTERS,
    "seats": SEATS,
    "flow": FLOW,
    "pace": PACE,
    "bell": BELL,
    "inbox": INBOX,
    "feed": FEED,
    "session": SESSION,
    "messages": MESSAGES,
    "tree": TREE,
    "meters": METERS,
    "parallel": PARALLEL,
    "connections": CONNECTIONS,
    "usage": USAGE,
    "usage_tenants": USAGE_TENANTS,
    "leases": LEASES,
    "deadlines": DEADLINES,
    "sessions": SESSIONS,
    "archived": ARCHIVED,
    "pinned": PINNED,
    "prompts": PROMPTS,
    "prompt_bell": PROMPT_BELL,
    "prompt_versions": PROMPT_VERSIONS,
    "tenant": TENANT,
    "tenants": TENANTS,
    "api_key": API_KEY,
    "api_keys": API_KEYS,
    "tenant_bell": TENANT_BELL,
    "users": USERS,
    "responses": RESPONSES,
    "login": LOGIN,
    "logins": LOGINS,
    "worker": WORKER,
    "workers": WORKERS,
    "digest": DIGEST,
    "card": CARD,
    "model": MODEL,
}

_LUA_LIFETIMES = {
    "idle": IDLE_TTL_S,
    "log": LOG_TTL_S,
    "deleted_log": DELETED_LOG_TTL_S,
    "hidden": HIDDEN_TTL_S,
    "login": LOGIN_MAX_AGE_S,
    "meters": METERS_TTL_S,
    "usage": USAGE_TTL_S,
}

# The same rule as `line`, for the scripts; a length is in bytes in both.
_LUA_LINE = """
local function line_key(model, tenant)
  return KEY.line .. #model .. ':' .. model .. ':' .. tenant
end
"""


def line(model: str, tenant: str) -> str:
    """Return kind and id of the requests of one tenant that wait for one model."""
    return f"{LINE}{len(model.encode())}:{model}:{tenant}"


def owner(tenant: str, user: str) -> str:
    """Return the id under which the lists of a user's sessions stand; `list_of` is its twin."""
    return f"{tenant}/{user}"


def lua_constants() -> str:
    """Return the Lua statements that give the scripts the keys and lifetimes above."""
    kinds = ", ".join(f"{name} = KEYS[1] .. ':{kind}'" for name, kind in _LUA_KINDS.items())
    lifetimes = ", ".join(f"{name} = {seconds}" for name, seconds in _LUA_LIFETIMES.items())
    return f"local KEY = {{{kinds}}}\nlocal TTL = {{{lifetimes}}}\n{_LUA_LINE}"
