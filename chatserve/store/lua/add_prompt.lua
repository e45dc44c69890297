-- Register a prompt, in place of the one that has its name, and wake who follows the registry.
--
-- Keys:      prompts; prompt_bell
-- Arguments: tenant, name, record (JSON), max_prompts, max_of_tenant
-- Returns:   'added', or the limit that is reached: 'full' for all tenants, 'tenant_full' for this
--
-- One script, because two that add at once must not both pass a limit that has room for one, and
-- because a change that rings no bell would be noticed late.

local tenant, name, record = ARGV[1], ARGV[2], ARGV[3]
local max_prompts, max_of_tenant = tonumber(ARGV[4]), tonumber(ARGV[5])
local prefix = tenant .. '/'

if redis.call('HEXISTS', KEY.prompts, prefix .. name) == 0 then
  if redis.call('HLEN', KEY.prompts) >= max_prompts then return 'full' end
  local num_of_tenant = 0
  for _, field in ipairs(redis.call('HKEYS', KEY.prompts)) do
    if string.sub(field, 1, #prefix) == prefix then num_of_tenant = num_of_tenant + 1 end
  end
  if num_of_tenant >= max_of_tenant then return 'tenant_full' end
end

redis.call('HSET', KEY.prompts, prefix .. name, record)
ring_bell(KEY.prompt_bell)
return 'added'
