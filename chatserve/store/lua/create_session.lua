-- Store a session with its first messages, unless there is one under this id.
--
-- Keys:      session, messages:{id}; sessions
-- Arguments: id, title, metadata (JSON), then one run (see take) for each message
-- Returns:   1 when it was created, 0 when it exists
--
-- One script, because a session must not be listed without its messages, and a repetition must not
-- append them again.

local id, title, metadata = ARGV[1], ARGV[2], ARGV[3]
if redis.call('EXISTS', KEY.session .. id) == 1 then return 0 end

redis.call('HSET', KEY.session .. id, 'title', title, 'metadata', metadata, 'created_ms', now_ms())
touch_session(id)
local message, at = take(4)
while message do
  redis.call('XADD', KEY.messages .. id, '*', unpack(message))
  message, at = take(at)
end
return 1
