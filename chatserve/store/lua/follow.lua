-- Copy the events of a log to a feed from now on.
--
-- Keys:      log, request:{id}
-- Arguments: id, feed
-- Returns:   the log's last entry, nil when there is no such log
--
-- One script, because an event between asking for the last one and copying would reach nobody. The
-- log of an answer that has ended gets no more events.

local id, feed = ARGV[1], ARGV[2]
local last = redis.call('XREVRANGE', KEY.log .. id, '+', '-', 'COUNT', '1')[1]
if not last then return nil end
if redis.call('EXISTS', KEY.request .. id) == 1 then
  local feeds = redis.call('HGET', KEY.request .. id, 'feeds') or ''
  if not string.find(' ' .. feeds .. ' ', ' ' .. feed .. ' ', 1, true) then
    redis.call('HSET', KEY.request .. id, 'feeds', feeds == '' and feed or feeds .. ' ' .. feed)
  end
end
return last
