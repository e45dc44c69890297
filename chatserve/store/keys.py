"""The names, types and lifetimes of everything in the store: the one place that spells a key.

Every key is a prefix and one id. Lua scripts get the same prefixes and lifetimes through
`lua_constants()`, placed in front of each script, and build keys from ids themselves. A script
therefore touches keys that it did not declare, which one server allows and a cluster does not;
one XREAD over many logs could not span a cluster's slots either.

    key                  type    lifetime           written by                   read by
    -------------------  ------  -----------------  ---------------------------  ------------------
    cs:response:{id}     hash    its own, see (1)   enqueue, claim, append, (2)  Responses
    cs:request:{id}      hash    while in flight    enqueue, claim, append, (2)  the scripts
    cs:log:{id}          stream  10 min after end   enqueue, append, (2)         ResponseLog, reader
    cs:queue:{model}     list    while not empty    enqueue, claim, (2)          claim, position
    cs:bell:{model}      stream  one entry, a day   whoever fills the queue      wait_for_work
    cs:leases            zset    while not empty    claim, extend, append, (2)   reap
    cs:inbox:{worker}    stream  a day              cancel                       wait_for_work
    cs:session:{id}      hash    until deleted      Sessions, enqueue, append    Sessions, enqueue
    cs:messages:{id}     stream  with its session   create, enqueue, append      Sessions
    cs:sessions          zset    until deleted      with cs:session              Sessions.list
    cs:worker:{id}       string  its heartbeat      Workers.heartbeat            Workers.live
    cs:workers           set     pruned by live     Workers.heartbeat            Workers.live
    cs:card:{hash}       string  a day, refreshed   Workers.publish_card         Workers.card
    cs:model:{name}      string  a day, refreshed   Workers.publish_card         Workers.card
    cs:reader:{id}       stream  one entry, a day   LogReader                    the same LogReader

(1) A day at most while in flight, renewed with every lease; afterwards as long as its session, or
    as long as the record itself asks for when it is in none.
(2) cancel, release and reap, which also end requests that nobody owns.

A request is in flight exactly while `cs:request:{id}` exists. Whatever refers to one (a session's
active response, an entry of a queue) is void without it, so that nothing lost can block anything.
"""

RESPONSE = "cs:response:"
REQUEST = "cs:request:"
LOG = "cs:log:"
QUEUE = "cs:queue:"
BELL = "cs:bell:"
INBOX = "cs:inbox:"
SESSION = "cs:session:"
MESSAGES = "cs:messages:"
WORKER = "cs:worker:"
CARD = "cs:card:"
MODEL = "cs:model:"
READER = "cs:reader:"

LEASES = "cs:leases"
SESSIONS = "cs:sessions"
WORKERS = "cs:workers"

IDLE_TTL_S = 24 * 3600
"""How long a thing lives that somebody was to renew and did not."""

LOG_TTL_S = 600
"""How long a log can be replayed after its answer has ended."""

_LUA_PREFIXES = {
    "response": RESPONSE,
    "request": REQUEST,
    "log": LOG,
    "queue": QUEUE,
    "bell": BELL,
    "inbox": INBOX,
    "session": SESSION,
    "messages": MESSAGES,
    "leases": LEASES,
    "sessions": SESSIONS,
}


def lua_constants() -> str:
    """Return the Lua statements that give the scripts the names and lifetimes above."""
    prefixes = ", ".join(f"{name} = '{prefix}'" for name, prefix in _LUA_PREFIXES.items())
    return f"local KEY = {{{prefixes}}}\nlocal TTL = {{idle = {IDLE_TTL_S}, log = {LOG_TTL_S}}}\n"
