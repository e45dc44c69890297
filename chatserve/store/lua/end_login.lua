-- End a login, and tell of it: whatever was opened with it ends.
--
-- Keys:      login, logins; tenant_bell
-- Arguments: key_id, digest of the login's token
-- Returns:   1, or 0 when there was none
--
-- One script, because an end that rings no bell would be noticed late.

redis.call('ZREM', KEY.logins .. ARGV[1], ARGV[2])
if redis.call('DEL', KEY.login .. ARGV[2]) == 0 then return 0 end
ring_tenant_bell('', ARGV[1], false)
return 1
