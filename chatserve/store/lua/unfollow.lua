-- Copy the events of a log to a feed no more.
--
-- Keys:      request:{id}
-- Arguments: id, feed
-- Returns:   1, or 0 when the request has ended
--
-- One script, because two gateways that leave at once must not write back each other's feed.

local id, feed = ARGV[1], ARGV[2]
local feeds, left = redis.call('HGET', KEY.request .. id, 'feeds'), {}
if not feeds then return 0 end
for other in string.gmatch(feeds, '%S+') do
  if other ~= feed then left[#left + 1] = other end
end
redis.call('HSET', KEY.request .. id, 'feeds', table.concat(left, ' '))
return 1
