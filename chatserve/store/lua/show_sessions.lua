-- Let an owner's hidden sessions be listed and stay, all of them or none.
--
-- Keys:      session, messages, tree of each; sessions or archived, pinned; users
-- Arguments: tenant, user, ids
-- Returns:   'shown', 'no_session' when one has run out, or 'too_many_sessions' when the owner would
--            have more than one may have
--
-- One script, because they are one thing to whoever stores them, who may die at any moment. A
-- repetition finds nothing hidden any more, and changes nothing.

local tenant, user = ARGV[1], ARGV[2]
local owner = tenant .. '/' .. user
local hidden = {}
for i = 3, #ARGV do
  local ttl = redis.call('TTL', KEY.session .. ARGV[i])
  if ttl == -2 then return 'no_session' end
  if ttl >= 0 then hidden[#hidden + 1] = ARGV[i] end
end
if redis.call('ZCARD', KEY.sessions .. owner) + redis.call('ZCARD', KEY.archived .. owner)
  + #hidden > MAX_SESSIONS then return 'too_many_sessions' end

for _, id in ipairs(hidden) do
  for _, key in ipairs({KEY.session .. id, KEY.messages .. id, KEY.tree .. id}) do
    redis.call('PERSIST', key)
  end
  enter_lists(id, redis.call('HGET', KEY.session .. id, 'updated_ms'))
end
note_user(tenant, user)
return 'shown'
