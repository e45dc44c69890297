-- Set fields of a session that exists.
--
-- Keys:      session:{id}; sessions, archived, pinned
-- Arguments: id, the version and the title_source that it must have ('' for any), then names and
--            values in turn
-- Returns:   'changed', 'no_session', 'version_conflict' or 'better_title'
--
-- One script, because a session deleted between the question and the change would come back with
-- nothing but the changed fields, because a change made in between would be lost, and because a
-- session must always stand in its lists and no other.

local id, version, title_source = ARGV[1], ARGV[2], ARGV[3]
local session = KEY.session .. id
if redis.call('EXISTS', session) == 0 then return 'no_session' end
local found = redis.call('HMGET', session, 'version', 'title_source', 'updated_ms')
if version ~= '' and version ~= found[1] then
  return says_already(session, 4) and 'changed' or 'version_conflict'
end
if title_source ~= '' and title_source ~= found[2] then
  return says_already(session, 4) and 'changed' or 'better_title'
end
if #ARGV == 3 then return 'changed' end

leave_lists(id)
redis.call('HSET', session, unpack(ARGV, 4))
redis.call('HINCRBY', session, 'version', 1)
enter_lists(id, found[3])
return 'changed'
