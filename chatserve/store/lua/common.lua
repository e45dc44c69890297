-- Functions that several scripts share. This file stands in front of every script, after the
-- constants of keys.py (KEY: prefixes, TTL: lifetimes in seconds).
--
-- Fields of request:{id}, which exists exactly while the request is in flight:
--   payload, model, input_tokens   what to do; input_tokens is the length of the prompt
--   enqueued_ms                    server time of the first enqueue
--   epoch, owner                   the current lease; no owner while it is queued
--   next                           the number of the next event of its log
--   cancelled                      set when a cancel reached it under an owner
--   times_lost                     how many leases have run out
--   session_id, message_id         where the answer goes at the end; session_id may be empty

-- Server time, the one clock that all gateways and workers share.
local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- A run of values inside ARGV: ARGV[at] says how many follow.
-- Returns the values and the place after them; nil past the end.
local function take(at)
  local count = tonumber(ARGV[at])
  if not count then return nil end
  return {unpack(ARGV, at + 1, at + count)}, at + count + 1
end

-- Write event number `number` of a log. `fields` is a flat list of names and values.
local function log_event(id, number, fields)
  redis.call('XADD', KEY.log .. id, (number + 1) .. '-0', unpack(fields))
end

-- Whoever owns a request renews the life of all its keys, so that they vanish together or never.
local function keep_alive(id)
  redis.call('EXPIRE', KEY.request .. id, TTL.idle)
  redis.call('EXPIRE', KEY.response .. id, TTL.idle)
  redis.call('EXPIRE', KEY.log .. id, TTL.idle)
end

-- Wake the workers of a model. One entry is enough: they only need to see that it is new.
local function ring(model)
  redis.call('XADD', KEY.bell .. model, 'MAXLEN', '1', '*', 'n', '1')
  redis.call('EXPIRE', KEY.bell .. model, TTL.idle)
end

-- Put a session to the top of the list.
local function touch_session(session_id)
  local now = now_ms()
  redis.call('HSET', KEY.session .. session_id, 'updated_ms', now)
  redis.call('ZADD', KEY.sessions, now, session_id)
end

-- Append the model's message to the session and let the next turn begin.
local function end_turn(id, session_id, message_id, answer)
  redis.call('XADD', KEY.messages .. session_id, '*',
    'message_id', message_id, 'role', 'assistant', 'content', answer.text,
    'created_at', math.floor(now_ms() / 1000), 'response_id', id, 'status', answer.status,
    'token_ids', answer.token_ids, 'outcome', answer.outcome)
  if redis.call('HGET', KEY.session .. session_id, 'active_response_id') == id then
    redis.call('HDEL', KEY.session .. session_id, 'active_response_id')
  end
  touch_session(session_id)
end

-- End a request whose terminal event has just been logged.
-- `answer` has status, text, token_ids (comma list) and outcome (JSON).
--   1. The record, unless it was deleted meanwhile, gets the answer.
--   2. The session, if there is one, gets the message, and the record lives as long as it does.
--      A record whose session is gone goes with the log; one without a session has its own ttl.
--   3. Nothing is in flight any more.
local function finish(id, answer)
  local record = KEY.response .. id
  local has_record = redis.call('EXISTS', record) == 1
  if has_record then                                                          -- 1
    redis.call('HSET', record, 'status', answer.status, 'output_text', answer.text,
      'output_token_ids', answer.token_ids, 'outcome', answer.outcome)
  end
  local request = redis.call('HMGET', KEY.request .. id, 'session_id', 'message_id')
  local session_id, message_id = request[1], request[2]
  local ttl = has_record and redis.call('HGET', record, 'ttl_s')
  if session_id ~= '' then                                                    -- 2
    ttl = TTL.log
    if redis.call('EXISTS', KEY.session .. session_id) == 1 then
      end_turn(id, session_id, message_id, answer)
      ttl = nil
    end
  end
  if ttl then
    redis.call('EXPIRE', record, ttl)
  else
    redis.call('PERSIST', record)
  end
  redis.call('EXPIRE', KEY.log .. id, TTL.log)                                -- 3
  redis.call('ZREM', KEY.leases, id)
  redis.call('DEL', KEY.request .. id)
end

-- What the log holds so far: text, token ids as a comma list, their number, cached tokens.
local function logged_answer(id)
  local texts, ids, num_ids, cached = {}, {}, 0, 0
  for _, entry in ipairs(redis.call('XRANGE', KEY.log .. id, '-', '+')) do
    local fields = entry[2]
    for i = 1, #fields, 2 do
      local name, value = fields[i], fields[i + 1]
      if name == 't' then
        texts[#texts + 1] = value
      elseif name == 'i' and value ~= '' then
        ids[#ids + 1] = value
        num_ids = num_ids + select(2, string.gsub(value, ',', '')) + 1
      elseif name == 'c' then
        cached = tonumber(value)
      end
    end
  end
  return {text = table.concat(texts), token_ids = table.concat(ids, ','),
    num_token_ids = num_ids, cached_tokens = cached}
end

-- End a request that no worker runs, with what the log holds of its answer.
-- `finish_reason` is 'abort' or 'error'; the error's code and message belong to the latter.
local function bury(id, finish_reason, error_code, error_message)
  local answer = logged_answer(id)
  local request = redis.call('HMGET', KEY.request .. id, 'input_tokens', 'next')
  answer.status = finish_reason == 'error' and 'failed' or 'incomplete'
  answer.outcome = cjson.encode({
    finish_reason = finish_reason,
    usage = {input_tokens = tonumber(request[1]), cached_tokens = answer.cached_tokens,
      output_tokens = answer.num_token_ids},
    timings = {},
    error_code = error_code or cjson.null,
    error_message = error_message or cjson.null,
  })
  log_event(id, tonumber(request[2]), {'k', 'response.' .. answer.status, 'o', answer.outcome})
  finish(id, answer)
end

-- Take a request from its owner: to the front of the queue, or to its end if it was cancelled.
local function give_back(id)
  if redis.call('HGET', KEY.request .. id, 'cancelled') then
    bury(id, 'abort')
    return
  end
  local model = redis.call('HGET', KEY.request .. id, 'model')
  redis.call('HDEL', KEY.request .. id, 'owner')
  redis.call('ZREM', KEY.leases, id)
  redis.call('LPUSH', KEY.queue .. model, id)
  keep_alive(id)
  ring(model)
end

-- Delete a record, and its log unless that is still being written: it would begin anew.
-- Returns whether there was a record.
local function forget_response(id)
  if redis.call('EXISTS', KEY.request .. id) == 0 then redis.call('DEL', KEY.log .. id) end
  return redis.call('DEL', KEY.response .. id)
end
