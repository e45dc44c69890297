-- Begin a login, in place of the key's oldest one when it has as many as it may.
--
-- Keys:      login, logins
-- Arguments: key_id, digest of the login's token, what it holds, ttl in seconds, max_logins
-- Returns:   1
--
-- One script, because a login outside its key's list would never be counted.

local key_id, digest, max_logins = ARGV[1], ARGV[2], tonumber(ARGV[5])
local logins = KEY.logins .. key_id
redis.call('SET', KEY.login .. digest, ARGV[3], 'EX', ARGV[4])
redis.call('ZADD', logins, now_ms(), digest)
redis.call('EXPIRE', logins, TTL.login)
for _, old in ipairs(redis.call('ZRANGE', logins, 0, -1 - max_logins)) do
  redis.call('DEL', KEY.login .. old)
  redis.call('ZREM', logins, old)
end
return 1
