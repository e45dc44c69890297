-- The queue of a model: whose turn it is, and how long until it is somebody's.
--
-- Between tenants the order is that of the Virtual Token Counter (Sheng et al., Fairness in Serving
-- Large Language Models, OSDI 2024). Each tenant has a counter of the tokens it was served, input
-- and output each with a weight, and the next request is one of the tenant with the lowest:
--
--   waiting:{model}       tenants with something waiting, by counter
--   counters:{model}      counters of the other tenants, as long as they matter
--   line:{model, tenant}  the tenant's waiting requests, by score
--   seats:{model}         how many requests of each tenant are leased
--   flow:{model}          `depth`: how many requests wait; `floor`: the lowest counter of those that
--                         waited at the last turn, which is that tenant's, as it was then, unless
--                         all that it had was meant for another worker (claim.lua)
--   pace:{model}          how many requests left the queue, by spans of ten seconds
--   deadlines             requests of all models that wait and must end by a time, by that time:
--                         those with a timeout, and those that came back from a worker
--
-- 1. A counter stands in `waiting` or in `counters`, never in both. It only grows.
-- 2. A tenant that comes to wait is lifted to the lowest counter in `waiting`, or to `floor` when
--    nobody waits: what it did not use while it was away is no credit. Tenants that only have
--    something leased do not hold that level down. If they did, one slow answer would pin a
--    tenant's counter to the past, and with it the entry of everyone who comes.
-- 3. A counter above `floor` is a debt and outlives its tenant's last request: coming and going
--    saves nothing. One that is not, with nothing leased, would be lifted anyway, and is forgotten.
--    So are all, and `floor` with them, when nothing of the model waits or is leased.
-- 4. Input is charged at a request's first claim, before the next tenant is chosen, so that a burst
--    does not take all seats; output is charged with the deltas that are written. A request that is
--    claimed again was lost by the service: nothing is charged that its tenant did not want.
--
-- So two tenants that both wait all the time differ in service by at most 2 U, where
-- U = input weight * longest prompt + output weight * longest answer * seats of all workers.
--
-- Within a tenant the order is by score, the time of the first enqueue plus LEVEL_US for each level
-- of priority. A low priority is overtaken for that long and no longer: waiting is what makes a
-- request older, so scores need no update. A request that comes back has its score still, and thus
-- its old place: before all that came later with no greater urgency.

local LEVEL_US = 10 * 1000 * 1000
local SPAN_MS, NUM_SPANS = 10 * 1000, 6
-- How many counters one call looks at: a server that does much at once answers nobody meanwhile.
local MAX_FORGOTTEN = 32

local function renew(key)
  redis.call('EXPIRE', key, TTL.idle)
end

-- The tenant whose turn it is, and its counter; nil when nobody waits.
local function lowest_waiting(model)
  local first = redis.call('ZRANGE', KEY.waiting .. model, 0, 0, 'WITHSCORES')
  return first[1], tonumber(first[2])
end

-- The least counter with which a tenant may come to wait.
local function entry_level(model)
  local _, lowest = lowest_waiting(model)
  return lowest or tonumber(redis.call('HGET', KEY.flow .. model, 'floor') or 0)
end

-- Lift the tenants that wait below a level to it. Only other partitions' service makes one higher
-- than those that wait here, so mostly there is none.
local function lift_waiting(model, level)
  local waiting = KEY.waiting .. model
  for _, tenant in ipairs(redis.call('ZRANGEBYSCORE', waiting, '-inf', '(' .. level)) do
    redis.call('ZADD', waiting, level, tenant)
  end
end

-- Add to the counter of a tenant that has something waiting or leased, where it stands.
local function charge(model, tenant, cost)
  if not redis.call('ZADD', KEY.waiting .. model, 'XX', 'INCR', cost, tenant) then
    redis.call('ZADD', KEY.counters .. model, 'XX', 'INCR', cost, tenant)
  end
end

local function depth_of(model)
  return tonumber(redis.call('HGET', KEY.flow .. model, 'depth') or 0)
end

local function change_depth(model, by)
  redis.call('HINCRBY', KEY.flow .. model, 'depth', by)
  renew(KEY.flow .. model)
end

-- Whether a tenant may add a request. When `max_queue` wait already, still those may that have less
-- than their share of it, one place at the least: nobody can shut the others out. With n tenants
-- waiting there are thus at most max_queue * (1 + 1/2 + ... + 1/n) requests, while n <= max_queue.
local function has_room(model, tenant, max_queue)
  if depth_of(model) < max_queue then return true end
  local own = redis.call('ZCARD', line_key(model, tenant))
  local tenants = redis.call('ZCARD', KEY.waiting .. model) + (own == 0 and 1 or 0)
  return own < math.max(1, math.floor(max_queue / tenants))
end

-- Put a request that has no owner into its tenant's line. It ends at its deadline, or at `until_ms`
-- if that is given and sooner.
local function enter_line(id, until_ms)
  local request = redis.call('HMGET', KEY.request .. id, 'model', 'tenant', 'score', 'deadline_ms')
  local model, tenant, score, deadline_ms = unpack(request)
  local waiting, counters = KEY.waiting .. model, KEY.counters .. model
  local line = line_key(model, tenant)
  if not redis.call('ZSCORE', waiting, tenant) then
    local own = tonumber(redis.call('ZSCORE', counters, tenant) or 0)
    redis.call('ZADD', waiting, math.max(own, entry_level(model)), tenant)
    redis.call('ZREM', counters, tenant)
  end
  redis.call('ZADD', line, score, id)
  change_depth(model, 1)
  local ends_ms = math.min(deadline_ms or math.huge, until_ms or math.huge)
  if ends_ms < math.huge then redis.call('ZADD', KEY.deadlines, ends_ms, id) end
  renew(waiting)
  renew(line)
end

-- Count that a request has left the queue, for the pace.
local function count_departure(model)
  local key, span = KEY.pace .. model, math.floor(now_ms() / SPAN_MS)
  if redis.call('HINCRBY', key, span, 1) > 1 then return end
  for _, old in ipairs(redis.call('HKEYS', key)) do
    if tonumber(old) <= span - NUM_SPANS then redis.call('HDEL', key, old) end
  end
  renew(key)
end

-- Take a request out of its tenant's line, and the tenant out of the queue with its last one.
local function leave_line(id, model, tenant)
  local waiting, counters = KEY.waiting .. model, KEY.counters .. model
  local line = line_key(model, tenant)
  redis.call('ZREM', KEY.deadlines, id)
  if redis.call('ZREM', line, id) == 1 then
    change_depth(model, -1)
    count_departure(model)
  end
  if redis.call('EXISTS', line) == 0 then
    local counter = redis.call('ZSCORE', waiting, tenant)
    if counter then redis.call('ZADD', counters, counter, tenant) end
    redis.call('ZREM', waiting, tenant)
    renew(counters)
  end
  -- A line that nobody claimed from for a day has vanished with what waited in it.
  if redis.call('EXISTS', waiting) == 0 then redis.call('HSET', KEY.flow .. model, 'depth', 0) end
end

local function begin_lease(id, model, tenant, expires_ms)
  redis.call('ZADD', KEY.leases, expires_ms, id)
  redis.call('HINCRBY', KEY.seats .. model, tenant, 1)
  renew(KEY.seats .. model)
end

local function end_lease(id, model, tenant)
  redis.call('ZREM', KEY.leases, id)
  if redis.call('HINCRBY', KEY.seats .. model, tenant, -1) <= 0 then
    redis.call('HDEL', KEY.seats .. model, tenant)
  end
end

-- Forget the counters that matter no more, by rule 3. The seat of a request that vanished with its
-- keys is never given back; it is forgotten when no lease is left at all.
local function forget_counters(model)
  local counters, seats, flow = KEY.counters .. model, KEY.seats .. model, KEY.flow .. model
  if redis.call('EXISTS', KEY.leases) == 0 then redis.call('DEL', seats) end
  if redis.call('EXISTS', KEY.waiting .. model, seats) == 0 then
    redis.call('DEL', counters, flow)
    return
  end
  local floor = redis.call('HGET', flow, 'floor') or 0
  local low = redis.call('ZRANGEBYSCORE', counters, '-inf', floor, 'LIMIT', 0, MAX_FORGOTTEN)
  for _, tenant in ipairs(low) do
    if redis.call('HEXISTS', seats, tenant) == 0 then redis.call('ZREM', counters, tenant) end
  end
end

-- How many ms it takes until `count` requests have left the queue, at the pace of the last minute;
-- false when none has left it in that time. An idle span before the first one does not count.
local function time_until_left(model, count)
  local now, total, first = now_ms(), 0, math.huge
  local departures = redis.call('HGETALL', KEY.pace .. model)
  for i = 1, #departures, 2 do
    local span = tonumber(departures[i])
    if span > math.floor(now / SPAN_MS) - NUM_SPANS then
      total = total + departures[i + 1]
      first = math.min(first, span)
    end
  end
  if total == 0 then return false end
  return math.ceil(count * math.max(now - first * SPAN_MS, SPAN_MS) / total)
end

-- Where a request waits: how many of its tenant's are before it, and in how many ms it may leave
-- the queue (false: unknown). Nil when it does not wait. Tenants take turns, so for each request
-- of its own line up to one of every other tenant goes before it.
local function place_of(id, model, tenant)
  local rank = redis.call('ZRANK', line_key(model, tenant), id)
  if not rank then return nil end
  local turns = (rank + 1) * redis.call('ZCARD', KEY.waiting .. model)
  return {rank, time_until_left(model, math.min(turns, depth_of(model)))}
end
