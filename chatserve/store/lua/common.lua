-- Functions that several scripts share. This file stands in front of every script, after the
-- constants of keys.py (KEY: prefixes, TTL: lifetimes in seconds, line_key).
--
-- Fields of request:{id}, which exists exactly while the request is in flight:
--   payload, model, tenant, user   what to do, and for whom
--   input_tokens                   the length of the prompt
--   score                          its place in its tenant's line, see fair_queue.lua
--   enqueued_ms                    server time of the first enqueue
--   timeout_ms, deadline_ms        how long after that it must end, and when; neither is often set
--   route                          which worker should rather take it than another, see claim.lua
--   epoch, owner                   the current lease; no owner while it is queued
--   prefill                        how far its owner is with a long prompt, see extend.lua
--   output_weight                  what its owner is charged for an output token
--   output_tokens                  how many of them its tenant was charged for
--   next                           the number of the next event of its log
--   cancelled                      set when a cancel reached it under an owner
--   times_lost                     how many leases have run out
--   limits                         what it reserved of which limits, if of any; see limits.lua
--   feeds                          the feeds that its events are copied to, see log_reader.py
--   reader:{gateway}               set while that gateway has readers of the answer, see reading.py
--   session_id, message_id         where the answer goes at the end; session_id may be empty
--   parent_id                      in a session, the message that the answer follows
--   continues                      set when it goes on with that message, which is an answer

-- Server time, the one clock that all gateways and workers share.
local function now_us()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

local function now_ms()
  return math.floor(now_us() / 1000)
end

-- A run of values inside ARGV: ARGV[at] says how many follow.
-- Returns the values and the place after them; nil past the end.
local function take(at)
  local count = tonumber(ARGV[at])
  if not count then return nil end
  return {unpack(ARGV, at + 1, at + count)}, at + count + 1
end

-- Whether a hash says already what ARGV from `at` on would set, name by name. A change whose reply was
-- lost is sent again, and must not look like somebody else's.
local function says_already(key, at)
  for i = at, #ARGV, 2 do
    if redis.call('HGET', key, ARGV[i]) ~= ARGV[i + 1] then return false end
  end
  return #ARGV > at
end

-- How many token ids a comma list has.
local function count_ids(list)
  if list == '' then return 0 end
  return select(2, string.gsub(list, ',', '')) + 1
end

-- How many events a feed holds: whoever is behind by more finds them in the logs.
local MAX_FEED = 10000

-- Write event number `number` of a log, and copy it to the feeds that follow it. `fields` is a flat
-- list of names and values. A feed whose reader is gone has run out, and is not made anew.
local function log_event(id, number, fields)
  redis.call('XADD', KEY.log .. id, (number + 1) .. '-0', unpack(fields))
  local feeds = redis.call('HGET', KEY.request .. id, 'feeds')
  if not feeds then return end
  for feed in string.gmatch(feeds, '%S+') do
    redis.call('XADD', KEY.feed .. feed, 'NOMKSTREAM', 'MAXLEN', '~', MAX_FEED, '*',
      'log', id, 'number', number, unpack(fields))
  end
end

-- Whoever owns a request renews the life of all its keys, so that they vanish together or never.
local function keep_alive(id)
  redis.call('EXPIRE', KEY.request .. id, TTL.idle)
  redis.call('EXPIRE', KEY.response .. id, TTL.idle)
  redis.call('EXPIRE', KEY.log .. id, TTL.idle)
end

-- Wake whoever waits at a bell. One entry is enough: they only need to see that it is new.
local function ring_bell(bell)
  redis.call('XADD', bell, 'MAXLEN', '1', '*', 'n', '1')
  redis.call('EXPIRE', bell, TTL.idle)
end

-- Wake the workers of a model.
local function ring(model)
  ring_bell(KEY.bell .. model)
end
