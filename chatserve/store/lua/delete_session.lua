-- Delete a session, its messages, and the records of the responses that made them.
--
-- Keys:      session, messages, tree:{id}; response, log of each answer; sessions or archived, pinned
-- Arguments: id
-- Returns:   nil when there is no such session, else the ids of its answers in flight
--
-- One script, because a turn that begins or ends in between must not append to what is being
-- deleted, and an answer that began until now must be known to whoever is to stop it.

local id = ARGV[1]
if redis.call('EXISTS', KEY.session .. id) == 0 then return nil end
local answers = answers_of(id)

for _, entry in ipairs(redis.call('XRANGE', KEY.messages .. id, '-', '+')) do
  forget_answer(entry)
end
for _, answer in ipairs(answers) do forget_response(answer) end
leave_lists(id)
redis.call('UNLINK', KEY.session .. id, KEY.messages .. id, KEY.tree .. id)
return answers
