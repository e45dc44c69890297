-- Say what is left under the limits of some scopes.
--
-- Keys:      meters of each scope
-- Arguments: scopes (JSON, as reserve takes them)
-- Returns:   {limit, left, ms until all of it is left} for requests and for tokens, each of the
--            scope that leaves the least; nil where there is no limit
--
-- One script, because a meter that is read by a client without the server's clock says nothing.

return tell_limits(cjson.decode(ARGV[1]))
