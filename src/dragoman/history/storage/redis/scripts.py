"""The Lua scripts that run in Redis: one atomic call per commit.

The keys of a session are all in one slot (`{digest}`):

    <prefix>:{digest}:session      hash    the head: identity, stamp, at, document, generation
    <prefix>:{digest}:records      hash    seq → the line of a message
    <prefix>:{digest}:ids          hash    id → "<seq> <branch>"
    <prefix>:{digest}:branch:<n>   zset    the numbers of a branch's own messages
    <prefix>:{digest}:aside        list    the owner, then the records set aside

There are also `<prefix>:sessions`, a sorted set of all digests, and `<prefix>:asides`, a set of
those with records set aside; once somebody watches, `<prefix>:feed`, a sorted set of digests by the
number of their last change, and `<prefix>:feed:last`, that number. In a cluster, the first two
digits of a digest are in the braces (`<prefix>:{ab}:abc…:session`), and each pair of them has these
four keys for itself (`<prefix>:{ab}:sessions`).

`generation` changes with everything but an append, so that a reader of several pages can tell
whether they belong together. A script that finds a key of the wrong type fails, because it accesses
all of them before it writes.

A head of November 2026 had a field for each counter. It is read as it is, with a hash of its fields
as its stamp, and the first commit replaces it; a program of that time then finds no counters, and
writes nothing. The texts in `…:head` and `…:rows`, which it wrote, stay with the session.
"""

from __future__ import annotations

_COMMON = """
local head, rows, ids, sessions = unpack(KEYS, 1, 4)
local digest, branches = ARGV[1], ARGV[2]

local function kind(key) return redis.call('TYPE', key).ok end

local function whole(text)
  return text and #text <= 15 and string.match(text, '^%d+$') and tonumber(text)
end

local function is_earlier()
  return redis.call('HEXISTS', head, 'document') == 0
    and redis.call('HEXISTS', head, 'version') == 1
end

-- The stamp of the head: 0 if there is none, -1 if it can't be read.
local function stamp()
  local found = kind(head)
  if found == 'none' then return redis.call('EXISTS', rows, ids) == 0 and '0' or '-1' end
  if found ~= 'hash' then return '-1' end
  if is_earlier() then
    local names, told = redis.call('HKEYS', head), {}
    table.sort(names)
    for _, name in ipairs(names) do
      told[#told + 1] = redis.sha1hex(name)
      told[#told + 1] = redis.sha1hex(redis.call('HGET', head, name))
    end
    return string.format('%.0f', tonumber(string.sub(redis.sha1hex(table.concat(told)), 1, 12), 16))
  end
  local text = redis.call('HGET', head, 'stamp')
  if not text or not string.match(text, '^[1-9]%d*$') or #text > 19 then return '-1' end
  return text
end

local function drop_all()
  local held, known = kind(rows) == 'hash' and redis.call('HLEN', rows) or 0, {['0'] = true}
  if kind(ids) == 'hash' then
    for _, place in ipairs(redis.call('HVALS', ids)) do
      local branch = string.match(place, '^%d+ (%d+)$')
      if branch then known[branch] = true end
    end
  end
  redis.call('UNLINK', rows, ids)
  for branch in pairs(known) do redis.call('UNLINK', branches .. branch) end
  return held
end

-- Tells the feed of changes, if somebody watches.
local function told()
  if redis.call('EXISTS', KEYS[6]) == 0 then return end
  redis.call('ZADD', KEYS[5], redis.call('INCR', KEYS[6]), digest)
end

local function place(id)
  return string.match(redis.call('HGET', ids, id) or '', '^(%d+) (%d+)$')
end
"""
HEAD = (
    _COMMON
    + """
local found = kind(head)
if found == 'none' and kind(KEYS[8]) == 'hash' then return {'old'} end
return {stamp(), found == 'hash' and redis.call('HGETALL', head) or {}}
"""
)
# ARGV: stamp before, how many fields of the head, drops and puts; then the fields and values, the
# ids to drop, and seq, branch, id and line of each row.
COMMIT = (
    _COMMON
    + """
local before, is_emptied = ARGV[3], ARGV[4] == '1'
local fields, drops, puts = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local now = stamp()
if now == ARGV[9] then return {'ok'} end -- sent twice, by a client that repeats commands itself
if now ~= before then return {'other'} end
redis.call('HLEN', rows)
redis.call('HLEN', ids)
redis.call('ZCARD', sessions)
local first_drop = 8 + 2 * fields
local first_put, gone, free, seen = first_drop + drops, {}, {}, {}
for i = first_drop, first_put - 1 do
  local seq, branch = place(ARGV[i])
  if not seq then return {'damaged'} end
  redis.call('ZCARD', branches .. branch)
  gone[ARGV[i]] = {seq, branch}
  free[seq] = true
end
for i = first_put, #ARGV, 4 do
  local seq, branch, id = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  redis.call('ZCARD', branches .. branch)
  if seen[id] or not is_emptied and (not gone[id] and redis.call('HEXISTS', ids, id) == 1
      or not free[seq] and redis.call('HEXISTS', rows, seq) == 1) then return {'duplicate'} end
  seen[id] = true
end
if before ~= '0' and is_earlier() then
  local identity = redis.call('HGET', head, 'identity')
  redis.call('UNLINK', head, KEYS[7])
  redis.call('HSET', head, 'identity', identity, 'generation', ARGV[9])
end
redis.call('HSET', head, unpack(ARGV, 8, first_drop - 1))
if before == '0' then redis.call('ZADD', sessions, 0, digest) end
if is_emptied then drop_all() end
for id, from in pairs(gone) do
  redis.call('HDEL', rows, from[1])
  redis.call('HDEL', ids, id)
  redis.call('ZREM', branches .. from[2], from[1])
end
for i = first_put, #ARGV, 4 do
  local seq, branch, id = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  redis.call('HSET', rows, seq, ARGV[i + 3])
  redis.call('HSET', ids, id, seq .. ' ' .. branch)
  redis.call('ZADD', branches .. branch, seq, seq)
end
told()
return {'ok'}
"""
)
# Rebuilds a session from its records; what has a wrong type is renamed. ARGV: stamp before, the
# identity, the time and the reason, how many fields, records to set aside, and branches that were
# known; then these, and seq, branch and id of each row that stays.
REPAIR = (
    _COMMON
    + """
local before, identity, at, reason = unpack(ARGV, 3, 6)
local fields, asides, known = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local aside, all_asides = KEYS[10], KEYS[11]
if stamp() ~= before then return {'other'} end
local function freed(key, wanted, name)
  local found = kind(key)
  if found == wanted or found == 'none' then return end
  redis.call('RENAME', key, aside .. ':' .. name)
  redis.call('SADD', all_asides, digest)
end
freed(all_asides, 'set', 'asides')
freed(sessions, 'zset', 'sessions')
freed(aside, 'list', 'aside')
freed(head, 'hash', 'session')
freed(rows, 'hash', 'records')
freed(ids, 'hash', 'ids')
local first_aside = 10 + 2 * fields
local first_branch = first_aside + asides
local first_row = first_branch + known
for i = first_aside, first_branch - 1 do
  if redis.call('EXISTS', aside) == 0 then redis.call('RPUSH', aside, identity) end
  local line = redis.call('HGET', rows, ARGV[i]) or ''
  redis.call('RPUSH', aside, at .. ' ' .. ARGV[i] .. ' ' .. reason .. '\\n' .. line)
  redis.call('HDEL', rows, ARGV[i])
  redis.call('SADD', all_asides, digest)
end
redis.call('UNLINK', ids, head, KEYS[7])
for i = first_branch, first_row - 1 do redis.call('UNLINK', branches .. ARGV[i]) end
redis.call('HSET', head, unpack(ARGV, 10, first_aside - 1))
redis.call('ZADD', sessions, 0, digest)
for i = first_row, #ARGV, 3 do
  redis.call('HSET', ids, ARGV[i + 2], ARGV[i] .. ' ' .. ARGV[i + 1])
  redis.call('ZADD', branches .. ARGV[i + 1], ARGV[i], ARGV[i])
end
told()
return {'ok'}
"""
)
REMOVE = (
    _COMMON
    + """
if stamp() ~= ARGV[3] then return {'other'} end
redis.call('ZCARD', sessions)
local held = drop_all()
redis.call('UNLINK', head, KEYS[8], KEYS[7], KEYS[9])
redis.call('ZREM', sessions, digest)
told()
return {'ok', string.format('%.0f', held)}
"""
)
PAGE = """
local head, rows, own = unpack(KEYS)
local order, after, upto, limit = unpack(ARGV)
local found
if order == 'newest' then
  found = redis.call('ZREVRANGEBYSCORE', own, upto, '(' .. after, 'WITHSCORES', 'LIMIT', 0, limit)
else
  found = redis.call('ZRANGEBYSCORE', own, '(' .. after, upto, 'WITHSCORES', 'LIMIT', 0, limit)
end
local page = {redis.call('HGET', head, 'generation') or ''}
for i = 1, #found, 2 do
  local seq, score = found[i], found[i + 1]
  -- An answer is read item by item: only where it is another, the place is told as well.
  page[#page + 1] = seq == score and seq or ('!' .. score .. ' ' .. seq)
  page[#page + 1] = seq == score and redis.call('HGET', rows, seq) or ''
end
return page
"""
BY_ID = """
local rows, ids = unpack(KEYS)
local found = {}
for _, id in ipairs(ARGV) do
  local place = redis.call('HGET', ids, id)
  local seq = place and string.match(place, '^(%d+) ')
  found[#found + 1] = place or ''
  found[#found + 1] = seq and redis.call('HGET', rows, seq) or ''
end
return found
"""
