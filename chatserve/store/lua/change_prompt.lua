-- Put another record in the place of a prompt's, unless it has changed since it was read.
--
-- Keys:      prompts, prompt_versions; prompt_bell
-- Arguments: tenant, name, revision that was read, version of the record, record (JSON)
-- Returns:   1 when it was changed, 0 when it is not what it was, or the version is not kept
--
-- One script, because a prompt that is removed or replaced meanwhile must stay so, and because a
-- change that rings no bell would be noticed late.

local field = ARGV[1] .. '/' .. ARGV[2]
local revision, version, record = ARGV[3], ARGV[4], ARGV[5]

local current = redis.call('HGET', KEY.prompts, field)
if not current or cjson.decode(current).revision ~= revision then return 0 end
if redis.call('HEXISTS', KEY.prompt_versions .. field, version) == 0 then return 0 end

redis.call('HSET', KEY.prompts, field, record)
ring_bell(KEY.prompt_bell)
return 1
