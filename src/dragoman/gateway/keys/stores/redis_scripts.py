"""The Lua scripts that admit and charge requests in Redis; each one runs atomically.

    <prefix>:keys                      hash    id → digest (hex), a space, the record
    <prefix>:revoked                   hash    id → when
    <prefix>:{id}:meter                hash    "tokens:<window>", "nanos:<window>": what was spent;
                                               "requests_at", "tokens_at": the rates' buckets
    <prefix>:{id}:leases               zset    reservation → until when it is live
    <prefix>:{id}:reservations         hash    reservation → "<tokens> <nanos> <day>"
    <prefix>:{id}:usage:<day>          hash    [model, route, sum] → a number
    <prefix>:holding                   set     ids of keys that may have reservations
    <prefix>:days                      set     "<id> <day>" for each hash of usage
    <prefix>:done:<token>              string  usage that was added, for ten minutes
    <prefix>:batches                   hash    batch → "<tokens> <nanos>" that were charged for it

A reservation or usage that is sent again because its reply was lost is not applied twice.

HINCRBY keeps sums in 64 bits. Lua compares them as doubles, which are exact up to nine million
dollars in nano-dollars, and precise to a millionth of a cent above.
"""

from __future__ import annotations

_HELD = """
local function held(now)
  local live = redis.call('ZRANGEBYSCORE', leases, '(' .. now, '+inf')
  local sums = {}
  for from = 1, #live, 1000 do
    local found = redis.call('HMGET', reservations, unpack(live, from, math.min(from + 999, #live)))
    for _, text in ipairs(found) do
      local tokens, nanos, day = string.match(text or '', '^(%d+) (%d+) (%S+)$')
      if tokens then
        local sum = sums[day] or {0, 0, 0}
        sums[day] = {sum[1] + 1, sum[2] + tonumber(tokens), sum[3] + tonumber(nanos)}
      end
    end
  end
  return sums, #live
end
"""

# The same as `admission.decide`; the tests run the same cases on both.
RESERVE = (
    """
local revoked, meter, leases, reservations, holding, keys = unpack(KEYS)
local id, key, now_text, tokens, nanos, day = unpack(ARGV, 1, 6)
local until_text, per_minute, tokens_per_minute, concurrent = unpack(ARGV, 7, 10)
local minute, set_back, soon = unpack(ARGV, 11, 13)
local now = tonumber(now_text)
"""
    + _HELD
    + """
if redis.call('HEXISTS', keys, key) == 0 or redis.call('HEXISTS', revoked, key) == 1 then
  return {'revoked', '0', '0'}
end
if redis.call('HEXISTS', reservations, id) == 1 then return {'ok'} end -- sent again
local sums, live = held(now_text)
local later
for i = 14, #ARGV, 3 do
  local kind, window, amount = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2])
  local own = tonumber(kind == 'tokens' and tokens or nanos)
  local spent = tonumber(redis.call('HGET', meter, kind .. ':' .. window) or '0')
  local reserved = 0
  for name, sum in pairs(sums) do
    if window == 'total' or string.sub(name, 1, #window) == window then
      reserved = reserved + (kind == 'tokens' and sum[2] or sum[3])
    end
  end
  local position = tostring((i - 14) / 3)
  if spent + own > amount then return {'budget', '0', position} end
  if spent + reserved + own > amount then later = later or {'reserved', soon, position} end
end
if later then return later end

local function poured(field, amount, limit)
  local full_at = tonumber(redis.call('HGET', meter, field) or '0')
  if limit == '' then return full_at, 0 end
  local begins = math.max(full_at, now)
  if full_at > now + set_back then begins = now end
  local after = begins + amount * minute / tonumber(limit)
  return after, after - now - minute - 1e-6
end

local requests_at, wait = poured('requests_at', 1, per_minute)
if wait > 0 then return {'requests', string.format('%.6f', wait), '0'} end
local tokens_at, longer = poured('tokens_at', tonumber(tokens), tokens_per_minute)
if longer > 0 then return {'tokens', string.format('%.6f', longer), '0'} end
if concurrent ~= '' and live >= tonumber(concurrent) then return {'concurrent', soon, '0'} end
if id == '' then return {'ok'} end -- only asked

redis.call('ZADD', leases, until_text, id)
redis.call('HSET', reservations, id, tokens .. ' ' .. nanos .. ' ' .. day)
redis.call('SADD', holding, key)
if per_minute ~= '' or tokens_per_minute ~= '' then
  redis.call('HSET', meter, 'requests_at', string.format('%.6f', requests_at),
             'tokens_at', string.format('%.6f', tokens_at))
end
return {'ok'}
"""
)

END = """
local meter, leases, reservations, usage, days = unpack(KEYS)
local id, overdraft_at, more = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
if redis.call('HDEL', reservations, id) == 0 then return 0 end
redis.call('ZREM', leases, id)
if more ~= 0 then
  local tokens_at = tonumber(redis.call('HGET', meter, 'tokens_at') or '0')
  redis.call('HSET', meter, 'tokens_at',
             string.format('%.6f', math.min(tokens_at + more, overdraft_at)))
end
if #ARGV == 3 then return 1 end -- released
redis.call('SADD', days, ARGV[4])
for i = 5, 16, 2 do redis.call('HINCRBY', meter, ARGV[i], ARGV[i + 1]) end -- three windows
for i = 17, #ARGV, 2 do redis.call('HINCRBY', usage, ARGV[i], ARGV[i + 1]) end
return 1
"""

# For each hash of usage: the key and day, how many sums are to be added, and these.
ADD_USAGE = """
if not redis.call('SET', KEYS[1], '1', 'NX', 'EX', '600') then return 0 end
local at = 1
for i = 3, #KEYS do
  redis.call('SADD', KEYS[2], ARGV[at])
  local last = at + 1 + 2 * tonumber(ARGV[at + 1])
  for j = at + 2, last, 2 do redis.call('HINCRBY', KEYS[i], ARGV[j], ARGV[j + 1]) end
  at = last + 1
end
return 1
"""

CHARGE_BATCH = """
local batches, meter, usage, days = unpack(KEYS)
if redis.call('HSETNX', batches, ARGV[1], ARGV[2]) == 0 then return 0 end
redis.call('SADD', days, ARGV[3])
for i = 4, 15, 2 do redis.call('HINCRBY', meter, ARGV[i], ARGV[i + 1]) end -- three windows
for i = 16, #ARGV, 2 do redis.call('HINCRBY', usage, ARGV[i], ARGV[i + 1]) end
return 1
"""

RENEW = """
for i = 2, #ARGV do redis.call('ZADD', KEYS[1], 'XX', ARGV[1], ARGV[i]) end
return 1
"""

SWEEP = """
local leases, reservations, holding = unpack(KEYS)
for _, id in ipairs(redis.call('ZRANGEBYSCORE', leases, '-inf', '(' .. ARGV[1])) do
  redis.call('HDEL', reservations, id)
  redis.call('ZREM', leases, id)
end
if redis.call('ZCARD', leases) == 0 then redis.call('SREM', holding, ARGV[2]) end
return 1
"""

STANDING = (
    """
local meter, leases, reservations = unpack(KEYS)
"""
    + _HELD
    + """
local sums, answer = held(ARGV[1]), {}
for day, sum in pairs(sums) do
  answer[#answer + 1] = {day, string.format('%.0f', sum[1]), string.format('%.0f', sum[2]),
                         string.format('%.0f', sum[3])}
end
return {redis.call('HGETALL', meter), answer}
"""
)

REVOKE = """
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return 0
end
redis.call('HSETNX', KEYS[2], ARGV[1], ARGV[2])
return 1
"""
