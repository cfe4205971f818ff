"""No name, id or text makes a backend confuse sessions or lose a byte."""

from __future__ import annotations

import pytest

from dragoman.errors import InvalidInputError, StoreError
from dragoman.history.identity import FIELDS, SessionIdentity
from dragoman.history.records import body_of, message_of
from dragoman.history.storage.protocol import (
    Entry,
    Filter,
)
from dragoman.model.messages import Message
from dragoman.model.usage import Usage
from dragoman.testing.conformance.loops import in_loop
from dragoman.testing.conformance.stores.backends import Backend
from dragoman.testing.conformance.stores.data import (
    HOSTILE,
    NOON,
    ONE,
    entry,
    head,
    texts,
)


def named(who: SessionIdentity) -> Filter:
    """The filter for exactly these names, including absent ones."""
    return Filter(**{field: getattr(who, field) for field in FIELDS})


@in_loop
async def test_hostile_names_never_collide(backend: Backend) -> None:
    """Each session keeps its own message and name."""
    async with backend.opened() as storage:
        for number, who in enumerate(HOSTILE):
            appended = await storage.append(who, [entry(str(number))], expected=0)
            assert appended.last_seq == 1
        for number, who in enumerate(HOSTILE):
            assert texts(await storage.rows(who)) == [str(number)]
            assert (await head(storage, who)).identity == who
            found = await storage.sessions(named(who))
            assert [each.identity for each in found] == [who]
        listed = await storage.sessions()
        assert len(listed) == len(HOSTILE)
        assert {each.identity for each in listed} == set(HOSTILE)


@in_loop
async def test_hostile_names_are_deleted_one_by_one(backend: Backend) -> None:
    """Deleting one leaves all the others."""
    async with backend.opened() as storage:
        for who in HOSTILE:
            await storage.clear(who, at=NOON)
        left = set(HOSTILE)
        for who in HOSTILE[::3]:
            assert await storage.delete(who) is True
            left.remove(who)
        assert {each.identity for each in await storage.sessions()} == left


@in_loop
async def test_hostile_users_are_totalled_and_forgotten_separately(backend: Backend) -> None:
    """Users are compared byte by byte."""
    users = sorted({who.agent for who in HOSTILE if who.agent is not None})
    async with backend.opened() as storage:
        for user in users:
            who = SessionIdentity(user=user)
            await storage.append(who, [entry("a", usage=Usage(input=1))])
        found = {each.key: each.messages for each in await storage.totals("user")}
        assert found == dict.fromkeys(users, 1)
        for number, user in enumerate(users, 1):
            assert (await storage.forget(user)).sessions == 1
            assert len(await storage.sessions()) == len(users) - number


@in_loop
async def test_hostile_ids_are_distinguished(backend: Backend) -> None:
    """Imported histories may have any ids."""
    ids = [*"aAé'\"%_*\n🙂0", "a ", " a", "e\u0301", "a:b", "a/b", "../a", "\r\n", "x" * 1000]
    ids += ["x" * 1001, "00", "-1", "null", "%41", "{}"]
    async with backend.opened() as storage:
        await storage.append(ONE, [entry(id, id=id) for id in ids])
        for seq, id in enumerate(ids, 1):
            row = await storage.row(ONE, id)
            assert row is not None
            assert (row.id, row.seq, message_of(row.body).text) == (id, seq, id)
        await storage.rewrite(ONE, removed=ids[::2])
        assert [row.id for row in await storage.rows(ONE)] == ids[1::2]


@pytest.mark.parametrize("odd", ["\0", "a\0b", "\ud800"])
@in_loop
async def test_ids_and_models_that_are_no_text_are_kept_or_rejected(
    backend: Backend, odd: str
) -> None:
    """Complete, or with our own error and nothing written: never cut off at the NUL."""
    body = body_of(Message.user("a"))
    for each in (Entry(odd, body, NOON), Entry("id", body, NOON, odd)):
        async with backend.opened() as storage:
            await storage.delete(ONE)
            try:
                await storage.append(ONE, [each])
            except (StoreError, InvalidInputError):
                assert await storage.session(ONE) is None
            else:
                assert await storage.row(ONE, each.id) == (await storage.rows(ONE))[0]
                (row,) = await storage.rows(ONE)
                assert (row.id, row.model) == (each.id, each.model)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0",
        "a\0b",
        "\ud800 half",
        "\udfff\ud800",
        "\n\r\n\u2028\u2029\x85",
        "\ufeff",
        "\x1b[31m\x07",
        "\\u0000 \\ \" ' ` ${x} %s {0}",
        "e\u0301 \u00e9 🙂 👩\u200d🚀",
        "</script><!--",
        '{"dragoman":1,"kind":"SealedMessage",',
    ],
)
@in_loop
async def test_hostile_texts_are_unchanged(backend: Backend, text: str) -> None:
    """Byte for byte in the body, and as a text."""
    one = entry(text, id="x")
    async with backend.opened() as storage:
        await storage.append(ONE, [one])
        await storage.rewrite(ONE, replaced=[one])
        if backend.searches:
            await storage.search("half")
    async with backend.opened() as storage:
        (row,) = await storage.rows(ONE)
        assert row.body == one.body
        assert message_of(row.body).text == text


@in_loop
async def test_a_text_of_five_megabytes(backend: Backend) -> None:
    """It is stored, read and replaced like any other."""
    text = "0123456789é" * 500_000
    async with backend.opened() as storage:
        await storage.append(ONE, [entry("before"), entry(text, id="x"), entry("after")])
        (row,) = await storage.rows(ONE, after=1, limit=1)
        assert message_of(row.body).text == text
        await storage.rewrite(ONE, replaced=[entry("small", id="x")])
        assert texts(await storage.rows(ONE)) == ["before", "small", "after"]


@in_loop
async def test_a_message_of_every_shape_is_identical(backend: Backend) -> None:
    """Including metadata and usage."""
    message = Message.assistant("hi", metadata={"a": [1, None, {"b": "é"}]}, name="n")
    async with backend.opened() as storage:
        await storage.append(ONE, [Entry(message.id, body_of(message), NOON)])
        (row,) = await storage.rows(ONE)
        assert message_of(row.body).identical(message)


__all__ = [name for name in globals() if name.startswith("test_")]
