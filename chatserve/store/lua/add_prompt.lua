-- Register a prompt, or the next version of the one that has its name, and make it current.
--
-- Keys:      prompts, prompt_versions; prompt_bell
-- Arguments: tenant, name, revision, record (JSON without the version), max_prompts, max_of_tenant,
--            max_versions
-- Returns:   the number of the version, or the limit that is reached: 'full' for all tenants,
--            'tenant_full' for this one
--
-- One script, because two that add at once must not both pass a limit that has room for one, nor
-- get the same number, and because a change that rings no bell would be noticed late.

local tenant, name, revision, record = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local max_prompts, max_of_tenant = tonumber(ARGV[5]), tonumber(ARGV[6])
local max_versions = tonumber(ARGV[7])
local prefix = tenant .. '/'
local versions = KEY.prompt_versions .. prefix .. name

local current = redis.call('HGET', KEY.prompts, prefix .. name)
if current then
  current = cjson.decode(current)
  -- The same call again, whose reply was lost: it is no version of its own.
  if current.revision == revision then return current.version end
else
  if redis.call('HLEN', KEY.prompts) >= max_prompts then return 'full' end
  local num_of_tenant = 0
  for _, field in ipairs(redis.call('HKEYS', KEY.prompts)) do
    if string.sub(field, 1, #prefix) == prefix then num_of_tenant = num_of_tenant + 1 end
  end
  if num_of_tenant >= max_of_tenant then return 'tenant_full' end
end

local version = redis.call('HINCRBY', versions, 'newest', 1)
record = string.sub(record, 1, -2) .. ',"version":' .. version .. '}'
redis.call('HSET', KEY.prompts, prefix .. name, record)
redis.call('HSET', versions, version, record)

local kept = {}
for _, field in ipairs(redis.call('HKEYS', versions)) do
  if field ~= 'newest' then kept[#kept + 1] = tonumber(field) end
end
table.sort(kept)
for i = 1, #kept - max_versions do redis.call('HDEL', versions, kept[i]) end

ring_bell(KEY.prompt_bell)
return version
