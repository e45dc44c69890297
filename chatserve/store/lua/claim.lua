-- Take the requests whose turn it is and lease them to a worker under their next epoch.
--
-- Keys:      those of fair_queue.lua; request, response, log:{id} of each; leases; and those of
--            finish for requests whose time is over
-- Arguments: options (JSON: worker_id, model, limit, lease_ms, input_weight, output_weight, floor,
--            until, see partition_turns.py; steal_after_ms)
-- Returns:   a list of {payload, epoch, number of the next event, ms since the enqueue}
--
-- One script, because a request that has left the queue and has no lease yet would be lost with
-- the worker that took it, because two workers must not take the same one, and because each claim
-- decides with its charge who is next. It ends a bounded number of overdue requests at a time.
--
-- A request whose route names another worker is left to that one for `steal_after_ms`, and then it
-- is anybody's: a worker that is full or gone delays what was meant for it by that long, no more. A
-- tenant that has nothing else is passed over and keeps its counter, so that its turn comes back.
-- Only so many tenants, and requests of each, are looked at in one call; what is hidden behind them
-- waits until these may be taken, which is no longer than the same time.

local options = cjson.decode(ARGV[1])
local worker_id, model, limit = options.worker_id, options.model, options.limit
local until_counter = type(options['until']) == 'number' and options['until'] or math.huge
local MAX_OVERDUE, MAX_PASSED_TENANTS, MAX_PASSED_REQUESTS = 64, 8, 16
local now, claims, num_overdue = now_ms(), {}, 0
local passed, num_passed = {}, 0

local function lease(id, tenant, request)
  local epoch = redis.call('HINCRBY', KEY.request .. id, 'epoch', 1)
  redis.call('HSET', KEY.request .. id, 'owner', worker_id, 'output_weight', options.output_weight)
  begin_lease(id, model, tenant, now + options.lease_ms)
  if epoch == 1 then charge(model, tenant, options.input_weight * request.input_tokens) end
  if redis.call('EXISTS', KEY.response .. id) == 1 then
    redis.call('HSET', KEY.response .. id, 'status', 'in_progress')
  end
  keep_alive(id)
  claims[#claims + 1] = {request.payload, epoch, request.next, now - request.enqueued_ms}
end

-- The tenant whose turn it is among those that were not passed over, its counter, and the lowest
-- counter of all that wait.
local function whose_turn()
  local waiting = redis.call('ZRANGE', KEY.waiting .. model, 0, num_passed, 'WITHSCORES')
  for i = 1, #waiting, 2 do
    if not passed[waiting[i]] then return waiting[i], tonumber(waiting[i + 1]), waiting[2] end
  end
end

-- The first request of a line that this worker may take or end, and its fields; nil when there is
-- none. A line may have vanished with all that waited in it: then its tenant leaves with nothing.
local function first_open(line)
  local ids = redis.call('ZRANGE', line, 0, MAX_PASSED_REQUESTS - 1)
  if #ids == 0 then return '', {} end
  for _, id in ipairs(ids) do
    local fields = redis.call('HMGET', KEY.request .. id,
      'payload', 'next', 'enqueued_ms', 'input_tokens', 'deadline_ms', 'route')
    local is_others = fields[6] and fields[6] ~= worker_id
    local is_overdue = fields[5] and tonumber(fields[5]) <= now
    if not is_others or is_overdue or now - fields[3] >= options.steal_after_ms then
      return id, fields
    end
  end
end

lift_waiting(model, options.floor)
while #claims < limit and num_overdue < MAX_OVERDUE and num_passed < MAX_PASSED_TENANTS do
  local tenant, counter, lowest = whose_turn()
  if not tenant or counter > until_counter then break end
  redis.call('HSET', KEY.flow .. model, 'floor', lowest)
  local id, fields = first_open(line_key(model, tenant))
  if not id then
    passed[tenant], num_passed = true, num_passed + 1
  elseif tonumber(fields[5] or now + 1) <= now then
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
