"""The Lua that runs in Redis: one call for each write, as a whole or not at all.

A session has, all in one slot (`{digest}`):

    <prefix>:{digest}:session      hash    what a session is; `fork:<n>` is "<parent> <at>"
    <prefix>:{digest}:records      hash    seq → the line of a message
    <prefix>:{digest}:ids          hash    id → "<seq> <branch>"
    <prefix>:{digest}:branch:<n>   zset    the numbers of a branch's own messages
    <prefix>:{digest}:aside        list    whose, then what was set aside

and beside them are `<prefix>:sessions`, a sorted set of all digests, and `<prefix>:asides`, a set
of those that have something set aside. These are why a cluster won't do: they are in other slots.

A session of version 1 of the stored form is in `…:head` and `…:rows` instead. It is read there; the
first write gives both their new names, and puts a text in their places: a program of version 1 then
finds keys of the wrong type, whatever it tries, and writes nothing.

`generation` changes with everything but an append, so that a reader of many pages can tell that
they belong together. `token` is the last append's, with what it made: sent again, it is not done
again.
"""

from __future__ import annotations

from dragoman.model import document

_COMMON = """
local format = '$VERSION'
local head, rows, old_head, old_rows, ids = unpack(KEYS, 1, 5)
local branches, digest, token = ARGV[1], ARGV[2], ARGV[3]

local function bar()
  local text = 'kept in version ' .. format .. ' of the stored form; this keeps older ones off'
  redis.call('MSET', old_head, text, old_rows, text)
end

if redis.call('EXISTS', head) == 0 and redis.call('EXISTS', old_head) == 1 then
  redis.call('HLEN', old_head) -- fails, before anything is written, where it is somebody else's
  redis.call('RENAME', old_head, head)
  if redis.call('EXISTS', old_rows) == 1 then redis.call('RENAME', old_rows, rows) end
  bar()
end

local function number(value) return string.format('%.0f', value) end

local function line_of(seq, branch, version, front, back)
  if branch ~= '0' then front = front .. ',"branch":' .. branch end
  if version then front = front .. ',"version":' .. version end
  return '{"dragoman":' .. format .. ',"kind":"Record","value":{"seq":' .. seq .. front .. back
end

local function has_branch(branch)
  return branch == '0' or redis.call('HEXISTS', head, 'fork:' .. branch) == 1
end

local function put(seq, branch, id, line)
  redis.call('HSET', rows, seq, line)
  redis.call('HSET', ids, id, seq .. ' ' .. branch)
  redis.call('ZADD', branches .. branch, seq, seq)
end

local function drop(seq, branch, id)
  redis.call('HDEL', rows, seq)
  redis.call('HDEL', ids, id)
  redis.call('ZREM', branches .. branch, seq)
end

local function drop_all()
  local held = redis.call('HLEN', rows)
  redis.call('UNLINK', rows, ids, branches .. '0')
  for _, field in ipairs(redis.call('HKEYS', head)) do
    local branch = string.match(field, '^fork:(%d+)$') or string.match(field, '^stray:(%d+)$')
    if branch then
      redis.call('UNLINK', branches .. branch)
      redis.call('HDEL', head, field)
    end
  end
  return held
end

local function touch(version, at)
  redis.call('HSET', head, 'version', number(version), 'updated_at', at, 'generation', token)
end

local function state(expected)
  local found = redis.call('HMGET', head, 'version', 'last_seq', 'token')
  local version = tonumber(found[1] or 0)
  local wrong = nil
  if expected ~= '' and tonumber(expected) ~= version then
    wrong = {'conflict', number(version)}
  end
  return found[1], version, tonumber(found[2] or 0), found[3], wrong
end

local function enlist()
  bar()
  redis.call('ZADD', KEYS[6], 0, digest)
end
""".replace("$VERSION", str(document.VERSION))
_KEPT = """
local head, rows, ids = KEYS[1], KEYS[2], KEYS[5]
if redis.call('EXISTS', head) == 0 then head, rows = KEYS[3], KEYS[4] end
"""

APPEND = (
    _COMMON
    + """
local identity, expected, branch, first_at, last_at = unpack(ARGV, 4, 8)
local there, version, last, before, wrong = state(expected)
if before and string.sub(before, 1, #token) == token then
  return {'ok', string.match(before, ' (%d+) (%d+)$')}
end
if wrong then return wrong end
if not has_branch(branch) then return {'branch'} end
local known, seen, is_twice = {'duplicate'}, {}, false
for i = 9, #ARGV, 3 do
  if redis.call('HEXISTS', ids, ARGV[i]) == 1 then known[#known + 1] = ARGV[i] end
  is_twice = is_twice or seen[ARGV[i]]
  seen[ARGV[i]] = true
end
if is_twice or #known > 1 then return known end
if not there then
  redis.call('HSET', head, 'identity', identity, 'created_at', first_at, 'generation', token)
  enlist()
end
version = version + 1
for i = 9, #ARGV, 3 do
  last = last + 1
  local seq = number(last)
  put(seq, branch, ARGV[i], line_of(seq, branch, number(version), ARGV[i + 1], ARGV[i + 2]))
end
local done = number(version) .. ' ' .. number(last)
redis.call('HSET', head, 'version', number(version), 'last_seq', number(last), 'updated_at',
           last_at, 'token', token .. ' ' .. done)
return {'ok', number(version), number(last)}
"""
)

REWRITE = (
    _COMMON
    + """
local expected, now, replaced = ARGV[4], ARGV[5], tonumber(ARGV[6])
local there, version, _, _, wrong = state(expected)
if not there then return {'session'} end
if wrong then return wrong end
local removed, places, seen = 7 + 3 * replaced, {}, {}
local function place(id)
  local found = redis.call('HGET', ids, id)
  if not found then return false end
  local seq, branch = string.match(found, '^(%d+) (%d+)$')
  places[id] = {seq, branch}
  return true
end
for i = 7, removed - 1, 3 do
  if not place(ARGV[i]) then return {'message'} end
end
for i = removed, #ARGV do
  if seen[ARGV[i]] or not place(ARGV[i]) then return {'message'} end
  seen[ARGV[i]] = true
end
for i = 7, removed - 1, 3 do
  local seq, branch = unpack(places[ARGV[i]])
  redis.call('HSET', rows, seq, line_of(seq, branch, nil, ARGV[i + 1], ARGV[i + 2]))
end
for i = removed, #ARGV do
  local seq, branch = unpack(places[ARGV[i]])
  drop(seq, branch, ARGV[i])
end
touch(version + 1, now)
return {'ok', number(version + 1)}
"""
)

CLEAR = (
    _COMMON
    + """
local identity, expected, at = ARGV[4], ARGV[5], ARGV[6]
local there, version, last, _, wrong = state(expected)
if wrong then return wrong end
drop_all()
if not there then
  redis.call('HSET', head, 'identity', identity, 'created_at', at)
  enlist()
end
redis.call('HDEL', head, 'window', 'windows', 'chain', 'seal', 'active', 'forks')
redis.call('HSET', head, 'last_seq', number(last))
touch(version + 1, at)
return {'ok', number(version + 1)}
"""
)

FORK = (
    _COMMON
    + """
local expected, now, parent, at = ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local there, version, _, _, wrong = state(expected)
if not there then return {'session'} end
if wrong then return wrong end
if not has_branch(parent) then return {'branch'} end
local made = number(redis.call('HINCRBY', head, 'forks', 1))
redis.call('HSET', head, 'fork:' .. made, parent .. ' ' .. at, 'active', made)
touch(version + 1, now)
return {'ok', made}
"""
)

ACTIVATE = (
    _COMMON
    + """
if not state('') then return {'session'} end
if not has_branch(ARGV[4]) then return {'branch'} end
redis.call('HSET', head, 'active', ARGV[4])
return {'ok'}
"""
)

WINDOW = (
    _COMMON
    + """
if not state('') then return {'session'} end
if ARGV[4] == '' then redis.call('HDEL', head, 'window')
else redis.call('HSET', head, 'window', ARGV[5]) end
return {'ok'}
"""
)

DELETE = (
    _COMMON
    + """
local there = redis.call('EXISTS', head)
local held = drop_all()
redis.call('UNLINK', head, old_head, old_rows)
redis.call('ZREM', KEYS[6], digest)
return {'ok', number(there), number(held)}
"""
)

RESTORE = (
    _COMMON
    + """
local copied, fields = tonumber(ARGV[4]), tonumber(ARGV[5])
local there, version = state('')
if there and version >= copied then return {'ok', '0'} end
drop_all()
redis.call('UNLINK', head)
for i = 6, 5 + 2 * fields, 2 do redis.call('HSET', head, ARGV[i], ARGV[i + 1]) end
redis.call('HSET', head, 'generation', token)
for i = 6 + 2 * fields, #ARGV, 4 do put(unpack(ARGV, i, i + 3)) end
enlist()
return {'ok', '1'}
"""
)

SET_ASIDE = (
    _COMMON
    + """
local identity, now, reason = ARGV[4], ARGV[5], ARGV[6]
local there, version = state('')
if not there then return {'session'} end
local wanted, moved = {}, 0
for i = 7, #ARGV do wanted[ARGV[i]] = true end
local all = redis.call('HGETALL', ids)
for i = 1, #all, 2 do
  local seq, branch = string.match(all[i + 1], '^(%d+) (%d+)$')
  if seq and wanted[seq] then
    if redis.call('EXISTS', KEYS[7]) == 0 then redis.call('RPUSH', KEYS[7], identity) end
    local line = redis.call('HGET', rows, seq) or ''
    redis.call('RPUSH', KEYS[7], now .. ' ' .. seq .. ' ' .. reason .. '\\n' .. line)
    drop(seq, branch, all[i])
    moved = moved + 1
  end
end
if moved > 0 then redis.call('SADD', KEYS[8], digest) end
touch(version + 1, now)
return {'ok', number(moved)}
"""
)

PAGE = (
    _KEPT
    + """
local order, after, upto, limit = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local found
if order == 'newest' then
  found = redis.call('ZREVRANGEBYSCORE', KEYS[6], upto, '(' .. after, 'LIMIT', 0, limit)
else
  found = redis.call('ZRANGEBYSCORE', KEYS[6], '(' .. after, upto, 'LIMIT', 0, limit)
end
local page = {redis.call('HGET', head, 'generation') or ''}
for _, seq in ipairs(found) do
  page[#page + 1] = seq
  page[#page + 1] = redis.call('HGET', rows, seq) or ''
end
return page
"""
)

BY_ID = (
    _KEPT
    + """
local found = {}
for i, id in ipairs(ARGV) do
  local place = redis.call('HGET', ids, id)
  local seq = place and string.match(place, '^(%d+) ')
  found[i] = seq and redis.call('HGET', rows, seq) or ''
end
return found
"""
)

HEAD = _KEPT + "return redis.call('HGETALL', head)"

COUNT = _KEPT + "return redis.call('HLEN', rows)"

LINES = (
    _KEPT
    + """
local found = {}
for i, seq in ipairs(ARGV) do found[i] = redis.call('HGET', rows, seq) or '' end
return found
"""
)
