"""The Lua script that sets damaged records aside, and rebuilds a session from the remaining rows.

`records` is the authoritative key of a session: ids, positions on branches and counters are rebuilt
from it, and from what agrees with it. Keys of a wrong type are renamed.
"""

from __future__ import annotations

from dragoman.history.storage.redis.scripts import ONCE

ASIDES = ("session", "records", "ids", "aside", "asides", "sessions")
"""The keys that may be next to a session's `aside`, as `aside:<name>`: those of a wrong type."""

SET_ASIDE = (
    ONCE
    + """
local identity, at, reason, expected, seal = unpack(ARGV, 4, 8)
if not is_lost and redis.call('EXISTS', head, rows, ids) == 0 then return {'session'} end

local function free(key, kind, name)
  local found = redis.call('TYPE', key).ok
  if found == kind or found == 'none' then return end
  redis.call('RENAME', key, KEYS[7] .. ':' .. name)
  redis.call('SADD', KEYS[8], digest)
end
local function field(name) return is_hash(head) and redis.call('HGET', head, name) end

local chained = string.gmatch(field('chain') or '', '%d+')
chained() -- the scheme's
local version = math.max(whole(field('version')) or 0, whole(chained()) or 0)
local last = math.max(whole(field('last_seq')) or 0, whole(chained()) or 0)
if expected ~= '' and tonumber(expected) ~= version then
  return {'conflict', number(version)}
end
free(KEYS[8], 'set', 'asides')
free(KEYS[6], 'zset', 'sessions')
free(KEYS[7], 'list', 'aside')
free(head, 'hash', 'session')
free(rows, 'hash', 'records')
free(ids, 'hash', 'ids')

local moved = 0
local function move(seq, line)
  if redis.call('EXISTS', KEYS[7]) == 0 then redis.call('RPUSH', KEYS[7], identity) end
  redis.call('RPUSH', KEYS[7], at .. ' ' .. seq .. ' ' .. reason .. '\\n' .. line)
  redis.call('HDEL', rows, seq)
  moved = moved + 1
end

-- What the ids say, and the branches: it counts where both agree, and nobody else says so.
local known, claims, claimed = branches_known(), {}, redis.call('HGETALL', ids)
for i = 1, #claimed, 2 do
  local seq, branch = string.match(claimed[i + 1], '^(%d+) (%d+)$')
  if seq then
    known[branch] = true
    local claim = {id = claimed[i], branch = branch, is_sole = not claims[seq]}
    if claims[seq] then claims[seq].is_sole = false else claims[seq] = claim end
  end
end
local function is_placed(seq, claim, line)
  local own = branches .. claim.branch
  return claim.is_sole and redis.call('TYPE', own).ok == 'zset'
    and redis.call('ZSCORE', own, seq) == seq
    and string.find(line, '"seq":' .. seq .. ',"id":"' .. claim.id .. '"', 1, true)
end
local function in_line(line)
  local is_json, read = pcall(cjson.decode, line)
  local value = is_json and type(read) == 'table' and read.value
  if type(value) ~= 'table' or type(value.id) ~= 'string' then return nil end
  local branch = value.branch or 0
  if type(branch) ~= 'number' or branch < 0 or branch > 1e9 then return nil end
  return {id = value.id, branch = number(branch)}
end

for i = 9, #ARGV do
  local line = redis.call('HGET', rows, ARGV[i])
  if line or claims[ARGV[i]] then move(ARGV[i], line or '') end
end
local places, first, held, taken, sealed = {}, {}, 0, {}, false
for _, seq in ipairs(redis.call('HKEYS', rows)) do
  local claim, line = claims[seq], redis.call('HGET', rows, seq)
  if not claim or not is_placed(seq, claim, line) then
    claim = in_line(line) or (claim and claim.is_sole and claim) or nil
  end
  if claim and whole(seq) and tonumber(seq) > 0 and not taken[claim.id] then
    taken[claim.id] = true
    places[seq] = claim
    local n, branch = tonumber(seq), claim.branch
    first[branch] = math.min(first[branch] or n, n)
    last = math.max(last, n)
    held = held + 1
    sealed = sealed
      or string.find(line, ',"message":{"dragoman":%d+,"kind":"SealedMessage",') ~= nil
  else
    move(seq, line)
  end
end

redis.call('UNLINK', ids)
for branch in pairs(known) do redis.call('UNLINK', branches .. branch) end
for seq, claim in pairs(places) do
  redis.call('HSET', ids, claim.id, seq .. ' ' .. claim.branch)
  redis.call('ZADD', branches .. claim.branch, seq, seq)
end

local wanted, found = {}, redis.call('HGETALL', head)
for i = 1, #found, 2 do
  local branch = whole(string.match(found[i], '^fork:(%d+)$'))
  local parent, after = string.match(found[i + 1], '^(%d+) (%d+)$')
  if branch and branch > 0 and whole(parent) and whole(after) and tonumber(after) <= last then
    wanted[#wanted + 1] = {branch, parent, after}
  end
end
table.sort(wanted, function(one, other) return one[1] < other[1] end)
local forks, count_of_forks, most = {['0'] = ''}, 0, 0
drop_branches()
local function keep_fork(branch, parent, after)
  forks[branch] = true
  count_of_forks, most = count_of_forks + 1, math.max(most, tonumber(branch))
  redis.call('HSET', head, 'fork:' .. branch, parent .. ' ' .. after)
end
for _, fork in ipairs(wanted) do
  if forks[fork[2]] then keep_fork(number(fork[1]), fork[2], fork[3]) end
end
for branch, n in pairs(first) do
  if not forks[branch] then keep_fork(branch, '0', number(n - 1)) end
end

local created, active = tonumber(field('created_at') or ''), field('active')
if not created or created ~= created or created < 0 or created > tonumber(at) then
  redis.call('HSET', head, 'created_at', at)
end
if not active or not forks[active] then active = '0' end
redis.call('HSET', head, 'identity', identity, 'last_seq', number(last), 'active', active,
           'forks', number(most))
touch({version = version, last = last, rows = held, forks = count_of_forks}, at)
shape()
if held > 0 and not sealed then keep_seal('-') end
keep_seal(seal)
enlist()
if moved > 0 then redis.call('SADD', KEYS[8], digest) end
return finished(number(moved))
"""
)
