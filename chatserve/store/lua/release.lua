-- Put a worker's unfinished requests back to their places in the queue.
--
-- Keys:      request, response, log:{id} of each; bell and those of fair_queue.lua of their models;
--            leases; and those of finish for requests that were cancelled
-- Arguments: worker_id, ids
-- Returns:   how many were put back or ended
--
-- One script, because a request that is neither leased nor queued would never be run again.

local worker_id, released = ARGV[1], 0

for i = 2, #ARGV do
  local id = ARGV[i]
  if redis.call('HGET', KEY.request .. id, 'owner') == worker_id then
    give_back(id)
    released = released + 1
  end
end
return released
