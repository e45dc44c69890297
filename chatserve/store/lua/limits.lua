-- What a tenant and a key may use: requests and tokens per minute, and responses at a time. Shared
-- by the scripts like common.lua.
--
-- Each of them is a scope. A meter shows what a scope has used of a limit: it rises with every
-- reservation and runs down all the time, by the limit in a minute and never below zero. This is
-- the leaky bucket as a meter (Turner, New Directions in Communications, IEEE Communications
-- Magazine 24, 1986); a bucket that fills up with tokens is the same thing seen from its other end.
--
--   meters:{scope}    `requests`, `tokens`: how high they stood at the time `at`, in us. After two
--                     idle minutes they stand at zero, and the key is gone.
--   parallel:{scope}  ids of the requests in flight, by the time of their enqueue
--
-- 1. A request is taken if it fits under all limits of all its scopes; else nothing is reserved. It
--    reserves the tokens of its prompt and of the longest answer it may get.
-- 2. When it ends, however it does, it gives back what it did not use, but not what has run down of
--    it by then: that room was there for others already. A reservation of R tokens of which A were
--    used after t minutes gives back R - max(A, t * limit). One that no worker ever had used none.
--
-- So a meter never stands lower than one that was charged exactly A at the enqueue. Their distance
-- is at least the sum of what the requests in flight will give back: it begins as R - A; it shrinks
-- only where the exact meter stands at zero and this one runs down, which is by no more than what
-- each of them gives back less for it. Hence requests that were taken within t minutes use at most
-- limit * (1 + t) tokens, however many gateways ask at once.

local MINUTE_US = 60 * 1000 * 1000
local METERS = {'requests', 'tokens'}
-- How many requests in flight are looked at before a scope is said to have too many.
local MAX_LOOKED_AT = 64

-- Each meter of a scope as it stands now, by its name.
local function read_meters(scope, now)
  local stored = redis.call('HMGET', KEY.meters .. scope.name, 'at', unpack(METERS))
  local minutes = math.max(0, now - (stored[1] or now)) / MINUTE_US
  local meters = {}
  for i, name in ipairs(METERS) do
    if scope[name] then
      meters[name] = math.max(0, (stored[i + 1] or 0) - minutes * scope[name])
    end
  end
  return meters
end

local function write_meters(scope, meters, now)
  local key = KEY.meters .. scope.name
  redis.call('HSET', key, 'at', now)
  for name, level in pairs(meters) do redis.call('HSET', key, name, level) end
  redis.call('EXPIRE', key, TTL.meters)
end

-- How many requests of a scope are in flight. An id without its request was lost with its keys:
-- before somebody is refused, the oldest are looked at, and such are forgotten.
local function num_parallel(scope, need)
  local key = KEY.parallel .. scope.name
  if redis.call('ZCARD', key) + need > scope.parallel then
    for _, id in ipairs(redis.call('ZRANGE', key, 0, MAX_LOOKED_AT - 1)) do
      if redis.call('EXISTS', KEY.request .. id) == 0 then redis.call('ZREM', key, id) end
    end
  end
  return redis.call('ZCARD', key)
end

-- Why `need` does not fit on top of `used`: {'limited', scope, name, limit, what is left of it,
-- need, in how many ms it may fit}; nil when it does. It never fits (false) above the whole limit.
local function shortage(scope, name, used, need)
  local limit = scope[name]
  if not limit or used + need <= limit then return nil end
  local retry_ms = need <= limit and 1000
  if retry_ms and name ~= 'parallel' then
    retry_ms = math.ceil((used + need - limit) / limit * MINUTE_US / 1000)
  end
  return {'limited', scope.name, name, limit, math.max(0, math.floor(limit - used)), need, retry_ms}
end

-- Of two refusals, that which keeps a client away for longer.
local function longer(one, other)
  if not one or not other then return one or other end
  return (other[7] or math.huge) > (one[7] or math.huge) and other or one
end

local function shortage_of_scope(scope, meters, limits)
  local need = limits.together
  local worst = shortage(scope, 'tokens', meters.tokens, need * limits.tokens)
  worst = longer(worst, shortage(scope, 'requests', meters.requests, need))
  if not scope.parallel then return worst end
  return longer(worst, shortage(scope, 'parallel', num_parallel(scope, need), need))
end

-- What a client is told: for each meter {limit, how much is left, in how many ms all of it is},
-- of the scope that leaves the least; false where there is no limit.
local function tell_limits(scopes)
  local now, told = now_us(), {requests = false, tokens = false}
  for _, scope in ipairs(scopes) do
    for name, used in pairs(read_meters(scope, now)) do
      local limit = scope[name]
      local left = math.max(0, math.floor(limit - used))
      if not told[name] or left < told[name][2] then
        told[name] = {limit, left, limit > 0 and math.ceil(used / limit * MINUTE_US / 1000) or 0}
      end
    end
  end
  return {told.requests, told.tokens}
end

-- Whether a request fits under the limits of its scopes: nil, or the reply that refuses it, which is
-- the shortage that lasts longest and what tell_limits says; and the meters of each scope.
-- `limits` has scopes (a list: name, and requests, tokens, parallel where limited), tokens (what to
-- reserve) and together: how many requests like this one must fit, this one included. It reserves
-- for itself only; the others, the further choices of one body, do so when they come.
local function refusal_by_limits(limits, now)
  local meters, refusal = {}, nil
  for i, scope in ipairs(limits.scopes) do
    meters[i] = read_meters(scope, now)
    refusal = longer(refusal, shortage_of_scope(scope, meters[i], limits))
  end
  if refusal then refusal[#refusal + 1] = tell_limits(limits.scopes) end
  return refusal, meters
end

-- Let the meters rise by a request that fits.
local function raise_meters(limits, meters, now)
  for i, scope in ipairs(limits.scopes) do
    if meters[i].requests then meters[i].requests = meters[i].requests + 1 end
    if meters[i].tokens then meters[i].tokens = meters[i].tokens + limits.tokens end
    write_meters(scope, meters[i], now)
  end
end

-- Take a request that is queued now. Returns nil, or the reply that refuses it.
local function reserve(id, limits)
  local now = now_us()
  local refusal, meters = refusal_by_limits(limits, now)
  if refusal then return refusal end
  raise_meters(limits, meters, now)
  for _, scope in ipairs(limits.scopes) do
    if scope.parallel then
      redis.call('ZADD', KEY.parallel .. scope.name, now, id)
      redis.call('EXPIRE', KEY.parallel .. scope.name, TTL.idle)
    end
  end
  redis.call('HSET', KEY.request .. id, 'limits', cjson.encode(limits))
end

-- Give back what a request that ends did not use of its reservation.
local function settle(id, usage)
  local request = redis.call('HMGET', KEY.request .. id, 'limits', 'enqueued_ms', 'epoch')
  if not request[1] then return end
  local limits, now = cjson.decode(request[1]), now_us()
  local used = request[3] == '0' and 0 or usage.input_tokens + usage.output_tokens
  local minutes = (now - request[2] * 1000) / MINUTE_US
  for _, scope in ipairs(limits.scopes) do
    redis.call('ZREM', KEY.parallel .. scope.name, id)
    if scope.tokens then
      local meters = read_meters(scope, now)
      local unused = math.max(0, limits.tokens - math.max(used, minutes * scope.tokens))
      meters.tokens = math.max(0, meters.tokens - unused)
      write_meters(scope, meters, now)
    end
  end
end
