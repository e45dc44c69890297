-- Give a key another secret, and tell of it. The old one may hold for a while.
--
-- Keys:      key; tenant_bell
-- Arguments: id, digest, when the old secret stops (seconds since 1970, '' for at once)
-- Returns:   1, or 0 when there is no such key
--
-- One script, because two that rotate at once must leave the digests of two secrets that exist.

local id, digest, old_until = ARGV[1], ARGV[2], ARGV[3]
local key = KEY.api_key .. id
local old = redis.call('HMGET', key, 'digest', 'tenant')
if not old[1] then return 0 end
-- A repetition: the reply to the first try was lost. What was `old` then must stay so.
if old[1] == digest then return 1 end

redis.call('HDEL', key, 'old_digest', 'old_until')
redis.call('HSET', key, 'digest', digest)
if old_until ~= '' then
  redis.call('HSET', key, 'old_digest', old[1], 'old_until', old_until)
end
ring_tenant_bell(old[2], id, false)
return 1
