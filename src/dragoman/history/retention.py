"""Retention: deletes histories by age and number of messages, per scope."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from time import time
from typing import Any

import msgspec

from dragoman.errors import Conflict, InvalidInputError
from dragoman.history import remembered_cuts
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.integrity import is_damaged
from dragoman.history.storage.protocol import MAIN, Filter, Session, Storage
from dragoman.history.stored_session import Keeper
from dragoman.history.transfer import every_session
from dragoman.history.truncation.cut import Group, grouped, is_instruction
from dragoman.model.collection import Messages
from dragoman.model.messages import Message
from dragoman.model.value import expect, expect_number


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How much to keep of the sessions of a scope. `None` means everything."""

    max_age: float | None = None
    """Seconds since the last write after which a session is deleted."""
    max_messages: int | None = None
    """Maximum messages per session; the oldest turns go. Instructions and pinned turns stay."""

    def __post_init__(self) -> None:
        age, most = self.max_age, self.max_messages
        is_age = age is None or (type(age) in {int, float} and isfinite(age) and age > 0)
        if not is_age or not (most is None or (type(most) is int and most > 0)):
            msg = "max_age and max_messages must be greater than 0"
            raise InvalidInputError(msg)


class SweepResult(msgspec.Struct):
    """What a sweep removed."""

    sessions: int = 0
    messages: int = 0


async def sweep(
    storage: Storage, rules: Mapping[Any, Retention], *, now: float | None = None
) -> SweepResult:
    """Deletes what the rules of each scope no longer keep; safe to run at any time.

    The key `None` stands for sessions without a scope. Branched sessions are never shortened, only
    deleted by age. Damaged sessions are left alone until they are repaired.
    """
    _check(rules, now)
    swept = SweepResult()
    for scope, rule in rules.items():
        if rule.max_age is not None:
            until = (time() if now is None else now) - rule.max_age
            async for session in every_session(storage, Filter(scope=scope, until=until)):
                if not is_damaged(session):  # otherwise its age is unknown
                    await _delete(storage, session.identity, until, swept)
        if rule.max_messages is not None:
            async for session in every_session(storage, Filter(scope=scope)):
                if not is_damaged(session):
                    swept.messages += await _shortened(storage, session, rule.max_messages)
    return swept


def _check(rules: Any, now: Any) -> None:
    expect(rules, Mapping, "the rules of a sweep")
    expect_number(now, "the time of a sweep")
    for scope, rule in rules.items():
        expect(scope, (str, type(None)), "a scope")
        expect(rule, Retention, "the rule of a scope")


async def _delete(
    storage: Storage, identity: SessionIdentity, until: float, swept: SweepResult
) -> None:
    session = await storage.session(identity)
    if session is None or await _last_written(storage, session) >= until:
        return  # it was used again since it was listed
    messages = await storage.count(identity)
    if await storage.delete(identity):
        swept.sessions += 1
        swept.messages += messages


async def _last_written(storage: Storage, session: Session) -> float:
    """When a session was last written to; its messages count, as its own time may be damaged."""
    times = [session.updated_at]
    for branch in (MAIN, *(fork.number for fork in session.forks)):
        last = await storage.rows(session.identity, branch=branch, limit=1, newest=True)
        times += [row.at for row in last if row.at <= time()]
    return max(times)


async def _shortened(storage: Storage, session: Session, most: int) -> int:
    identity: SessionIdentity = session.identity
    if session.forks or await storage.count(identity) <= most:
        return 0
    keeper = Keeper(identity, storage, store_meta=True)
    messages = await keeper.stored(session)
    removed = _surplus(list(messages), most)
    if not removed:
        return 0
    try:
        gone = await keeper.rewrite({}, [message.id for message in removed], session.version)
    except Conflict:
        return 0  # somebody is writing; the next sweep will handle it
    await _recount(storage, session, messages, [message.id for message in removed])
    return len(removed) - len(gone)


async def _recount(
    storage: Storage, session: Session, messages: Messages, removed: list[str]
) -> None:
    """Keeps the numbers of messages right that windows omit."""
    cuts = remembered_cuts.read(session)
    new = {key: remembered_cuts.after_removal(cut, messages, removed) for key, cut in cuts.items()}
    if new != cuts:
        await storage.keep_windows(session.identity, remembered_cuts.written(new))


def _surplus(messages: list[Message], most: int) -> list[Message]:
    """The oldest turns, as many as needed, but never the last."""
    surplus = len(messages) - most
    removed: list[Message] = []
    for group in grouped(messages)[:-1]:
        if len(removed) >= surplus:
            break
        removed += _of(messages, group)
    return removed


def _of(messages: list[Message], group: Group) -> list[Message]:
    own = messages[group.start : group.stop]
    return [] if group.stays else [message for message in own if not is_instruction(message)]
