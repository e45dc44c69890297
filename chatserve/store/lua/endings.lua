-- How a lease and a request end, whoever ends them. Shared by the scripts like common.lua.

-- End a request whose terminal event has just been logged.
-- `answer` has status, text, token_ids (comma list), outcome (JSON) and last, the number of the
-- terminal event.
--   1. The record, unless it was deleted meanwhile, gets the answer.
--   2. The session, if there is one, gets the message, and the record lives as long as it does. One
--      without a session has its own ttl. When a session goes, the records of its answers in flight
--      go with it, and of what is deleted only the log stays a moment, for those who read it.
--   3. What it used is counted, and what it had reserved beyond that goes back.
--   4. Nothing is in flight any more: the seat is free, and the tenant may have been the last.
local function finish(id, answer)
  local record = KEY.response .. id
  local has_record = redis.call('EXISTS', record) == 1
  if has_record then                                                          -- 1
    redis.call('HSET', record, 'status', answer.status, 'output_text', answer.text,
      'output_token_ids', answer.token_ids, 'outcome', answer.outcome,
      'last_sequence', answer.last)
  end
  local request = redis.call('HMGET', KEY.request .. id,
    'session_id', 'message_id', 'model', 'tenant', 'owner')
  local session_id, message_id, model, tenant, owner = unpack(request)
  if session_id ~= '' and redis.call('EXISTS', KEY.session .. session_id) == 1 then -- 2
    end_turn(id, session_id, message_id, answer)
    redis.call('PERSIST', record)
    unnote_response(tenant, id)
  elseif has_record then
    local ttl = redis.call('HGET', record, 'ttl_s')
    redis.call('EXPIRE', record, ttl)
    note_response(tenant, id, ttl)
  else
    unnote_response(tenant, id)
  end
  local usage = cjson.decode(answer.outcome).usage                            -- 3
  count_usage(id, usage)
  settle(id, usage)
  redis.call('EXPIRE', KEY.log .. id, has_record and TTL.log or TTL.deleted_log) -- 4
  redis.call('DEL', KEY.request .. id)
  if owner then end_lease(id, model, tenant) end
  forget_counters(model)
end

-- What the log holds so far: text, token ids as a comma list, their number, cached tokens, timings,
-- and whether the output item has begun.
local function logged_answer(id)
  local texts, ids, num_ids, cached, has_item, timings = {}, {}, 0, 0, false, {}
  for _, entry in ipairs(redis.call('XRANGE', KEY.log .. id, '-', '+')) do
    local fields = entry[2]
    for i = 1, #fields, 2 do
      local name, value = fields[i], fields[i + 1]
      if name == 't' then
        texts[#texts + 1] = value
      elseif name == 'i' and value ~= '' then
        ids[#ids + 1] = value
        num_ids = num_ids + count_ids(value)
      elseif name == 'c' then
        cached = tonumber(value)
      elseif name == 'q' then
        timings.queue_ms = tonumber(value)
      elseif name == 'f' then
        timings.ttft_ms = tonumber(value)
      elseif name == 'k' and value == 'response.content_part.added' then
        has_item = true
      end
    end
  end
  if timings.ttft_ms then
    timings.prefill_ms = math.floor((timings.ttft_ms - timings.queue_ms) * 100 + 0.5) / 100
  end
  return {text = table.concat(texts), token_ids = table.concat(ids, ','), timings = timings,
    num_token_ids = num_ids, cached_tokens = cached, has_item = has_item}
end

-- Log how an answer ends: what closes its item, where one has begun, and the terminal event.
local function log_end(id, answer)
  local number = tonumber(redis.call('HGET', KEY.request .. id, 'next'))
  if answer.has_item then
    log_event(id, number, {'k', 'response.output_text.done'})
    log_event(id, number + 1, {'k', 'response.content_part.done'})
    log_event(id, number + 2, {'k', 'response.output_item.done', 'o', answer.outcome})
    number = number + 3
  end
  log_event(id, number, {'k', 'response.' .. answer.status, 'o', answer.outcome})
  answer.last = number
end

-- End a request that no worker runs, with what the log holds of its answer.
-- `finish_reason` is 'abort' or 'error'; the error's code and message belong to the latter.
local function bury(id, finish_reason, error_code, error_message)
  local answer = logged_answer(id)
  answer.status = finish_reason == 'error' and 'failed' or 'incomplete'
  answer.outcome = cjson.encode({
    finish_reason = finish_reason,
    usage = {
      input_tokens = tonumber(redis.call('HGET', KEY.request .. id, 'input_tokens')),
      cached_tokens = answer.cached_tokens, output_tokens = answer.num_token_ids},
    timings = answer.timings,
    error_code = error_code or cjson.null,
    error_message = error_message or cjson.null,
  })
  log_end(id, answer)
  finish(id, answer)
end

-- How long an answer that has lost its worker waits for another one: a model may be replaced
-- meanwhile, but its readers must not wait for one that never comes.
local MAX_WORKERLESS_MS = 10 * 60 * 1000

-- End a request that waits and whose time is over, or that no worker has taken over.
local function bury_overdue(id, now)
  local request = redis.call('HMGET', KEY.request .. id,
    'model', 'tenant', 'enqueued_ms', 'timeout_ms', 'deadline_ms')
  leave_line(id, request[1], request[2])
  if not request[5] or tonumber(request[5]) > now then
    bury(id, 'error', 'worker_lost', string.format(
      'no worker has gone on with this request for %d minutes', MAX_WORKERLESS_MS / 60000))
    return
  end
  bury(id, 'error', 'deadline_exceeded', string.format(
    'the request still waited %.1f s after it was queued, its timeout is %g s',
    (now - request[3]) / 1000, request[4] / 1000))
end

-- Take a request from its owner: back to its place in the queue, where it waits for a bounded time,
-- or to its end if it was cancelled.
local function give_back(id)
  local request = redis.call('HMGET', KEY.request .. id, 'model', 'tenant', 'cancelled')
  local model, tenant, cancelled = unpack(request)
  if cancelled then
    bury(id, 'abort')
    return
  end
  redis.call('HDEL', KEY.request .. id, 'owner', 'prefill')
  keep_alive(id)
  end_lease(id, model, tenant)
  enter_line(id, now_ms() + MAX_WORKERLESS_MS)
  ring(model)
end

-- Stop a request wherever it is, and return what that meant: see cancel.lua.
-- Keys: request, response, log:{id}; those of fair_queue.lua; inbox of its owner; those of finish.
local function stop_request(id)
  local request = redis.call('HMGET', KEY.request .. id, 'model', 'tenant', 'owner')
  local model, tenant, owner = unpack(request)
  if not model then
    return redis.call('EXISTS', KEY.response .. id) == 1 and 'already_finished' or 'not_found'
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
end

-- Delete a record, and its log unless that is still being written: it would begin anew.
-- Returns whether there was a record.
local function forget_response(id)
  if redis.call('EXISTS', KEY.request .. id) == 0 then redis.call('DEL', KEY.log .. id) end
  return redis.call('DEL', KEY.response .. id)
end

-- Delete the record of the response that made a message, if one did. `entry` is of messages:{id}.
local function forget_answer(entry)
  local fields = entry[2]
  for i = 1, #fields, 2 do
    if fields[i] == 'response_id' and fields[i + 1] ~= '' then forget_response(fields[i + 1]) end
  end
end
