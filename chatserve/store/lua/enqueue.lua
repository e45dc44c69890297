-- Store a request, its record, the first two events of its log and the messages of its turn, and
-- put it into its tenant's line.
--
-- Keys:      request, response, log:{id}; bell, and those of fair_queue.lua; session,
--            messages:{session}; sessions
-- Arguments: id, max_queue, session_id ('' for none), title, expected_num_messages (-1 for any),
--            priority, timeout_ms ('' for none), then runs (see take): the request's own fields,
--            model and tenant first; the record's fields, the event CREATED, the event QUEUED, and
--            each message's fields
-- Returns:   {'queued', position, ms until its turn}, or {'full', how many wait, ms until half of
--            them have left}, or {'no_session'}, {'busy'} or {'changed'}; a time may be unknown
--
-- One script, because a user's message without its answer on the way, an answer without its
-- message, or two turns of one session at once must never be seen by anybody. Nothing is written
-- before all that can refuse has been asked.

local id, max_queue, session_id = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local title, expected, priority, timeout_ms = ARGV[4], tonumber(ARGV[5]), ARGV[6], ARGV[7]
local fields, at = take(8)
local model, tenant = fields[2], fields[4]
local session = KEY.session .. session_id

local function queued()
  local place = place_of(id, model, tenant) or {0, false}
  return {'queued', place[1], place[2]}
end

-- A repetition: the reply to the first try was lost.
if redis.call('EXISTS', KEY.response .. id, KEY.request .. id) > 0 then return queued() end

if not has_room(model, tenant, max_queue) then
  local depth = depth_of(model)
  return {'full', depth, time_until_left(model, depth / 2)}
end
if session_id ~= '' then
  if redis.call('EXISTS', session) == 0 then return {'no_session'} end
  local active = redis.call('HGET', session, 'active_response_id')
  if active and redis.call('EXISTS', KEY.request .. active) == 1 then return {'busy'} end
  if expected >= 0 and redis.call('XLEN', KEY.messages .. session_id) ~= expected then
    return {'changed'}
  end
end

local record, created, queued_event
record, at = take(at)
created, at = take(at)
queued_event, at = take(at)
local now = now_us()
local enqueued_ms = math.floor(now / 1000)
redis.call('HSET', KEY.response .. id, unpack(record))
redis.call('HSET', KEY.request .. id, 'score', now + priority * LEVEL_US,
  'enqueued_ms', enqueued_ms, 'epoch', 0, 'next', 2, 'output_tokens', 0,
  'session_id', session_id, unpack(fields))
if timeout_ms ~= '' then
  redis.call('HSET', KEY.request .. id, 'timeout_ms', timeout_ms,
    'deadline_ms', enqueued_ms + timeout_ms)
end
log_event(id, 0, created)
log_event(id, 1, queued_event)
keep_alive(id)

if session_id ~= '' then
  local message
  message, at = take(at)
  while message do
    redis.call('XADD', KEY.messages .. session_id, '*', unpack(message))
    message, at = take(at)
  end
  redis.call('HSET', session, 'active_response_id', id)
  if redis.call('HGET', session, 'title') == '' then redis.call('HSET', session, 'title', title) end
  touch_session(session_id)
end

enter_line(id)
ring(model)
return queued()
