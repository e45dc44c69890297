-- Store a request, its record, the first two events of its log and the messages of its turn, and
-- put it at the end of its model's queue.
--
-- Keys:      request, response, log:{id}; queue, bell:{model}; session, messages:{session};
--            sessions
-- Arguments: id, model, max_queue, payload, input_tokens, message_id, session_id ('' for none),
--            title, expected_num_messages (-1 for any), then runs (see take): the record's fields,
--            the event CREATED, the event QUEUED, and each message's fields
-- Returns:   how many requests are before it, or 'full', 'no_session', 'busy' or 'changed'
--
-- One script, because a user's message without its answer on the way, an answer without its
-- message, or two turns of one session at once must never be seen by anybody. Nothing is written
-- before all that can refuse has been asked.

local id, model, max_queue = ARGV[1], ARGV[2], tonumber(ARGV[3])
local payload, input_tokens, message_id = ARGV[4], ARGV[5], ARGV[6]
local session_id, title, expected = ARGV[7], ARGV[8], tonumber(ARGV[9])
local queue, session = KEY.queue .. model, KEY.session .. session_id

-- A repetition: the reply to the first try was lost.
if redis.call('EXISTS', KEY.response .. id, KEY.request .. id) > 0 then
  return redis.call('LPOS', queue, id) or 0
end

if redis.call('LLEN', queue) >= max_queue then return 'full' end
if session_id ~= '' then
  if redis.call('EXISTS', session) == 0 then return 'no_session' end
  local active = redis.call('HGET', session, 'active_response_id')
  if active and redis.call('EXISTS', KEY.request .. active) == 1 then return 'busy' end
  if expected >= 0 and redis.call('XLEN', KEY.messages .. session_id) ~= expected then
    return 'changed'
  end
end

local record, created, queued, at
record, at = take(10)
created, at = take(at)
queued, at = take(at)
redis.call('HSET', KEY.response .. id, unpack(record))
redis.call('HSET', KEY.request .. id, 'payload', payload, 'model', model,
  'input_tokens', input_tokens, 'enqueued_ms', now_ms(), 'epoch', 0, 'next', 2,
  'session_id', session_id, 'message_id', message_id)
log_event(id, 0, created)
log_event(id, 1, queued)
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

local position = redis.call('RPUSH', queue, id) - 1
ring(model)
return position
