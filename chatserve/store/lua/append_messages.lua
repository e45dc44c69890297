-- Append messages to a session, outside a turn.
--
-- Keys:      session, messages, tree:{session}; sessions or archived, pinned; request of its answers
-- Arguments: target (JSON: session_id, and parent_id if it is named), then one run (see take) for
--            each message
-- Returns:   '' when they were appended, else 'no_session', 'no_parent', 'busy' or 'session_full'
--
-- One script, because messages must follow each other, whoever else writes, and because none may be
-- appended to a session that is being deleted.

local target = cjson.decode(ARGV[1])
-- A repetition: the reply to the first try was lost. The first message's id follows its name.
if ARGV[4] and place_of_message(target.session_id, ARGV[4]) then return '' end

local refusal = refusal_of(target, 2)
if refusal then return refusal end
append_to(target, 2)
touch_session(target.session_id)
return ''
