-- Note that a worker lives, and forget those whose time has run out.
--
-- Keys:      worker, digest:{worker}; workers; card, model
-- Arguments: worker_id, heartbeat, ttl in ms, fingerprint of its card, model
-- Returns:   1, or 0 when the card or the model's entry is gone
--
-- One script, because it must be carried out when the server's memory is full as well: a worker that
-- ends what it has would else look dead.

local worker_id, heartbeat, ttl_ms = ARGV[1], ARGV[2], tonumber(ARGV[3])
local now = now_ms()
redis.call('SET', KEY.worker .. worker_id, heartbeat, 'PX', ttl_ms)
redis.call('ZADD', KEY.workers, now + ttl_ms, worker_id)
redis.call('ZREMRANGEBYSCORE', KEY.workers, '-inf', now)
redis.call('PEXPIRE', KEY.digest .. worker_id, ttl_ms)
local card_lives = redis.call('EXPIRE', KEY.card .. ARGV[4], TTL.idle)
local model_lives = redis.call('EXPIRE', KEY.model .. ARGV[5], TTL.idle)
return math.min(card_lives, model_lives)
