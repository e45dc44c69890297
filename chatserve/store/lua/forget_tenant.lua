-- Take a tenant out of the list, and tell of it once more: what was in flight has ended by now.
--
-- Keys:      tenant, tenants; tenant_bell
-- Arguments: name
--
-- One script, because a tenant must not be listed without its record.

redis.call('DEL', KEY.tenant .. ARGV[1])
redis.call('ZREM', KEY.tenants, ARGV[1])
ring_tenant_bell(ARGV[1], '', true)
