"""The Lua scripts that run in Redis: one atomic call per write.

The keys of a session are all in one slot (`{digest}`):

    <prefix>:{digest}:session      hash    the session; `fork:<n>` is "<parent> <at>"
    <prefix>:{digest}:records      hash    seq → the line of a message
    <prefix>:{digest}:ids          hash    id → "<seq> <branch>"
    <prefix>:{digest}:branch:<n>   zset    the numbers of a branch's own messages
    <prefix>:{digest}:aside        list    the owner, then the records set aside
    <prefix>:{digest}:done         list    the latest writes, for ten minutes

There are also `<prefix>:sessions`, a sorted set of all digests, and `<prefix>:asides`, a set of
those with records set aside. Because these are in other slots, clusters are not supported.

A session in version 1 of the stored form is in `…:head` and `…:rows` instead, and can be read
there. The first write renames both, and puts a text in their place: a program of version 1 then
finds keys of the wrong type, whatever it tries, and writes nothing.

`generation` changes with everything but an append, so that a reader of several pages can tell
whether they belong together. `token` is that of the last append, with its result, and `done` has
those of the other writes: a write that is sent again because its reply was lost is not repeated.

`chain` is the tally (`integrity`), `shape` a hash of the branches (`soundness`). A script that
finds inconsistent counters changes nothing and returns "damaged". A script that finds a key of the
wrong type fails, because it accesses all of them before it writes.
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

local is_lost = false -- the head, of a session that was there
if redis.call('EXISTS', head) == 0 and redis.call('EXISTS', old_head) == 1 then
  if redis.call('TYPE', old_head).ok == 'string' then
    is_lost = string.sub(redis.call('GET', old_head), 1, 15) == 'kept in version'
  end
  if not is_lost then
    redis.call('HLEN', old_head) -- fails, before anything is written, where it is somebody else's
    redis.call('RENAME', old_head, head)
    if redis.call('EXISTS', old_rows) == 1 then redis.call('RENAME', old_rows, rows) end
    bar()
  end
end

local function number(value) return string.format('%.0f', value) end

local function whole(text)
  return text and #text <= 15 and string.match(text, '^%d+$') and tonumber(text)
end

local function line_of(seq, branch, version, front, middle, back)
  if branch ~= '0' then front = front .. ',"branch":' .. branch end
  if version then front = front .. ',"version":' .. version end
  return '{"dragoman":' .. format .. ',"kind":"Record","value":{"seq":' .. seq .. front .. middle
    .. branch .. '.' .. seq .. back
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

local function is_hash(key) return redis.call('TYPE', key).ok == 'hash' end

local function branches_known()
  local known = {['0'] = true}
  if is_hash(head) then
    for _, field in ipairs(redis.call('HKEYS', head)) do
      local branch = string.match(field, '^fork:(%d+)$') or string.match(field, '^stray:(%d+)$')
      if branch then known[branch] = true end
    end
  end
  return known
end

local function drop_all()
  local held = is_hash(rows) and redis.call('HLEN', rows) or 0
  local known = branches_known()
  if is_hash(ids) then
    for _, place in ipairs(redis.call('HVALS', ids)) do
      local branch = string.match(place, '^%d+ (%d+)$')
      if branch then known[branch] = true end
    end
  end
  redis.call('UNLINK', rows, ids)
  for branch in pairs(known) do redis.call('UNLINK', branches .. branch) end
  return held
end

local function drop_branches()
  for _, field in ipairs(redis.call('HKEYS', head)) do
    if string.match(field, '^fork:') or string.match(field, '^stray:') then
      redis.call('HDEL', head, field)
    end
  end
end

local function count(now)
  now.rows, now.forks = 0, 0
  for branch in pairs(branches_known()) do
    if has_branch(branch) then
      local own = branches .. branch
      now.rows = now.rows + redis.call('ZCOUNT', own, 1, number(now.last))
      if branch ~= '0' then now.forks = now.forks + 1 end
      if redis.call('ZCOUNT', own, '(' .. number(now.last), '+inf') > 0 then
        now.wrong = {'damaged'}
      end
    end
  end
end

local function state(expected)
  local found = redis.call('HMGET', head, 'version', 'last_seq', 'token', 'chain')
  local version, last, chain = whole(found[1]), whole(found[2]), found[4] or ''
  local now = {version = 0, last = 0, rows = 0, forks = 0, token = found[3]}
  if version and last then
    now.there, now.version, now.last = true, version, last
    if string.sub(chain, 1, 3) == 'n1-' then
      local v, l, held, forks = string.match(chain, '^n1%-(%d+)%.(%d+)%.(%d+)%.(%d+)$')
      if v == found[1] and l == found[2] and whole(held) and whole(forks) then
        now.rows, now.forks = tonumber(held), tonumber(forks)
      else
        now.wrong = {'damaged'}
      end
    else
      count(now)
    end
  elseif is_lost or redis.call('EXISTS', head, rows, ids) > 0 then
    now.wrong = {'damaged'}
  end
  if not now.wrong and expected ~= '' and tonumber(expected) ~= now.version then
    now.wrong = {'conflict', number(now.version)}
  end
  return now
end

local function tally(now)
  return 'n1-' .. number(now.version) .. '.' .. number(now.last) .. '.' .. number(now.rows) .. '.'
    .. number(now.forks)
end

local function touch(now, at)
  now.version = now.version + 1
  redis.call('HSET', head, 'version', number(now.version), 'updated_at', at, 'generation', token,
             'chain', tally(now))
end

local function shape()
  local forks, all = {}, redis.call('HGETALL', head)
  local text = redis.call('HGET', head, 'active') or '0'
  for i = 1, #all, 2 do
    local branch = string.match(all[i], '^fork:(%d+)$')
    if branch then forks[#forks + 1] = {tonumber(branch), all[i + 1]} end
  end
  table.sort(forks, function(one, other) return one[1] < other[1] end)
  for _, fork in ipairs(forks) do text = text .. ';' .. number(fork[1]) .. ':' .. fork[2] end
  if #forks == 0 then redis.call('HDEL', head, 'shape')
  else redis.call('HSET', head, 'shape', 'f1-' .. string.sub(redis.sha1hex(text), 1, 16)) end
end

local function keep_seal(given)
  if given == '-' then redis.call('HDEL', head, 'seal')
  elseif given ~= '' then redis.call('HSET', head, 'seal', string.sub(given, 2)) end
end

local function enlist()
  redis.call('ZADD', KEYS[6], 0, digest)
  bar()
end
""".replace("$VERSION", str(document.VERSION))
ONCE = (
    _COMMON
    + """
local done = redis.call('TYPE', KEYS[9]).ok
if done ~= 'list' and done ~= 'none' then redis.call('UNLINK', KEYS[9]) end
for _, text in ipairs(redis.call('LRANGE', KEYS[9], 0, -1)) do
  if string.sub(text, 1, #token + 1) == token .. ' ' then
    local reply = {'ok'}
    for word in string.gmatch(string.sub(text, #token + 2), '%d+') do reply[#reply + 1] = word end
    return reply
  end
end

local function finished(...)
  redis.call('LPUSH', KEYS[9], token .. ' ' .. table.concat({...}, ' '))
  redis.call('LTRIM', KEYS[9], 0, 63)
  redis.call('EXPIRE', KEYS[9], 600)
  return {'ok', ...}
end
"""
)
_KEPT = """
local head, rows, ids = KEYS[1], KEYS[2], KEYS[5]
if redis.call('EXISTS', head) == 0 then head, rows = KEYS[3], KEYS[4] end
"""

APPEND = (
    _COMMON
    + """
local identity, expected, branch, first_at, last_at, seal = unpack(ARGV, 4, 9)
local now = state(expected)
if now.token and string.sub(now.token, 1, #token + 1) == token .. ' ' then
  return {'ok', string.match(now.token, ' (%d+) (%d+)$')}
end
if now.wrong then return now.wrong end
if not has_branch(branch) then return {'branch'} end
redis.call('HLEN', rows)
redis.call('ZCARD', branches .. branch)
local known, seen, is_twice = {'duplicate'}, {}, false
for i = 10, #ARGV, 4 do
  if redis.call('HEXISTS', ids, ARGV[i]) == 1 then known[#known + 1] = ARGV[i] end
  is_twice = is_twice or seen[ARGV[i]]
  seen[ARGV[i]] = true
end
if is_twice or #known > 1 then return known end
if not now.there then
  enlist()
  redis.call('HSET', head, 'identity', identity, 'created_at', first_at, 'generation', token)
end
now.version = now.version + 1
for i = 10, #ARGV, 4 do
  now.last, now.rows = now.last + 1, now.rows + 1
  local seq = number(now.last)
  put(seq, branch, ARGV[i],
      line_of(seq, branch, number(now.version), ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]))
end
local version, last = number(now.version), number(now.last)
redis.call('HSET', head, 'version', version, 'last_seq', last, 'updated_at', last_at, 'token',
           token .. ' ' .. version .. ' ' .. last, 'chain', tally(now))
keep_seal(seal)
return {'ok', version, last}
"""
)

REWRITE = (
    ONCE
    + """
local expected, at, replaced, seal = ARGV[4], ARGV[5], tonumber(ARGV[6]), ARGV[7]
local now = state(expected)
if not now.there then return now.wrong or {'session'} end
if now.wrong then return now.wrong end
redis.call('HLEN', rows)
local removed, places, seen = 8 + 4 * replaced, {}, {}
local function place(id)
  local found = redis.call('HGET', ids, id)
  if not found then return {'message'} end
  local seq, branch = string.match(found, '^(%d+) (%d+)$')
  if not seq then return {'damaged'} end
  redis.call('ZSCORE', branches .. branch, seq)
  places[id] = {seq, branch}
end
for i = 8, removed - 1, 4 do
  local wrong = place(ARGV[i])
  if wrong then return wrong end
end
for i = removed, #ARGV do
  local wrong = seen[ARGV[i]] and {'message'} or place(ARGV[i])
  if wrong then return wrong end
  seen[ARGV[i]] = true
end
for i = 8, removed - 1, 4 do
  local seq, branch = unpack(places[ARGV[i]])
  redis.call('HSET', rows, seq,
             line_of(seq, branch, nil, ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]))
end
for i = removed, #ARGV do
  local seq, branch = unpack(places[ARGV[i]])
  drop(seq, branch, ARGV[i])
  now.rows = now.rows - 1
end
touch(now, at)
keep_seal(seal)
return finished(number(now.version))
"""
)

CLEAR = (
    ONCE
    + """
local identity, expected, at, seal = ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local now = state(expected)
if now.wrong then return now.wrong end
if not now.there then
  enlist()
  redis.call('HSET', head, 'identity', identity, 'created_at', at)
end
drop_all()
drop_branches()
redis.call('HDEL', head, 'window', 'windows', 'seal', 'active', 'forks', 'shape')
redis.call('HSET', head, 'last_seq', number(now.last))
now.rows, now.forks = 0, 0
touch(now, at)
keep_seal(seal)
return finished(number(now.version))
"""
)

FORK = (
    ONCE
    + """
local expected, at, parent, after, seal = unpack(ARGV, 4, 8)
local now = state(expected)
if not now.there then return now.wrong or {'session'} end
if now.wrong then return now.wrong end
if not has_branch(parent) then return {'branch'} end
local made = 1
for branch in pairs(branches_known()) do made = math.max(made, tonumber(branch) + 1) end
made = number(made)
redis.call('HSET', head, 'fork:' .. made, parent .. ' ' .. after, 'active', made, 'forks', made)
now.forks = now.forks + 1
touch(now, at)
shape()
keep_seal(seal)
return finished(made)
"""
)

ACTIVATE = (
    ONCE
    + """
local branch, expected, seal = ARGV[4], ARGV[5], ARGV[6]
local now = state(expected)
if not now.there then return now.wrong or {'session'} end
if now.wrong then return now.wrong end
if not has_branch(branch) then return {'branch'} end
redis.call('HSET', head, 'active', branch)
shape()
keep_seal(seal)
return finished()
"""
)

WINDOWS = (
    ONCE
    + """
if not redis.call('HGET', head, 'version') then return {'session'} end
redis.call('HDEL', head, 'window')
if ARGV[4] == '' then redis.call('HDEL', head, 'windows')
else redis.call('HSET', head, 'windows', ARGV[5]) end
return finished()
"""
)

DELETE = (
    ONCE
    + """
local there = (is_lost or redis.call('EXISTS', head, rows, ids) > 0) and '1' or '0'
local held = drop_all()
redis.call('UNLINK', head, old_head, old_rows)
redis.call('ZREM', KEYS[6], digest)
return finished(there, number(held))
"""
)

RESTORE = (
    ONCE
    + """
local copied, fields = tonumber(ARGV[4]), tonumber(ARGV[5])
local now = state('')
if now.wrong then return now.wrong end
if now.there and now.version >= copied then return finished('0') end
enlist()
drop_all()
redis.call('UNLINK', head)
for i = 6, 5 + 2 * fields, 2 do redis.call('HSET', head, ARGV[i], ARGV[i + 1]) end
redis.call('HSET', head, 'generation', token)
for i = 6 + 2 * fields, #ARGV, 4 do put(unpack(ARGV, i, i + 3)) end
return finished('1')
"""
)

PAGE = (
    _KEPT
    + """
local order, after, upto, limit = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local found
if order == 'newest' then
  found = redis.call('ZREVRANGEBYSCORE', KEYS[6], upto, '(' .. after, 'WITHSCORES', 'LIMIT', 0,
                     limit)
else
  found = redis.call('ZRANGEBYSCORE', KEYS[6], '(' .. after, upto, 'WITHSCORES', 'LIMIT', 0, limit)
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
)

BY_ID = (
    _KEPT
    + """
local found = {}
for _, id in ipairs(ARGV) do
  local place = redis.call('HGET', ids, id)
  local seq = place and string.match(place, '^(%d+) ')
  found[#found + 1] = place or ''
  found[#found + 1] = seq and redis.call('HGET', rows, seq) or ''
end
return found
"""
)

HEAD = _KEPT + "return redis.call('HGETALL', head)"

COUNT = (
    _KEPT
    + """
local last = redis.call('HGET', head, 'last_seq')
if not last or not string.match(last, '^%d+$') then last = '+inf' end
local held = redis.call('ZCOUNT', ARGV[1] .. '0', 1, last)
for _, field in ipairs(redis.call('HKEYS', head)) do
  local branch = string.match(field, '^fork:(%d+)$')
  if branch then held = held + redis.call('ZCOUNT', ARGV[1] .. branch, 1, last) end
end
return held
"""
)

RECORDS = _KEPT + "return redis.call('HLEN', rows)"

LINES = (
    _KEPT
    + """
local found = {}
for i, seq in ipairs(ARGV) do found[i] = redis.call('HGET', rows, seq) or '' end
return found
"""
)
