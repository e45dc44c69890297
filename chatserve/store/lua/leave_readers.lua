-- Take a gateway's mark from a request, and stop it when no other gateway has one there.
--
-- Keys:      those of stop_request
-- Arguments: id, the gateway's name among readers
-- Returns:   1 when another gateway still reads, else 0
--
-- One script, because a reader may come to another gateway at any moment: it must find the request
-- either stopped or still running with its own mark on it.

local id, reader = ARGV[1], ARGV[2]
redis.call('HDEL', KEY.request .. id, 'reader:' .. reader)
for _, name in ipairs(redis.call('HKEYS', KEY.request .. id)) do
  if string.sub(name, 1, 7) == 'reader:' then return 1 end
end
stop_request(id)
return 0
