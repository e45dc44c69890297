-- End the requests that wait and whose time is over, of all models, also where no worker claims;
-- and those that came back from a worker and that no other one has taken for long.
--
-- Keys:      deadlines; request, response, log:{id} of each; those of fair_queue.lua of their
--            models; and those of finish
-- Arguments: none
-- Returns:   the ids, the one that should have ended first in front
--
-- One script, because a worker may claim such a request at any moment. It takes a bounded number
-- at a time to keep the server responsive; the next call takes the rest.

local now, ended = now_ms(), {}

for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEY.deadlines, '-inf', now, 'LIMIT', 0, 64)) do
  if redis.call('EXISTS', KEY.request .. id) == 0 then
    redis.call('ZREM', KEY.deadlines, id)
  else
    ended[#ended + 1] = id
    bury_overdue(id, now)
  end
end
return ended
