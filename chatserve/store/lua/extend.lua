-- Renew the leases of a worker's requests, and note how far their prompts are.
--
-- Keys:      request, response, log:{id} of each; leases
-- Arguments: worker_id, lease_ms, then for each request its id and how far its prompt is, '' where
--            that is no news
-- Returns:   the ids that this worker does not own (any more)
--
-- One script, because between asking for the owner and renewing, a lease could go to another.

local worker_id, expires, lost = ARGV[1], now_ms() + ARGV[2], {}

for i = 3, #ARGV, 2 do
  local id, prefill = ARGV[i], ARGV[i + 1]
  if redis.call('HGET', KEY.request .. id, 'owner') == worker_id then
    redis.call('ZADD', KEY.leases, expires, id)
    keep_alive(id)
    if prefill == '' then
      redis.call('HDEL', KEY.request .. id, 'prefill')
    else
      redis.call('HSET', KEY.request .. id, 'prefill', prefill)
    end
  else
    lost[#lost + 1] = id
  end
end
return lost
