-- Say how far a request is.
--
-- Keys:      request:{id}; line, waiting, flow and pace of its model
-- Arguments: id
-- Returns:   {number of its claims, owner, how far its prompt is as its owner said, how many of its
--            tenant's requests are before it, ms until its turn}, false for what does not apply or
--            is unknown; or nil when it is not in flight
--
-- One script, because the request's own record says in which line it stands. What its owner said of
-- the prompt is void once there are more tokens than it was of.

local id = ARGV[1]
local request = redis.call('HMGET', KEY.request .. id,
  'model', 'tenant', 'epoch', 'owner', 'prefill', 'input_tokens', 'output_tokens')
local model, tenant, epoch, owner, prefill, num_input, num_output = unpack(request)
if not model then return nil end
local total = prefill and tonumber(string.match(prefill, '%d+$')) or 0
local is_over = total < num_input + (num_output or 0)
local place = place_of(id, model, tenant) or {}
return {tonumber(epoch or 0), owner, not is_over and prefill, place[1] or false, place[2] or false}
