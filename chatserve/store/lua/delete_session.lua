-- Delete a session, its messages, and the records of the responses that made them.
--
-- Keys:      session, messages:{id}; response, log of each answer; sessions
-- Arguments: id
-- Returns:   1 when it was deleted, 0 when there is no such session
--
-- One script, because a turn that ends in between must not append to what is being deleted. An
-- answer in flight is not stopped here; its record goes when it ends, as the session is gone.

local id = ARGV[1]
if redis.call('EXISTS', KEY.session .. id) == 0 then return 0 end

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
return 1
