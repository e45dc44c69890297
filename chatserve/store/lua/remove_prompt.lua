-- Take a prompt out of the registry and wake who follows it.
--
-- Keys:      prompts; prompt_bell
-- Arguments: tenant, name
-- Returns:   1 when there was one, 0 when there was none
--
-- One script, because a change that rings no bell would be noticed late.

local removed = redis.call('HDEL', KEY.prompts, ARGV[1] .. '/' .. ARGV[2])
if removed == 1 then ring_bell(KEY.prompt_bell) end
return removed
