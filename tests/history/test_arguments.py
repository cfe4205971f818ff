"""Any argument of a history works or raises our own error, and nothing is quoted."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from math import inf, nan
from typing import Any, cast

import pytest
from rich.pretty import pretty_repr

from dragoman import ChatHistory, ChatHistoryConfig, Message, SessionIdentity
from dragoman.errors import Conflict, DragomanError, InvalidInputError, StoreError
from dragoman.history import MemoryStorage, Retention, import_lines, sweep
from dragoman.history.branches import Branch
from dragoman.history.storage.protocol import Entry
from dragoman.history.stored_session import DamagedMessage
from dragoman.model import portal
from dragoman.testing.conformance.stores.backends import Backend

SECRET = "zqzq-the-secret"
ONE = SessionIdentity(agent="guide", chat="7", user=SECRET)


class Stranger:
    """An object with its own `repr`."""

    context_window = SECRET

    def __repr__(self) -> str:
        return SECRET


JUNK: list[Any] = [
    None, True, -1, 0, 1, 2**31, 10**12, 10**30, 1.5, nan, inf, "", SECRET, "\ud800", "\0", "é" * 9,
    b"", SECRET.encode(), [], [SECRET], [None], {}, {SECRET: SECRET}, {"role": SECRET}, object(),
    Stranger(), SECRET.encode, iter([SECRET]), {"role": "user", "content": SECRET}, ("a", 1),
    SessionIdentity(user=SECRET), Message.user(SECRET), Branch(99, SECRET, SECRET, is_active=True),
]  # fmt: skip


def unseen(*shown: object) -> None:
    """Assert that none of these contains the secret."""
    for each in shown:
        assert SECRET not in str(each)
        assert SECRET not in repr(each)


def told(call: Callable[[], Any], where: str) -> None:
    """Call something that returns, or raises our own error and quotes nothing."""
    try:
        result = call()
        if inspect.iscoroutine(result):
            portal.run_inline(result)
    except DragomanError as error:
        chain: BaseException | None = error
        while chain is not None:
            unseen(chain, chain.args)
            chain = chain.__cause__ or chain.__context__
    except Exception as error:  # noqa: BLE001 - that is the question
        pytest.fail(f"{type(error).__name__} after {where}")


METHODS: Mapping[str, int] = {
    "add": 1, "extend": 1, "replace": 2, "remove": 1, "message": 1, "tail": 1, "pin": 1, "unpin": 1,
    "fork": 1, "edit": 2, "path": 1, "switch": 1, "window": 1, "to_wire": 1, "__getitem__": 1,
    "exceeds_context_window": 1,
}  # fmt: skip
OPTIONS = [
    *((name, "expected_version") for name in ("add", "extend", "clear", "save")),
    *((name, option) for name in ("window", "to_wire") for option in ("tools", "system")),
    ("to_wire", "model"), ("to_wire", "messages"), ("to_wire", "max_tokens"),
]  # fmt: skip


@pytest.mark.parametrize("autosave", [True, False])
@pytest.mark.parametrize("name", METHODS)
def test_every_method_accepts_or_rejects_any_argument(
    name: str, autosave: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Positional arguments of every kind."""
    caplog.set_level(logging.DEBUG)
    for junk in JUNK:
        history = portal.run_inline(
            ChatHistory.open(ONE, MemoryStorage(), ChatHistoryConfig(autosave=autosave))
        )
        known = portal.run_inline(history.add(Message.user(SECRET).with_id(f"id-{SECRET}")))
        method = getattr(history, name)
        given = [(junk,)] if METHODS[name] == 1 else [(junk, "x"), (known.id, junk)]
        for arguments in given:
            told(partial(method, *arguments), f"{name}({type(junk).__name__})")
        unseen(history, history.damaged, history.config, *portal.run_inline(history.branches()))
    unseen(caplog.text)


@pytest.mark.parametrize(("name", "option"), OPTIONS)
def test_every_option_accepts_or_rejects_any_value(name: str, option: str) -> None:
    """Keyword arguments of every kind."""
    first = {"add": ("x",), "extend": (["x"],), "to_wire": ("anthropic",)}.get(name, ())
    for junk in JUNK:
        history = portal.run_inline(ChatHistory.open(ONE, MemoryStorage()))
        portal.run_inline(history.add(SECRET))
        told(partial(getattr(history, name), *first, **{option: junk}), f"{name}({option}=…)")


def test_opening_accepts_or_rejects_any_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    """Identities, locations, configs and settings."""
    monkeypatch.setenv("DRAGOMAN_HISTORY", "memory:")
    for junk in JUNK:
        told(partial(ChatHistory.open, junk), "identity")
        told(partial(ChatHistory.open_sync, junk), "identity")
        told(partial(ChatHistory.open_sync, ONE, junk), "storage")
        told(partial(ChatHistory.open_sync, ONE, "memory:", junk), "config")
        told(partial(ChatHistoryConfig.from_dict, junk), "settings")
        for name in inspect.signature(ChatHistoryConfig).parameters:
            told(partial(ChatHistoryConfig.from_dict, {name: junk}), name)


def test_imports_and_sweeps_accept_or_reject_any_argument() -> None:
    """Imports and retention."""
    storage = MemoryStorage()

    for junk in JUNK:
        told(partial(import_lines, storage, junk), "lines")
        told(partial(import_lines, storage, [junk]), "a line")
        told(partial(import_lines, storage, [], on_conflict=junk), "on_conflict")
        told(partial(sweep, storage, junk), "rules")
        for rules in ({"a": junk}, {nan: junk}, {nan: Retention()}):
            told(partial(sweep, storage, cast("Any", rules)), "rule")
        told(partial(sweep, storage, {}, now=junk), "now")
        told(partial(Retention, max_age=junk), "max_age")
        told(partial(Retention, max_messages=junk), "max_messages")


@pytest.mark.parametrize("count", [-1, True, 1.5, "1", None])
async def test_a_number_of_messages_is_an_integer(count: Any) -> None:
    """Not negative, and not another type that merely counts as one."""
    history = await ChatHistory.open(ONE, MemoryStorage())
    with pytest.raises(InvalidInputError):
        await history.tail(count)
    assert not await history.tail(10**12)


@pytest.mark.parametrize("number", [2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**30])
async def test_numbers_beyond_the_range_of_a_store_are_only_large(
    backend: Backend, number: int
) -> None:
    """No session has such a version, and such a limit means all messages."""
    async with backend.opened() as storage:
        history = await ChatHistory.open(ONE, storage)
        await history.add("x")
        with pytest.raises(Conflict):
            await history.add("y", expected_version=number)
        assert [message.text for message in await history.tail(number)] == ["x"]


@pytest.mark.parametrize("size", [0, -1, True, 1.5, "", nan])
async def test_a_window_is_a_number_of_tokens(size: Any) -> None:
    """None stands for the config's; 0 does not."""
    history = await ChatHistory.open(ONE, MemoryStorage())
    await history.add("x")
    if size == "":
        assert await history.window(size)  # an unknown name
        return
    with pytest.raises(InvalidInputError):
        await history.window(size)


@pytest.mark.parametrize("number", [nan, inf, 0, -1, True, "1"])
def test_a_retention_is_a_positive_number(number: Any) -> None:
    """Seconds or messages."""
    with pytest.raises(InvalidInputError):
        Retention(max_age=number)
    with pytest.raises(InvalidInputError):
        Retention(max_messages=number)


async def test_a_single_text_or_message_is_not_taken_for_many() -> None:
    """A text is not split into characters, nor a dict into keys."""
    history = await ChatHistory.open(ONE, MemoryStorage())
    await history.extend("hello")
    await history.extend({"role": "assistant", "content": "hi"})
    assert [m.text for m in await history.messages()] == ["hello", "hi"]


async def test_an_expected_version_works_without_autosave_too() -> None:
    """A conflict is raised at once, and changes nothing."""
    storage = MemoryStorage()
    history = await ChatHistory.open(ONE, storage, ChatHistoryConfig(autosave=False))
    other = await ChatHistory.open(ONE, storage)
    message = await other.add("a")
    calls: list[Callable[..., Coroutine[Any, Any, Any]]] = [
        partial(history.add, "b"),
        partial(history.replace, message.id, "b"),
        partial(history.remove, message.id),
        history.clear,
    ]
    for call in calls:
        with pytest.raises(StoreError):
            await call(expected_version=0)
        assert not history.is_dirty
    await history.add("b", expected_version=1)
    assert await history.count() == 2


async def test_ids_are_in_no_repr() -> None:
    """Of branches, damaged messages and configs; including rich's."""
    storage = MemoryStorage()

    def hook(_secret: str, *_: Any) -> None:
        """Does nothing."""

    config = ChatHistoryConfig(on_after_add=partial(hook, SECRET))
    history = await ChatHistory.open(ONE, storage, config)
    first = await history.add(Message.user("x").with_id(SECRET))
    await storage.append(ONE, [Entry(f"{SECRET}-2", SECRET.encode(), 1.0)])
    await history.fork(first.id)
    await history.switch(0)
    await history.messages()
    shown: list[Any] = [*await history.branches(), *history.damaged, config, history]
    assert any(isinstance(each, DamagedMessage) for each in shown)
    unseen(*shown, *map(pretty_repr, shown))
