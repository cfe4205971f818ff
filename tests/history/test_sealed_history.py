"""An encrypted conversation is not mistaken for an empty one."""

from __future__ import annotations

from io import StringIO

import msgspec
import pytest
from rich.console import Console

from dragoman import ChatHistory, Message, SessionIdentity
from dragoman.errors import ConfigError
from dragoman.history import ChatHistoryConfig, Filter, MemoryStorage, SealedStorage
from dragoman.history.remembered_cuts import StoredWindow
from dragoman.history.storage.protocol import Entry
from dragoman.history.truncation import Cut, Summarise, notes
from dragoman.model import document

ONE = SessionIdentity(chat="7", user="Ana Secret")


async def test_without_its_keys_it_is_an_error() -> None:
    """It is neither empty nor damaged."""
    inner = MemoryStorage()
    sealed = SealedStorage(inner, keys={"k": bytes(32)}, current="k")
    await (await ChatHistory.open(ONE, sealed)).add("Between us.")
    bare = await ChatHistory.open(ONE, inner)
    for ask in (bare.messages, bare.last, bare.window):
        with pytest.raises(ConfigError, match="encrypted"):
            await ask()


async def test_a_summary_is_sealed_as_well() -> None:
    """A summary of old turns reveals their content."""
    inner = MemoryStorage()
    sealed = SealedStorage(inner, keys={"k": bytes(32)}, current="k")
    config = ChatHistoryConfig(
        context_window=1_000,
        reserved_for_completion=200,
        strategy=Summarise(lambda _messages, _earlier: "a summary of secrets", max_tokens=100),
    )
    history = await ChatHistory.open(ONE, sealed, config)
    for number in range(40):
        await history.extend([Message.user(f"{number} " + "word " * 50), Message.assistant("ok")])
    window = await history.window()
    assert any("summary of secrets" in message.text for message in window)
    again = await (await ChatHistory.open(ONE, sealed, config)).window()
    assert [message.text for message in again] == [message.text for message in window]
    session = await inner.session(ONE)
    assert session is not None
    assert session.windows is not None
    assert b"summary of secrets" not in session.windows


async def test_values_of_stores_show_nothing_when_printed() -> None:
    """Neither by `repr` nor by rich."""
    storage = MemoryStorage()
    await (await ChatHistory.open(ONE, storage)).add("a secret")
    rows, session = await storage.rows(ONE), await storage.session(ONE)
    hits = await storage.search("secret")
    shown = StringIO()
    given = [*rows, session, *hits, Filter(user="Ana Secret"), Entry("id", b"secret", 1.0)]
    Console(file=shown, width=500).print(*given)
    assert "ecret" not in shown.getvalue() + repr(given)


async def test_windows_of_an_earlier_release_are_rotated_too() -> None:
    """A summary of deleted messages is all that remains of them."""
    plain = MemoryStorage()
    history = await ChatHistory.open(ONE, plain)
    first = await history.add("What is left")
    rows, session = await plain.rows(ONE), await plain.session(ONE)
    assert session is not None
    cut = Cut(first.id, notes=(notes.summary("They talked of secrets.", 7),), left_out=7)
    window = document.write("Window", StoredWindow(0, cut))
    inner = MemoryStorage()
    old, new = {"old": bytes(32)}, {"new": bytes([1]) * 32}
    copy = msgspec.structs.replace(session, window=window)
    assert await SealedStorage(inner, keys=old, current="old").restore(copy, rows)
    await SealedStorage(inner, keys={**old, **new}, current="new").rotate()
    only_new = SealedStorage(inner, keys=new, current="new", accept_plain=False)
    shown = await (await ChatHistory.open(ONE, only_new)).window()
    assert any("They talked of secrets." in message.text for message in shown)
    assert shown.omitted == 7
