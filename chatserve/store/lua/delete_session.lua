-- Delete a session, its messages, and the records of the responses that made them.
--
-- Keys:      session, messages:{id}; response, log of each answer; sessions
-- Arguments: id
-- Returns:   nil when there is no such session, else the id of its answer in flight, '' for none
--
-- One script, because a turn that begins or ends in between must not append to what is being
-- deleted, and an answer that began until now must be known to whoever is to stop it. Its record
-- goes when it ends, as the session is gone.

local id = ARGV[1]
if redis.call('EXISTS', KEY.session .. id) == 0 then return nil end
local active = redis.call('HGET', KEY.session .. id, 'active_response_id')

for _, entry in ipairs(redis.call('XRANGE', KEY.messages .. id, '-', '+')) do
  local fields = entry[2]
  for i = 1, #fields, 2 do
    if fields[i] == 'response_id' and fields[i + 1] ~= '' then
      forget_response(fields[i + 1])
    end
  end
end
redis.call('DEL', KEY.session .. id, KEY.messages .. id)
redis.call('ZREM', KEY.sessions, id)
return active or ''
