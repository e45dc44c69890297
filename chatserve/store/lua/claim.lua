-- Take requests from the front of a queue and lease them to a worker under their next epoch.
--
-- Keys:      queue:{model}; request, response, log:{id} of each; leases
-- Arguments: worker_id, model, limit, lease_ms
-- Returns:   a list of {payload, epoch, number of the next event, ms since the enqueue}
--
-- One script, because a request that has left the queue and has no lease yet would be lost with
-- the worker that took it, and because two workers must not take the same one.

local worker_id, model, limit, lease_ms = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local now, claims = now_ms(), {}

while #claims < limit do
  local id = redis.call('LPOP', KEY.queue .. model)
  if not id then break end
  local request = redis.call('HMGET', KEY.request .. id, 'payload', 'next', 'enqueued_ms')
  -- One that waited past its life has no payload; its entry in the queue is all that was left.
  if request[1] then
    local epoch = redis.call('HINCRBY', KEY.request .. id, 'epoch', 1)
    redis.call('HSET', KEY.request .. id, 'owner', worker_id)
    redis.call('ZADD', KEY.leases, now + lease_ms, id)
    if redis.call('EXISTS', KEY.response .. id) == 1 then
      redis.call('HSET', KEY.response .. id, 'status', 'in_progress')
    end
    keep_alive(id)
    claims[#claims + 1] = {request[1], epoch, tonumber(request[2]), now - request[3]}
  end
end
return claims
