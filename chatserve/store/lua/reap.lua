-- Take back the requests whose lease has run out: to their place in the queue, or to their end when
-- that has happened too often or they were cancelled.
--
-- Keys:      leases; request, response, log:{id} of each; bell and those of fair_queue.lua of their
--            models; and those of finish
-- Arguments: max_takeovers, message of the error
-- Returns:   the ids, that whose lease ended first in front
--
-- One script, because several reapers run at once and a lease may be renewed at any moment. It
-- takes a bounded number at a time to keep the server responsive; the next call takes the rest.

local max_takeovers, message = tonumber(ARGV[1]), ARGV[2]
local reaped = {}

for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEY.leases, '-inf', now_ms(), 'LIMIT', 0, 64)) do
  if redis.call('EXISTS', KEY.request .. id) == 0 then
    redis.call('ZREM', KEY.leases, id)
  else
    reaped[#reaped + 1] = id
    if redis.call('HINCRBY', KEY.request .. id, 'times_lost', 1) > max_takeovers then
      bury(id, 'error', 'worker_lost', message)
    else
      give_back(id)
    end
  end
end
return reaped
