-- Take a request that makes no answer under the limits of its scopes, or only say whether there is
-- room for one.
--
-- Keys:      meters of each scope
-- Arguments: limits (JSON, as reserve takes them, without a limit of parallel requests), '1' to take
-- Returns:   nil, or what reserve says
--
-- One script, because two that fit one by one may not fit together. A repetition counts once more,
-- which errs on the side of the limit.

local limits, now = cjson.decode(ARGV[1]), now_us()
local refusal, meters = refusal_by_limits(limits, now)
if refusal then return refusal end
if ARGV[2] == '1' then raise_meters(limits, meters, now) end
