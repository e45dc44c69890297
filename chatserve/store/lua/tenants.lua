-- What the scripts of tenants and keys share.
--
-- Fields of tenant:{name}: created_at, mark, quotas (JSON), models (JSON), is_closed while it goes.
-- Fields of key:{id}: tenant, user, role, label, created_at, expires_at ('' for never), quotas
-- (JSON), digest of the secret; old_digest and old_until for a while after a rotation.

local MAX_NEWS = 1000

-- Tell gateways and workers what happened to a tenant, or to one of its keys.
local function ring_tenant_bell(tenant, key_id, is_revoked)
  redis.call('XADD', KEY.tenant_bell, 'MAXLEN', MAX_NEWS, '*',
    'tenant', tenant, 'key_id', key_id, 'is_revoked', is_revoked and 1 or 0)
  redis.call('EXPIRE', KEY.tenant_bell, TTL.idle)
end

-- Note that a user has sessions. Like the next, so that a tenant can be erased without a search.
local function note_user(tenant, user)
  redis.call('ZADD', KEY.users .. tenant, now_ms(), user)
end

-- Note a response that goes with no session before so many seconds are over. Those that have run out
-- are forgotten, and the index with the last of them.
local function note_response(tenant, id, seconds)
  local key, now = KEY.responses .. tenant, now_ms()
  local gone_ms = now + seconds * 1000
  redis.call('ZADD', key, gone_ms, id)
  for _, old in ipairs(redis.call('ZRANGEBYSCORE', key, '-inf', now, 'LIMIT', 0, MAX_FORGOTTEN)) do
    redis.call('ZREM', key, old)
  end
  if redis.call('PEXPIRETIME', key) < gone_ms then redis.call('PEXPIREAT', key, gone_ms) end
end

-- Forget a response that goes with its session from now on, or has gone.
local function unnote_response(tenant, id)
  redis.call('ZREM', KEY.responses .. tenant, id)
end
