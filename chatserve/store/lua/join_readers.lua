-- Mark a request as read by a gateway.
--
-- Keys:      request:{id}
-- Arguments: id, the gateway's name among readers
-- Returns:   1, or 0 when the request has ended
--
-- One script, because a mark on a request that has just ended would bring its key to life again.

local id, reader = ARGV[1], ARGV[2]
if redis.call('EXISTS', KEY.request .. id) == 0 then return 0 end
redis.call('HSET', KEY.request .. id, 'reader:' .. reader, 1)
return 1
