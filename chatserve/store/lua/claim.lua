-- Take the requests whose turn it is and lease them to a worker under their next epoch.
--
-- Keys:      those of fair_queue.lua; request, response, log:{id} of each; leases; and those of
--            finish for requests whose time is over
-- Arguments: worker_id, model, limit, lease_ms, input_weight, output_weight
-- Returns:   a list of {payload, epoch, number of the next event, ms since the enqueue}
--
-- One script, because a request that has left the queue and has no lease yet would be lost with
-- the worker that took it, because two workers must not take the same one, and because each claim
-- decides with its charge who is next. It ends a bounded number of overdue requests at a time.

local worker_id, model, limit, lease_ms = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local input_weight, output_weight = tonumber(ARGV[5]), ARGV[6]
local MAX_OVERDUE = 64
local now, claims, num_overdue = now_ms(), {}, 0

local function lease(id, tenant, request)
  local epoch = redis.call('HINCRBY', KEY.request .. id, 'epoch', 1)
  redis.call('HSET', KEY.request .. id, 'owner', worker_id, 'output_weight', output_weight)
  begin_lease(id, model, tenant, now + lease_ms)
  if epoch == 1 then charge(model, tenant, input_weight * request.input_tokens) end
  if redis.call('EXISTS', KEY.response .. id) == 1 then
    redis.call('HSET', KEY.response .. id, 'status', 'in_progress')
  end
  keep_alive(id)
  claims[#claims + 1] = {request.payload, epoch, request.next, now - request.enqueued_ms}
end

while #claims < limit and num_overdue < MAX_OVERDUE do
  local tenant, counter = lowest_waiting(model)
  if not tenant then break end
  redis.call('HSET', KEY.flow .. model, 'floor', counter)
  -- A line may have vanished with all that waited in it; then its tenant leaves with nothing.
  local id = redis.call('ZRANGE', line_key(model, tenant), 0, 0)[1] or ''
  local fields = redis.call('HMGET', KEY.request .. id,
    'payload', 'next', 'enqueued_ms', 'input_tokens', 'deadline_ms')
  if tonumber(fields[5] or now + 1) <= now then
    num_overdue = num_overdue + 1
    bury_overdue(id, now)
  else
    leave_line(id, model, tenant)
    -- One that waited past its life has no payload; its place in the line is all that was left.
    if fields[1] then
      lease(id, tenant, {payload = fields[1], next = tonumber(fields[2]),
        enqueued_ms = fields[3], input_tokens = fields[4]})
    end
  end
end
forget_counters(model)
return claims
