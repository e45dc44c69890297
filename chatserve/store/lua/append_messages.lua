-- Append messages to a session, outside a turn.
--
-- Keys:      session, messages, tree:{session}; sessions or archived; request of its answers
-- Arguments: target (JSON: session_id, and parent_id if it is named), then one run (see take) for
--            each message
-- Returns:   '' when they were appended, else 'no_session', 'no_parent' or 'busy'
--
-- One script, because messages must follow each other, whoever else writes, and because none may be
-- appended to a session that is being deleted.

local target = cjson.decode(ARGV[1])
local refusal = refusal_of(target)
if refusal then return refusal end
append_to(target, 2)
touch_session(target.session_id)
return ''
