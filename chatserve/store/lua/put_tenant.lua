-- Add, change or close a tenant, and tell of it.
--
-- Keys:      tenant, tenants; tenant_bell
-- Arguments: mode (new, change or close), name, max_tenants, fields and values
-- Returns:   'done', or 'exists', 'full' or 'missing'; a closed tenant cannot be changed
--
-- One script, because two that add one name must not both succeed, and because a change that rings
-- no bell would be noticed late.

local mode, name, max_tenants = ARGV[1], ARGV[2], tonumber(ARGV[3])
local key = KEY.tenant .. name
local exists = redis.call('EXISTS', key) == 1

if mode == 'new' then
  if exists then return says_already(key, 4) and 'done' or 'exists' end
  if redis.call('ZCARD', KEY.tenants) >= max_tenants then return 'full' end
elseif not exists or mode == 'change' and redis.call('HEXISTS', key, 'is_closed') == 1 then
  return 'missing'
end

if #ARGV > 3 then redis.call('HSET', key, unpack(ARGV, 4)) end
redis.call('ZADD', KEY.tenants, 0, name)
ring_tenant_bell(name, '', mode == 'close')
return 'done'
