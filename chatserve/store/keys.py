"""The names, types and lifetimes of everything in the store: the one place that spells a key.

Every key is a prefix and one id; the one that needs two, a model and a tenant, puts the length of
the first in front, so that no choice of names makes two keys equal. Lua scripts get the same
prefixes, lifetimes and rule through `lua_constants()`, placed in front of each script, and build
keys from ids themselves. A script therefore touches keys that it did not declare, which one server
allows and a cluster does not; one XREAD over many logs could not span a cluster's slots either.

    key                  type    lifetime           written by                   read by
    -------------------  ------  -----------------  ---------------------------  ------------------
    cs:response:{id}     hash    its own, see (1)   enqueue, claim, append, (2)  Responses
    cs:request:{id}      hash    while in flight    enqueue, claim, append, (2)  the scripts
    cs:log:{id}          stream  10 min after end   enqueue, append, (2)         ResponseLog, reader
    cs:waiting:{model}   zset    a day, refreshed   enqueue, claim, append, (2)  claim, enqueue
    cs:line:{model, t}   zset    a day, refreshed   enqueue, claim, (2)          claim, position
    cs:counters:{model}  zset    a day, refreshed   enqueue, claim, append, (2)  enqueue
    cs:seats:{model}     hash    a day, refreshed   claim, append, (2)           claim, append, (2)
    cs:flow:{model}      hash    a day, refreshed   enqueue, claim, append, (2)  depth, enqueue
    cs:pace:{model}      hash    a day, refreshed   claim, (2)                   enqueue, position
    cs:deadlines         zset    while not empty    enqueue, claim, (2)          end_overdue
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
    cs:prompts           hash    until removed      add_prompt, remove_prompt    Prompts
    cs:prompt-bell       stream  one entry, a day   add_prompt, remove_prompt    Prompts
    cs:prompt-news:{id}  string  seconds, renewed   PromptNews                   PromptNews

(1) A day at most while in flight, renewed with every lease; afterwards as long as its session, or
    as long as the record itself asks for when it is in none.
(2) cancel, release, reap and end_overdue, which also end requests that nobody owns.

What the queue's keys hold, from `waiting` to `pace`, is told in `lua/fair_queue.lua`; all of one
model but `pace` are gone as soon as nothing of it waits or is leased.

A request is in flight exactly while `cs:request:{id}` exists. Whatever refers to one (a session's
active response, an entry of a queue) is void without it, so that nothing lost can block anything.
"""

RESPONSE = "cs:response:"
REQUEST = "cs:request:"
LOG = "cs:log:"
WAITING = "cs:waiting:"
LINE = "cs:line:"
COUNTERS = "cs:counters:"
SEATS = "cs:seats:"
FLOW = "cs:flow:"
PACE = "cs:pace:"
BELL = "cs:bell:"
INBOX = "cs:inbox:"
SESSION = "cs:session:"
MESSAGES = "cs:messages:"
WORKER = "cs:worker:"
CARD = "cs:card:"
MODEL = "cs:model:"
READER = "cs:reader:"
PROMPT_NEWS = "cs:prompt-news:"

LEASES = "cs:leases"
DEADLINES = "cs:deadlines"
SESSIONS = "cs:sessions"
WORKERS = "cs:workers"
PROMPTS = "cs:prompts"
PROMPT_BELL = "cs:prompt-bell"

IDLE_TTL_S = 24 * 3600
"""How long a thing lives that somebody was to renew and did not."""

LOG_TTL_S = 600
"""How long a log can be replayed after its answer has ended."""

_LUA_PREFIXES = {
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
    "session": SESSION,
    "messages": MESSAGES,
    "leases": LEASES,
    "deadlines": DEADLINES,
    "sessions": SESSIONS,
    "prompts": PROMPTS,
    "prompt_bell": PROMPT_BELL,
}


# The same rule as `line`, for the scripts; a length is in bytes in both.
_LUA_LINE = """
local function line_key(model, tenant)
  return KEY.line .. #model .. ':' .. model .. ':' .. tenant
end
"""


def line(model: str, tenant: str) -> str:
    """Return the key of the requests of one tenant that wait for one model."""
    return f"{LINE}{len(model.encode())}:{model}:{tenant}"


def lua_constants() -> str:
    """Return the Lua statements that give the scripts the names and lifetimes above."""
    prefixes = ", ".join(f"{name} = '{prefix}'" for name, prefix in _LUA_PREFIXES.items())
    lifetimes = f"idle = {IDLE_TTL_S}, log = {LOG_TTL_S}"
    return f"local KEY = {{{prefixes}}}\nlocal TTL = {{{lifetimes}}}\n{_LUA_LINE}"
