-- Delete what a message says, and the record of the response that made it.
--
-- Keys:      messages, tree:{session}; response, log of an answer
-- Arguments: session id, message id
-- Returns:   1 when it was deleted, 0 when it is not there
--
-- One script, because a turn that names the message as its parent in between must find it either
-- whole or deleted.

local session_id, message_id = ARGV[1], ARGV[2]
local entry_id, parent_id = place_of_message(session_id, message_id)
if not entry_id or entry_id == '-' then return 0 end
local messages = KEY.messages .. session_id
local entry = redis.call('XRANGE', messages, entry_id, entry_id)[1]
forget_answer(entry)
redis.call('HINCRBY', KEY.session .. session_id, 'num_bytes', -size_of_message(entry[2]))
redis.call('XDEL', messages, entry_id)
redis.call('HSET', KEY.tree .. session_id, message_id, '- 0 ' .. parent_id)
return 1
