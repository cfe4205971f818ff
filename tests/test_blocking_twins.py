"""The blocking API: the counterpart of `x` is `x_sync`.

Return values need no `await` either: `stream_sync` returns a stream for `for`, `open_sync` a
history. Everything without a counterpart, above all storages, goes through `run_sync`.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman import ChatHistory, Message, SessionIdentity, open_model, run_sync
from dragoman.agent import AgentChat
from dragoman.errors import InvalidInputError
from dragoman.history import BlockingChatHistory, SQLiteStorage, export
from dragoman.testing import EchoModel, ScriptedModel
from dragoman.transport import Client, FallbackModel, LocalModel

ONE = SessionIdentity(chat="7")
CLASSES: list[Any] = [
    dragoman.Agent, AgentChat, Client, EchoModel, FallbackModel, LocalModel, ScriptedModel,
]  # fmt: skip


def _asynchronous(kind: Any) -> list[str]:
    return [
        name
        for name, member in inspect.getmembers(kind)
        if not name.startswith("_")
        and (inspect.iscoroutinefunction(member) or inspect.isasyncgenfunction(member))
    ]


@pytest.mark.parametrize("kind", CLASSES)
def test_everything_async_has_a_blocking_counterpart(kind: Any) -> None:
    """It has the same name with `_sync`; `with` works like `async with`."""
    methods = [*_asynchronous(kind), "stream"]
    assert "send" in methods
    assert [name for name in methods if not hasattr(kind, f"{name}_sync")] == []
    assert hasattr(kind, "__enter__")


def test_a_history_has_every_method_without_await() -> None:
    """Every method of `ChatHistory` is available on what `open_sync` returns."""
    ours = {name for name in _asynchronous(ChatHistory) if name != "open"}
    assert [name for name in sorted(ours) if not hasattr(BlockingChatHistory, name)] == []
    with ChatHistory.open_sync(ONE, "memory:") as history:
        history.add(Message.user("Hi"))
        assert isinstance(history, BlockingChatHistory)
        assert len(history) == 1


def test_models_by_name_answer_without_await() -> None:
    """Including those that run in this process."""
    with open_model("echo:") as model:
        assert model.send_sync("one two").text == "one two"
        with model.stream_sync("one two") as stream:
            events = list(stream)
        assert stream.response.text == "one two"
        assert stream.is_complete
        assert len(events) > 3
        left = model.stream_sync("one two three")
        assert next(left) is not None
        left.close()
    assert ScriptedModel(["yes"]).stream_sync("Well?").collect().text == "yes"


def test_run_sync_takes_what_has_no_counterpart(tmp_path: Path) -> None:
    """Coroutines give their result, async iterators what they yield."""
    storage = SQLiteStorage(tmp_path / "a.db")
    run_sync(storage.open())
    with ChatHistory.open_sync(ONE, storage) as history:
        history.add("Hi")
    assert run_sync(storage.verify()) == []
    assert len(list(run_sync(export(storage)))) == 2
    run_sync(storage.close())


def test_run_sync_closes_an_abandoned_iterator() -> None:
    """As `break` in an `async for` with `aclosing` does."""
    closed: list[bool] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            for number in range(100):
                yield number
        finally:
            closed.append(True)

    found = run_sync(numbers())
    assert [next(found), next(found)] == [0, 1]
    found.close()  # type: ignore[attr-defined]  # a generator
    assert closed == [True]


def test_run_sync_rejects_other_values() -> None:
    """Most likely a function that was not called."""
    with pytest.raises(InvalidInputError, match="not function"):
        run_sync(lambda: 5)  # type: ignore[call-overload]  # that is the point
