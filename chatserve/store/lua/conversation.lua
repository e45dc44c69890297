-- Sessions: their messages, their answers in flight and their places in the lists. Shared by the
-- scripts like common.lua.
--
-- Fields of session:{id}:
--   tenant, user             whose it is
--   title, title_source      its name, and who gave it: '', 'words', 'model' or 'user'
--   metadata                 JSON
--   created_ms, updated_ms   when it was made and last used
--   version                  how often title, metadata, archived or pinned were changed
--   archived, pinned         '1' or '0'
--   active_response_ids      the answers in flight, the latest last, with blanks between
--   num_bytes                how much its messages hold
--
-- tree:{id} has every message that ever was: its entry in messages:{id}, or '-' once it is deleted,
-- a blank, how many bytes its text has, a blank, and the id of its parent, empty at the root level.
-- It finds a message without a search, it tells readers how much they are about to read, and it
-- keeps what follows a deleted message in its place.

-- How large a session may grow, answers in flight not counted. The messages are all that ever were,
-- since a deleted one stays in the tree, which readers load whole.
local MAX_MESSAGES = 5000
local MAX_BYTES = 16 * 1024 * 1024

-- How many sessions one owner may have, archived ones included.
local MAX_SESSIONS = 10000

-- The lists that a session stands in: the archived ones, or all others, and of those the pinned.
local function lists_of(session_id)
  local tenant, user, archived, pinned = unpack(redis.call('HMGET', KEY.session .. session_id,
    'tenant', 'user', 'archived', 'pinned'))
  local owner = tenant .. '/' .. user
  if archived == '1' then return {KEY.archived .. owner} end
  return pinned == '1' and {KEY.sessions .. owner, KEY.pinned .. owner} or {KEY.sessions .. owner}
end

-- Put a session into its lists, as last used then.
local function enter_lists(session_id, updated_ms)
  for _, list in ipairs(lists_of(session_id)) do redis.call('ZADD', list, updated_ms, session_id) end
end

-- Take a session out of its lists, before what decides on them is changed.
local function leave_lists(session_id)
  for _, list in ipairs(lists_of(session_id)) do redis.call('ZREM', list, session_id) end
end

-- Put a session to the top of its lists.
local function touch_session(session_id)
  local now = now_ms()
  redis.call('HSET', KEY.session .. session_id, 'updated_ms', now)
  enter_lists(session_id, now)
end

-- The message written last, '' when there is none. Nothing follows it: what follows a message is
-- written after it.
local function newest_message(session_id)
  local entry = redis.call('XREVRANGE', KEY.messages .. session_id, '+', '-', 'COUNT', '1')[1]
  return entry and entry[2][2] or ''
end

-- Where a message is, and its parent; nil for one that never was, '-' for one that was deleted.
local function place_of_message(session_id, message_id)
  local place = redis.call('HGET', KEY.tree .. session_id, message_id)
  if not place then return nil end
  return string.match(place, '^(%S+) %d+ (.*)$')
end

-- How many bytes the fields of a message are.
local function size_of_message(fields)
  local num_bytes = 0
  for i = 1, #fields do num_bytes = num_bytes + #tostring(fields[i]) end
  return num_bytes
end

-- Whether a session has room for the messages that are the runs (see take) from `at` on.
local function has_room_for_messages(session_id, at)
  local num_messages = redis.call('HLEN', KEY.tree .. session_id)
  local num_bytes = tonumber(redis.call('HGET', KEY.session .. session_id, 'num_bytes') or 0)
  local message
  message, at = take(at)
  while message do
    num_messages, num_bytes = num_messages + 1, num_bytes + size_of_message(message)
    message, at = take(at)
  end
  return num_messages <= MAX_MESSAGES and num_bytes <= MAX_BYTES
end

-- Append a message, as Message.to_fields lays it out. One whose parent is '^' follows `last`.
-- Returns its id.
local function append_message(session_id, message, last)
  if message[4] == '^' then message[4] = last end
  local entry_id = redis.call('XADD', KEY.messages .. session_id, '*', unpack(message))
  local place = entry_id .. ' ' .. #message[8] .. ' ' .. message[4]
  redis.call('HSET', KEY.tree .. session_id, message[2], place)
  redis.call('HINCRBY', KEY.session .. session_id, 'num_bytes', size_of_message(message))
  return message[2]
end

-- Append the messages that are the runs (see take) from `at` on. Returns the id of the last one.
local function append_messages(session_id, at, last)
  local message
  message, at = take(at)
  while message do
    last = append_message(session_id, message, last)
    message, at = take(at)
  end
  return last
end

-- The answers of a session that are in flight, the latest last.
local function answers_of(session_id)
  local answers = {}
  local noted = redis.call('HGET', KEY.session .. session_id, 'active_response_ids') or ''
  for id in string.gmatch(noted, '%S+') do
    if redis.call('EXISTS', KEY.request .. id) == 1 then answers[#answers + 1] = id end
  end
  return answers
end

-- Why nothing can be appended to a session, nil when it can. `target` has session_id and what of
-- SessionTurn it may have, parent_id or leaf_id; for a turn also max_answers. The messages are the
-- runs (see take) from `at` on.
local function refusal_of(target, at)
  local session_id, parent_id = target.session_id, target.parent_id
  if redis.call('EXISTS', KEY.session .. session_id) == 0 then return 'no_session' end
  if not has_room_for_messages(session_id, at) then return 'session_full' end
  local num_answers = #answers_of(session_id)
  if parent_id then
    local entry_id = parent_id == 'root' or place_of_message(session_id, parent_id)
    if not entry_id or entry_id == '-' then return 'no_parent' end
    local max_answers = target.max_answers or math.huge
    return num_answers >= max_answers and 'too_many' or nil
  end
  if num_answers > 0 then return 'busy' end
  if target.leaf_id and newest_message(session_id) ~= target.leaf_id then return 'changed' end
end

-- Append the messages that are the runs from `at` on where `target` says. Returns the last one's id,
-- or when there are none that of the message that they were to follow.
local function append_to(target, at)
  local parent_id = target.parent_id or newest_message(target.session_id)
  return append_messages(target.session_id, at, parent_id == 'root' and '' or parent_id)
end

-- Append the messages of a turn and note its answer, a request that is stored already.
local function begin_turn(id, options, at)
  local session = KEY.session .. options.session_id
  local answers = answers_of(options.session_id)
  answers[#answers + 1] = id
  redis.call('HSET', KEY.request .. id, 'parent_id', append_to(options, at))
  if options.continues then redis.call('HSET', KEY.request .. id, 'continues', 1) end
  redis.call('HSET', session, 'active_response_ids', table.concat(answers, ' '))
  if redis.call('HGET', session, 'title') == '' then
    redis.call('HSET', session, 'title', options.title, 'title_source', 'words')
  end
  touch_session(options.session_id)
end

-- Append the model's message to the session below the message that it answers, and let the next
-- turn begin.
local function end_turn(id, session_id, message_id, answer)
  local answers = {}
  for _, other in ipairs(answers_of(session_id)) do
    if other ~= id then answers[#answers + 1] = other end
  end
  redis.call('HSET', KEY.session .. session_id, 'active_response_ids', table.concat(answers, ' '))
  append_message(session_id, {
    'message_id', message_id, 'parent_id', redis.call('HGET', KEY.request .. id, 'parent_id'),
    'role', 'assistant', 'content', answer.text,
    'created_at', math.floor(now_ms() / 1000), 'response_id', id, 'status', answer.status,
    'token_ids', answer.token_ids, 'outcome', answer.outcome,
    'continues', redis.call('HGET', KEY.request .. id, 'continues') or '0'})
  touch_session(session_id)
end
