-- Count a connection for its tenant and its key, if both have room for it.
--
-- Keys:      connections of each scope
-- Arguments: options (JSON: id, lease_ms, scopes: a list of name and limit)
-- Returns:   nil when it is counted, or {name of the scope without room, its limit}
--
-- One script, because connections that open at once must not all find the last place. A connection
-- whose gateway does not renew it counts until its lease ends.

local options, now = cjson.decode(ARGV[1]), now_ms()

for _, scope in ipairs(options.scopes) do
  local key = KEY.connections .. scope.name
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
  local is_counted = redis.call('ZSCORE', key, options.id)
  if not is_counted and redis.call('ZCARD', key) >= scope.limit then
    return {scope.name, scope.limit}
  end
end
for _, scope in ipairs(options.scopes) do
  redis.call('ZADD', KEY.connections .. scope.name, now + options.lease_ms, options.id)
  redis.call('PEXPIRE', KEY.connections .. scope.name, options.lease_ms)
end
