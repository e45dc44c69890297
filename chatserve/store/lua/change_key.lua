-- Change fields of a key, and tell of it.
--
-- Keys:      key; tenant_bell
-- Arguments: id, fields and values
-- Returns:   1, or 0 when there is no such key
--
-- One script, because a key that is revoked meanwhile must not come back as a few fields, and because
-- a change that rings no bell would be noticed late.

local id = ARGV[1]
local key = KEY.api_key .. id
local tenant = redis.call('HGET', key, 'tenant')
if not tenant then return 0 end

if #ARGV > 1 then redis.call('HSET', key, unpack(ARGV, 2)) end
ring_tenant_bell(tenant, id, false)
return 1
