-- Remove a key, and tell that its access has ended.
--
-- Keys:      key, keys; tenant_bell
-- Arguments: id
-- Returns:   1, or 0 when there is no such key
--
-- One script, because a key that works no more must not be listed, and must be told of at once.

local id = ARGV[1]
local tenant = redis.call('HGET', KEY.api_key .. id, 'tenant')
if not tenant then return 0 end

redis.call('DEL', KEY.api_key .. id)
redis.call('ZREM', KEY.api_keys, tenant .. '/' .. id)
ring_tenant_bell(tenant, id, true)
return 1
