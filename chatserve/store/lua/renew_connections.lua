-- Renew the leases of a gateway's connections; one that was lost is counted again.
--
-- Keys:      connections of each scope
-- Arguments: lease_ms, then for each connection a run (see take): its id, the names of its scopes
-- Returns:   nothing
--
-- One script, because all of them get the same time by the server's clock.

local expires_ms, at = now_ms() + ARGV[1], 2
local connection
connection, at = take(at)
while connection do
  for i = 2, #connection do
    redis.call('ZADD', KEY.connections .. connection[i], expires_ms, connection[1])
    redis.call('PEXPIRE', KEY.connections .. connection[i], ARGV[1])
  end
  connection, at = take(at)
end
