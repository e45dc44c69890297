-- Take a prompt out of the registry, or one of its old versions, and wake who follows it.
--
-- Keys:      prompts, prompt_versions; prompt_bell
-- Arguments: tenant, name, version (empty for the prompt as a whole)
-- Returns:   'removed', 'missing', or 'current' for a version that is in use
--
-- One script, because a version must not become current while it is removed, and because a change
-- that rings no bell would be noticed late.

local field, version = ARGV[1] .. '/' .. ARGV[2], ARGV[3]
local versions = KEY.prompt_versions .. field

local current = redis.call('HGET', KEY.prompts, field)
if not current then return 'missing' end

if version == '' then
  redis.call('HDEL', KEY.prompts, field)
  redis.call('DEL', versions)
else
  if cjson.decode(current).version == tonumber(version) then return 'current' end
  if redis.call('HDEL', versions, version) == 0 then return 'missing' end
end
ring_bell(KEY.prompt_bell)
return 'removed'
