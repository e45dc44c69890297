-- Store a new key of a tenant, and tell of it.
--
-- Keys:      key, keys, tenant; tenant_bell
-- Arguments: id, tenant, max_keys, fields and values
-- Returns:   'done', or 'exists', 'full', or 'no_tenant' where there is none or it is closed
--
-- One script, because a tenant that is closed in between must be left without keys.

local id, tenant, max_keys = ARGV[1], ARGV[2], tonumber(ARGV[3])
if redis.call('EXISTS', KEY.tenant .. tenant) == 0
  or redis.call('HEXISTS', KEY.tenant .. tenant, 'is_closed') == 1 then return 'no_tenant' end
if redis.call('EXISTS', KEY.api_key .. id) == 1 then
  return says_already(KEY.api_key .. id, 4) and 'done' or 'exists'
end
if redis.call('ZLEXCOUNT', KEY.api_keys, '[' .. tenant .. '/', '(' .. tenant .. '0') >= max_keys then
  return 'full'
end

redis.call('HSET', KEY.api_key .. id, 'tenant', tenant, unpack(ARGV, 4))
redis.call('ZADD', KEY.api_keys, 0, tenant .. '/' .. id)
ring_tenant_bell(tenant, id, false)
return 'done'
