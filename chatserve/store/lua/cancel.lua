-- Stop a request wherever it is.
--
-- Keys:      request, response, log:{id}; those of fair_queue.lua; inbox of its owner; and those
--            of finish
-- Arguments: id
-- Returns:   'not_found', 'already_finished', 'finished_in_queue' or 'signalled'
--
-- One script, because a worker may claim the request at any moment: it must find it either gone
-- from the queue or cancelled under its own ownership, never neither.

local id = ARGV[1]
local request = redis.call('HMGET', KEY.request .. id, 'model', 'tenant', 'owner')
local model, tenant, owner = unpack(request)

if not model then
  if redis.call('EXISTS', KEY.response .. id) == 1 then return 'already_finished' end
  return 'not_found'
end

if not owner then
  leave_line(id, model, tenant)
  bury(id, 'abort')
  return 'finished_in_queue'
end

-- The flag outlives the owner: whoever takes the request from it ends it.
redis.call('HSET', KEY.request .. id, 'cancelled', 1)
redis.call('XADD', KEY.inbox .. owner, 'MAXLEN', '~', 10000, '*', 'request_id', id)
redis.call('EXPIRE', KEY.inbox .. owner, TTL.idle)
return 'signalled'
