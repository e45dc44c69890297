-- Say where a request waits.
--
-- Keys:      request:{id}; line, waiting, flow and pace of its model
-- Arguments: id
-- Returns:   {how many of its tenant's requests are before it, ms until its turn (nil: unknown)},
--            or nil when it does not wait
--
-- One script, because the request's own record says in which line it stands.

local id = ARGV[1]
local request = redis.call('HMGET', KEY.request .. id, 'model', 'tenant')
if not request[1] then return nil end
return place_of(id, request[1], request[2])
