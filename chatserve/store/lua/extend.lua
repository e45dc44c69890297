-- Renew the leases of a worker's requests.
--
-- Keys:      request, response, log:{id} of each; leases
-- Arguments: worker_id, lease_ms, ids
-- Returns:   the ids that this worker does not own (any more)
--
-- One script, because between asking for the owner and renewing, a lease could go to another.

local worker_id, expires, lost = ARGV[1], now_ms() + ARGV[2], {}

for i = 3, #ARGV do
  local id = ARGV[i]
  if redis.call('HGET', KEY.request .. id, 'owner') == worker_id then
    redis.call('ZADD', KEY.leases, expires, id)
    keep_alive(id)
  else
    lost[#lost + 1] = id
  end
end
return lost
