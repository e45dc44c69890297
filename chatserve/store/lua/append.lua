-- Append events to the log of a request, charge its tenant for the tokens in them and, with the
-- terminal one, end the request.
--
-- Keys:      request, response, log:{id}; waiting, counters:{model}; and those of finish
-- Arguments: id, epoch, number of the first event, number of events, then of the final answer
--            status ('' when the answer goes on), text, token ids, outcome, then one run
--            (see take) for each event
-- Returns:   1 when the events are in the log, 0 when they were refused
--
-- One script, because the epoch must still hold at the moment of writing, and because a terminal
-- event whose answer is not in the record and the session must never be seen. What is charged is
-- what was written, once: an append that is repeated or refused costs nothing, and ids that are in
-- the log already are not charged again when another worker goes on.

local id, epoch = ARGV[1], ARGV[2]
local first, count, status = tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]

local request = redis.call('HMGET', KEY.request .. id,
  'epoch', 'owner', 'next', 'model', 'tenant', 'output_tokens', 'output_weight')
local next_number = tonumber(request[3])
local this_end = epoch .. ':' .. (first + count)
-- A repetition of the end: its reply was lost. The record remembers which append ended it.
if not request[1] then
  return status ~= '' and redis.call('HGET', KEY.response .. id, 'ended_by') == this_end and 1 or 0
end
if request[1] ~= epoch or not request[2] then return 0 end
-- A repetition: only this owner can have written them.
if first + count <= next_number then return 1 end
if first ~= next_number then return 0 end

local num_charged = tonumber(request[6])
local num_tokens = num_charged
local event, at = take(9)
while event do
  log_event(id, next_number, event)
  next_number = next_number + 1
  if event[3] == 'i' then num_tokens = num_tokens + count_ids(event[4]) end
  event, at = take(at)
end
-- The answer may end with ids that no delta had: an end of sequence, a stop string held back.
if status ~= '' then num_tokens = math.max(num_tokens, count_ids(ARGV[7])) end
redis.call('HSET', KEY.request .. id, 'next', next_number, 'output_tokens', num_tokens)
if num_tokens > num_charged then
  charge(request[4], request[5], (num_tokens - num_charged) * request[7])
end

if status ~= '' then
  if redis.call('EXISTS', KEY.response .. id) == 1 then
    redis.call('HSET', KEY.response .. id, 'ended_by', this_end)
  end
  finish(id, {status = status, text = ARGV[6], token_ids = ARGV[7], outcome = ARGV[8],
    last = next_number - 1})
end
return 1
