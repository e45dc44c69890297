-- Store a session with its first messages, unless there is one under this id.
--
-- Keys:      session, messages, tree:{id}; sessions or archived, pinned
-- Arguments: options (JSON: id and the fields of the session, created_ms and updated_ms if they are
--            not now, hidden for one that runs out soon unless show_sessions.lua comes), then one
--            run (see take) for each message
-- Returns:   'created', 'exists', 'session_full' when its messages are too many or too large, or
--            'too_many_sessions' when its owner has as many as one may have
--
-- One script, because a session must not be listed without its messages, and a repetition must not
-- append them again.

local options = cjson.decode(ARGV[1])
local id = options.id
if redis.call('EXISTS', KEY.session .. id) == 1 then return 'exists' end
local owner = options.tenant .. '/' .. options.user
if redis.call('ZCARD', KEY.sessions .. owner) + redis.call('ZCARD', KEY.archived .. owner)
  >= MAX_SESSIONS then return 'too_many_sessions' end
if not has_room_for_messages(id, 2) then return 'session_full' end

local created_ms, updated_ms = options.created_ms or now_ms(), options.updated_ms or now_ms()
redis.call('HSET', KEY.session .. id, 'tenant', options.tenant, 'user', options.user,
  'title', options.title, 'title_source', options.title_source, 'metadata', options.metadata,
  'archived', options.archived, 'pinned', options.pinned, 'version', 0,
  'created_ms', created_ms, 'updated_ms', updated_ms)
append_messages(id, 2, '')
if options.hidden then
  for _, key in ipairs({KEY.session .. id, KEY.messages .. id, KEY.tree .. id}) do
    redis.call('EXPIRE', key, TTL.hidden)
  end
else
  enter_lists(id, updated_ms)
  note_user(options.tenant, options.user)
end
return 'created'
