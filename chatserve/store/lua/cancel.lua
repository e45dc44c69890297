-- Stop a request wherever it is.
--
-- Keys:      those of stop_request
-- Arguments: id
-- Returns:   'not_found', 'already_finished', 'finished_in_queue' or 'signalled'
--
-- One script, because a worker may claim the request at any moment: it must find it either gone
-- from the queue or cancelled under its own ownership, never neither.

return stop_request(ARGV[1])
