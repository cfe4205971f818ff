"""Search, on every backend that supports it."""

from __future__ import annotations

import pytest

from dragoman.errors import InvalidInputError
from dragoman.history.storage.protocol import (
    MAIN,
    Entry,
    Filter,
)
from dragoman.testing.conformance.loops import in_loop
from dragoman.testing.conformance.stores.backends import Backend
from dragoman.testing.conformance.stores.data import (
    NOON,
    ONE,
    TWO,
    copy_of,
    entry,
    fill,
    said,
)


@pytest.fixture
def searching(backend: Backend) -> Backend:
    """Backends that support search."""
    if not backend.searches:
        pytest.skip(f"{backend.name} refuses to search")
    return backend


@in_loop
async def test_a_search_finds_messages_with_all_the_words(searching: Backend) -> None:
    """In any order and case; the latest first, with their locations."""
    async with searching.opened() as storage:
        await storage.append(ONE, [entry("The quick brown fox", at=NOON)])
        await storage.append(TWO, [entry("a brown bear, quick!", at=NOON + 2)])
        await storage.append(ONE, [entry("a quick answer", at=NOON + 1)])
        hits = await storage.search("BROWN quick")
        assert said(hits) == ["a brown bear, quick!", "The quick brown fox"]
        assert [hit.identity for hit in hits] == [TWO, ONE]
        assert hits[1].row == (await storage.rows(ONE))[0]
        assert said(await storage.search("quick", limit=2)) == [
            "a brown bear, quick!",
            "a quick answer",
        ]
        assert await storage.search("brow") == []
        assert await storage.search("quick elephant") == []
        assert await storage.search("quick", limit=0) == []


@in_loop
async def test_query_operators_are_plain_text(
    searching: Backend,
) -> None:
    """Operators, quotes and wildcards are searched as words."""
    odd = [
        "one AND two OR NOT three NEAR four",
        'say "hello world" now',
        "it's a test; DROP TABLE sessions; --",
        "text: (a | b) & !c:* ^d {e} col:f",
        "100% of_the @tag:{x} -minus +plus *",
        "back\\slash and <-> arrows",
    ]
    async with searching.opened() as storage:
        await fill(storage, *odd)
        for text in odd:
            assert said(await storage.search(text)) == [text]
        assert said(await storage.search("NOT elephant")) == []
        assert said(await storage.search("hello OR elephant")) == []
        assert said(await storage.search('"hello')) == [odd[1]]
        assert said(await storage.search("test*")) == [odd[2]]


@pytest.mark.parametrize(
    "text",
    ["Straße", "ΣΊΣΥΦΟΣ Σίσυφος", "İstanbul", "café", "naïve résumé", "Привет мир", "ﬁne", "x²"],
)
@in_loop
async def test_a_text_is_found_by_its_own_words(searching: Backend, text: str) -> None:
    """In every script, in upper and lower case."""
    async with searching.opened() as storage:
        await fill(storage, text, "something else")
        for asked in (text, text.upper(), text.lower()):
            if asked.casefold() == text.casefold():
                assert said(await storage.search(asked)) == [text]


@pytest.mark.parametrize("text", ["", " ", "?!", '"', "* -- ;", "\0", "🙂"])
@in_loop
async def test_a_search_without_words_is_rejected(searching: Backend, text: str) -> None:
    """It doesn't find nothing, or everything."""
    async with searching.opened() as storage:
        await fill(storage, "a")
        with pytest.raises(InvalidInputError):
            await storage.search(text)


@in_loop
async def test_a_search_reflects_every_change(searching: Backend) -> None:
    """Appended, replaced, removed, set aside, cleared, restored, deleted, also once indexed."""
    async with searching.opened() as storage:
        await storage.append(ONE, [entry("alpha", id="x"), entry("beta", id="y")])
        assert said(await storage.search("alpha")) == ["alpha"]
        await storage.rewrite(ONE, replaced=[entry("gamma", id="x")], removed=["y"])
        assert said(await storage.search("gamma")) == ["gamma"]
        assert await storage.search("alpha") == []
        assert await storage.search("beta") == []
        await fill(storage, "delta")
        assert said(await storage.search("delta")) == ["delta"]
        await storage.set_aside(ONE, [1], "for the test")
        assert await storage.search("gamma") == []
        await storage.clear(ONE, at=NOON)
        assert await storage.search("delta") == []
        await fill(storage, "epsilon")
        assert said(await storage.search("epsilon")) == ["epsilon"]
        await storage.restore(*copy_of(99, 12))
        assert await storage.search("epsilon") == []
        assert said(await storage.search("12")) == ["12"]
        await storage.delete(ONE)
        assert await storage.search("12") == []
        await fill(storage, "zeta")
        assert said(await storage.search("zeta")) == ["zeta"]


@in_loop
async def test_a_search_covers_all_branches(searching: Backend) -> None:
    """Messages on inactive branches are found as well."""
    async with searching.opened() as storage:
        await fill(storage, "main word")
        await storage.fork(ONE, parent=MAIN, at=0)
        await storage.append(ONE, [entry("other word")], branch=1)
        assert sorted(said(await storage.search("word"))) == ["main word", "other word"]


@in_loop
async def test_a_search_applies_its_filter(searching: Backend) -> None:
    """Names and times, as for sessions."""
    async with searching.opened() as storage:
        await storage.append(ONE, [entry("word one", at=NOON)])
        await storage.append(TWO, [entry("word two", at=NOON + 5)])
        assert said(await storage.search("word", Filter(user="Ana"))) == ["word one"]
        assert said(await storage.search("word", Filter(group="x"))) == []
        assert said(await storage.search("word", Filter(since=NOON + 1))) == ["word two"]
        assert said(await storage.search("word", Filter(user=None))) == []
        assert len(await storage.search("word", Filter(agent="guide"))) == 2


@in_loop
async def test_a_search_finds_what_another_storage_wrote(searching: Backend) -> None:
    """An index belongs to the location, not to the storage."""
    async with searching.opened() as left, searching.opened() as right:
        await fill(left, "first word")
        assert len(await right.search("word")) == 1
        await fill(right, "second word")
        assert len(await left.search("word")) == 2


@in_loop
async def test_a_search_skips_unreadable_messages(searching: Backend) -> None:
    """A damaged message breaks no search."""
    async with searching.opened() as storage:
        await storage.append(ONE, [Entry("x", b'{"dragoman":1,"kind":"word"}', NOON)])
        await fill(storage, "word")
        assert said(await storage.search("word")) == ["word"]


@in_loop
async def test_a_forgotten_user_is_not_found(searching: Backend) -> None:
    """The index forgets as well."""
    async with searching.opened() as storage:
        await fill(storage, "secret word")
        await fill(storage, "public word", who=TWO)
        await storage.search("word")
        await storage.forget("Ana")
        assert said(await storage.search("word")) == ["public word"]
        assert await storage.search("secret") == []


__all__ = [name for name in globals() if name.startswith("test_")]
__all__ += ["searching"]
