"""No damage to a store is silent, and what can be repaired is: every backend that can be damaged.

A short version; `make torture` does each a thousand times.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from dragoman import ChatHistory, Message, SessionIdentity
from dragoman.errors import DragomanError
from dragoman.history.storage.protocol import Storage
from dragoman.testing.conformance.stores.data import ONE, TWO
from tests.history.storage.damaging import (
    LONG,
    PEOPLE,
    Damage,
    Damager,
    Seen,
    damageable,
    look,
    make,
    opened,
    repaired,
)

_SOME = {ONE: ["a0", "a4", "a11", "b2"], TWO: ["c0", "d1", "e1"], LONG: ["f0", "f31", "f59"]}
Ids = dict[SessionIdentity, list[str]]


@pytest.mark.whole  # hostile input
@pytest.mark.parametrize(
    ("backend", "kind"),
    [
        pytest.param(name, kind, id=f"{name}-{kind}")
        for name, module in damageable().items()
        for kind in module.KINDS
    ],
)
async def test_no_damage_is_silent(tmp_path: Path, backend: str, kind: str) -> None:
    """What is read is unchanged, or damage is reported; writes make nothing worse; repair works."""
    module = damageable()[backend]
    with module.damaged(tmp_path) as damager:
        async with opened(damager) as storage:
            await make(storage)
            first = await look(storage, {})
            ids = {who: _SOME.get(who, list(said)) for who, said in first.said.items()}
            before = await look(storage, ids)
            assert not before.is_told, before.values
        await damager.keep()
        for number in range(module.KINDS[kind]):
            damage = damager.damage(Random(f"{backend} {kind} {number}"), kind)
            if damage is not None:
                await _check(damager, damage, before, ids, module.BEYOND)
            await damager.put_back()


async def _check(
    damager: Damager, damage: Damage, before: Seen, ids: Ids, beyond: tuple[str, ...]
) -> None:
    what = damage.what
    try:
        async with opened(damager) as storage:
            seen = await look(storage, ids)
    except DragomanError:
        assert not damage.is_reparable, what
        return
    assert seen.is_told or (seen.values == before.values and not damage.is_told), what
    if not damage.is_reparable:
        return
    async with opened(damager) as storage:
        await _append(storage)
    async with opened(damager) as storage:
        after = await look(storage, ids)
        for who in PEOPLE:
            assert seen.said[who].items() <= after.said[who].items(), what
            for name in (f"{who.digest[:6]} {id}" for id in ids[who]):
                if isinstance(seen.values.get(name), Message):
                    assert after.values[name] == seen.values[name], (what, name)
        left = await repaired(storage)
        assert [each for each in left if not any(words in each for words in beyond)] == [], what
    async with opened(damager) as storage:
        mended = await look(storage, ids)
        for who in PEOPLE:
            assert seen.said[who].items() <= mended.said[who].items(), what
            known = before.said[who].keys() | after.said[who].keys()
            appeared = {text for id, text in mended.said[who].items() if id not in known}
            assert appeared <= {"new"}, what  # which we have added
        if not left:
            await _is_sound(storage, what)


async def _append(storage: Storage) -> None:
    for who in PEOPLE:
        try:
            history = await ChatHistory.open(who, storage)
            await history.add(Message.user("new"))
        except DragomanError:
            continue
        await history.close()


async def _is_sound(storage: Storage, what: str) -> None:
    for who in PEOPLE:
        history = await ChatHistory.open(who, storage)
        await history.messages()
        assert history.damaged == (), what
        await history.add(Message.user("on"))
        await history.close()
