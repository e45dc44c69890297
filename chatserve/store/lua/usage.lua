-- What each user of a tenant has used on a day. Shared by the scripts like common.lua.
--
-- usage:{tenant}:{days since 1970, UTC} has four counters for each user and model, their fields
-- named counter:user:model, and one of each for all of them, named counter. They count what the response objects say, in the script that ends them:
-- each answer once, whoever was killed meanwhile. A day has rows for MAX_ROWS pairs of user and
-- model; users beyond them are counted together as '*', which is nobody's name.
--
-- usage-tenants has the last day of each tenant, also of those that were removed since.

local MAX_ROWS = 5000
local NUM_COUNTERS, DAY_MS = 4, 24 * 3600 * 1000

-- Count an answer on the day on which it ends.
local function count_usage(id, usage)
  local tenant, user, model = unpack(redis.call('HMGET', KEY.request .. id,
    'tenant', 'user', 'model'))
  local today = math.floor(now_ms() / DAY_MS)
  local key = KEY.usage .. tenant .. ':' .. today
  local row = ':' .. user .. ':' .. model
  if redis.call('HEXISTS', key, 'requests' .. row) == 0
      and redis.call('HLEN', key) >= (1 + MAX_ROWS) * NUM_COUNTERS then
    row = ':*:' .. model
  end
  for _, name in ipairs({'', row}) do
    redis.call('HINCRBY', key, 'requests' .. name, 1)
    redis.call('HINCRBY', key, 'input' .. name, usage.input_tokens)
    redis.call('HINCRBY', key, 'cached' .. name, usage.cached_tokens)
    redis.call('HINCRBY', key, 'output' .. name, usage.output_tokens)
  end
  redis.call('EXPIRE', key, TTL.usage)
  redis.call('ZADD', KEY.usage_tenants, today, tenant)
  redis.call('ZREMRANGEBYSCORE', KEY.usage_tenants, '-inf', today - TTL.usage * 1000 / DAY_MS)
  redis.call('EXPIRE', KEY.usage_tenants, TTL.usage)
end
