-- Delete the record of a response, and its log unless the answer is still being written.
--
-- Keys:      response, request, log:{id}
-- Arguments: id
-- Returns:   1 when there was a record, 0 when there was none
--
-- One script, because the answer may end between looking and deleting, and its log would stay.

return forget_response(ARGV[1])
