-- Store a request, its record, the first two events of its log and the messages of its turn, and
-- put it into its tenant's line.
--
-- Keys:      request, response, log:{id}; bell, and those of fair_queue.lua; session,
--            messages, tree:{session}; sessions or archived, pinned
-- Arguments: options (JSON: id, max_queue, session_id ('' for none) and with it title and a target,
--            see refusal_of, and continues; priority, timeout_ms, route (the worker that it is meant for), limits
--            (see reserve)), then runs (see take): the request's own fields, model and tenant first;
--            the record's fields, the event CREATED, the event QUEUED, and each message's fields
-- Returns:   {'queued', position, ms until its turn, what tell_limits says}, or {'full', how many
--            wait, ms until half of them have left}, or what reserve says, or one word of
--            refusal_of; a time may be unknown
--
-- One script, because a user's message without its answer on the way, an answer without its
-- message, or two turns of one session at once must never be seen by anybody. Nothing is written
-- before all that can refuse has been asked.

local options = cjson.decode(ARGV[1])
local id, session_id, timeout_ms = options.id, options.session_id, options.timeout_ms
local fields, at = take(2)
local model, tenant = fields[2], fields[4]
local record, created, queued_event
record, at = take(at)
created, at = take(at)
queued_event, at = take(at)

local function queued()
  local place = place_of(id, model, tenant) or {0, false}
  local told = options.limits and tell_limits(options.limits.scopes) or {}
  return {'queued', place[1], place[2], told}
end

-- A repetition: the reply to the first try was lost.
if redis.call('EXISTS', KEY.response .. id, KEY.request .. id) > 0 then return queued() end

if not has_room(model, tenant, options.max_queue) then
  local depth = depth_of(model)
  return {'full', depth, time_until_left(model, depth / 2)}
end
if session_id ~= '' then
  local refusal = refusal_of(options, at)
  if refusal then return {refusal} end
end
local refusal = options.limits and reserve(id, options.limits)
if refusal then return refusal end

-- A log outlives a record that was deleted or had a short life; this one begins at its beginning.
redis.call('DEL', KEY.log .. id)
local now = now_us()
local enqueued_ms = math.floor(now / 1000)
redis.call('HSET', KEY.response .. id, unpack(record))
redis.call('HSET', KEY.request .. id, 'score', now + options.priority * LEVEL_US,
  'enqueued_ms', enqueued_ms, 'epoch', 0, 'next', 2, 'output_tokens', 0,
  'session_id', session_id, unpack(fields))
if timeout_ms then
  redis.call('HSET', KEY.request .. id, 'timeout_ms', timeout_ms,
    'deadline_ms', enqueued_ms + timeout_ms)
end
if options.route then redis.call('HSET', KEY.request .. id, 'route', options.route) end
log_event(id, 0, created)
log_event(id, 1, queued_event)
keep_alive(id)
note_response(tenant, id, TTL.idle + options.ttl_s)

if session_id ~= '' then begin_turn(id, options, at) end

enter_line(id)
ring(model)
return queued()
