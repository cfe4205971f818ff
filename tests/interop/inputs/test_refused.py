"""Values that are not messages are refused everywhere, whatever they look like."""

from __future__ import annotations

import array
import asyncio
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, Mock

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DragomanError, InvalidInputError
from dragoman.history.chat import ChatHistory
from dragoman.history.identity import SessionIdentity
from dragoman.interop.reader import read_history, read_request
from dragoman.model.collection import Messages
from dragoman.model.conversation import ConversationHistory, Policy
from dragoman.model.messages import Message
from dragoman.model.parts import Text
from dragoman.model.responses import Response
from dragoman.model.roles import Role
from dragoman.model.store import Section
from dragoman.model.usage import Usage
from dragoman.transport.echo import EchoModel
from dragoman.transport.fallback import FallbackModel
from dragoman.transport.scripted import ScriptedModel
from tests.model.anything import any_values, json_values

SECRET = "xyzzy-the-secret"
CALLED = Message.assistant("hi")


@dataclass
class Place:
    """A dataclass of the user's, which looks like a message."""

    role: str = "assistant"
    content: str = SECRET


class Weather(pydantic.BaseModel):
    """A model of the user's, which looks like a message."""

    role: str = "assistant"
    content: str = SECRET


def strange_things() -> Iterator[Any]:
    """Objects that have a text, are iterable, or have any attribute."""
    yield from (Place(), Weather(), Place, Weather, Message, object(), SimpleNamespace(role="user"))
    yield from (
        42,
        4.2,
        True,
        1j,
        Decimal(1),
        ...,
        datetime.now(UTC),
        Path(SECRET),
        len,
        Place.__init__,
    )
    yield from (Mock(), MagicMock(), Mock(spec=Message), MagicMock(spec=Messages), Mock(spec=Text))
    yield from (MagicMock(spec=dict), ValueError(SECRET))
    yield from ({SECRET}, frozenset({SECRET}), range(3), array.array("b", b"hi"), asyncio.Event())
    yield from (
        io.StringIO(SECRET),
        io.BytesIO(b"{}"),
        io.TextIOWrapper(io.BytesIO(b"x")),
        Response(),
        Usage(),
    )
    yield from (b"hi", b"\xff", bytearray(b"5"), memoryview(b'"hi"'))
    yield from ((item for item in [5, SECRET]), iter([object()]), map(Place, ["user"]))
    yield from ([Place()], [b"hi"], [[]], [[[]]], [["a", 5]], [None], ("user", 5), ["a", Weather()])
    yield from ({}, {"greeting": SECRET}, {1: SECRET}, {"content": object()}, {"role": SECRET})
    yield from ({"type": "ai", "content": SECRET}, {"type": "human", "data": {"content": SECRET}})
    yield {"lc": 1, "type": "constructor", "id": [], "kwargs": {"content": SECRET}}
    yield {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": SECRET}]}
    yield {"conversations": [{"from": "human", "value": SECRET}]}
    yield {"role": "tool", "content": SECRET, "id": "1"}
    yield {"role": "user", "content": [{"type": "text", "text": Place()}]}
    yield {"role": "assistant", "content": [{"type": "tool_use", "input": {1: 2}}]}
    yield {"contents": SECRET}


DOORS: dict[str, Callable[[Any], Any]] = {
    "Message.from_any": Message.from_any,
    "Messages.from_any": Messages.from_any,
    "in a list": lambda value: Messages.from_any([Message.user("a"), value]),
    "append": Messages().append,
    "extend": lambda value: Messages().extend([value]),
    "prepend": lambda value: Messages().prepend([value]),
    "set": lambda value: Messages(CALLED).set("id", CALLED.id, value),
    "replace_last": Messages(CALLED).replace_last,
    "Section": lambda value: Section("a", [value]),
    "ConversationHistory.add": lambda value: ConversationHistory(policy=Policy.LENIENT).add(value),
    "ConversationHistory.add_all": lambda value: ConversationHistory().add_all([value]),
    "ChatHistory.add": lambda value: asyncio.run(_added(value)),
    "model.send": lambda value: asyncio.run(EchoModel().send([value])),
    "FallbackModel.send": lambda value: asyncio.run(FallbackModel(EchoModel()).send([value])),
    "ScriptedModel.send": lambda value: asyncio.run(ScriptedModel(["a"]).send([value])),
    "read_history": read_history,
    "read_request": read_request,
}


async def _added(value: Any) -> Message:
    async with await ChatHistory.open(SessionIdentity(chat="7")) as history:
        return await history.add(value)


@pytest.mark.parametrize("door", DOORS)
def test_every_entry_point_accepts_messages(door: str) -> None:
    """Otherwise the following tests would prove nothing."""
    assert DOORS[door]({"role": "system", "content": "hi"}) is not False


@pytest.mark.parametrize("door", DOORS)
def test_other_values_are_refused_everywhere(door: str) -> None:
    """The error quotes nothing, and no value becomes a message."""
    for value in strange_things():
        with pytest.raises(InvalidInputError) as caught:
            DOORS[door](value)
        assert SECRET not in f"{caught.value!r}{caught.value}{caught.value.__context__}", value


@pytest.mark.parametrize("value", [Place(), Weather(), object(), 42, Decimal(1), Path("a"), Place])
def test_the_error_names_the_type_and_the_alternatives(value: Any) -> None:
    """The type, the guide to read, and `from_input`, which accepts any object."""
    name = value.__name__ if isinstance(value, type) else type(value).__name__
    for items in (value, [value]):
        with pytest.raises(InvalidInputError, match=rf"from (the class )?{name}\b") as caught:
            Messages.from_any(items)
        assert "from_input" in str(caught.value)
        assert "import-conversations" in str(caught.value)
    assert isinstance(Message.from_input(value), Message)


def test_a_mock_is_text_for_from_input_only() -> None:
    """A mock has `to_message`, as it has any attribute."""
    assert Message.from_input(Mock(name="m")).role is Role.USER
    assert len(Messages.from_input(MagicMock())) == 1


# --- hostile


@pytest.mark.thorough
def test_self_references_are_refused() -> None:
    """Values that contain themselves, or one value very often, are refused at once."""
    item: dict[str, Any] = {"role": "user"}
    item["content"] = [item, item]
    nested: list[Any] = ["x"]
    for _ in range(60):
        nested = [nested, nested]
    for hostile in (item, {"role": "user", "content": nested}, nested, {"messages": [item]}):
        with pytest.raises(InvalidInputError):
            Messages.from_any([hostile])
        with pytest.raises(InvalidInputError):
            Messages.from_any(hostile)


def test_deep_nesting_is_refused() -> None:
    """Lists, dicts, and JSON of either."""
    deep_list: list[Any] = []
    deep_dict: dict[str, Any] = {}
    for _ in range(100_000):
        deep_list, deep_dict = [deep_list], {"content": deep_dict}
    for hostile in (deep_list, deep_dict, {"role": "user", "content": deep_list}):
        for given_items in (hostile, [hostile]):
            with pytest.raises(InvalidInputError):
                Messages.from_any(given_items)
    with pytest.raises(InvalidInputError):
        Messages.from_any(b"[" * 100_000 + b"]" * 100_000)


def test_a_long_list_is_read_in_linear_time() -> None:
    """Most calls have no ids, and each result is matched with its call."""
    wire = [
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]},
    ]
    read = Messages.from_any([item for _ in range(2_000) for item in (*wire, Message.user("x"))])
    calls = [call.id for message in read for call in message.tool_calls]
    assert [result.call_id for message in read for result in message.tool_results] == calls
    assert len({*calls}) == 2_000


_KEYS = st.sampled_from(
    ["role", "content", "parts", "type", "tool_calls", "messages", "input", "id", "contents",
     "functionCall", "stop_reason", "tool_call_id", "text"]
)  # fmt: skip
_VALUES = st.sampled_from(
    ["user", "assistant", "tool", "message", "tool_use", "text", "function_call", "thinking",
     "model", "\ud800", 5, 2**70, float("nan"), object, b"x"]
)  # fmt: skip
_TREES = st.recursive(
    _VALUES | json_values() | any_values(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=2).map(tuple)
        | st.dictionaries(_KEYS, inner, max_size=4)
    ),
    max_leaves=8,
)


@given(
    st.sampled_from(["Message.from_any", "Messages.from_any", "in a list", "read_request"]), _TREES
)
def test_random_input_is_read_or_refused(door: str, value: Any) -> None:
    """Only our own errors are raised; what is read can be stored and loaded unchanged."""
    try:
        read = DOORS[door](value)
        raw = read.to_json()
    except DragomanError as error:
        assert error.__context__ is None  # noqa: PT017 - it need not be refused
        return
    assert type(read).from_json(raw) == read
