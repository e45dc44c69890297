-- Set fields of a session that exists.
--
-- Keys:      session:{id}
-- Arguments: id, then names and values in turn
-- Returns:   1 when it was changed, 0 when there is no such session
--
-- One script, because a session deleted between the question and the change would come back with
-- nothing but the changed fields.

local session = KEY.session .. ARGV[1]
if redis.call('EXISTS', session) == 0 then return 0 end
if #ARGV > 1 then redis.call('HSET', session, unpack(ARGV, 2)) end
return 1
