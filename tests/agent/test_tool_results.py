"""Whatever a tool returns becomes a result that every dialect accepts."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, NamedTuple, TypedDict

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

import dragoman
from dragoman import File, Image, Message, Request, Role, Text, Thinking
from dragoman.agent.json_values import MAX_ITEMS
from dragoman.agent.results import Result
from dragoman.agent.tool_results import result_of
from dragoman.model.tools import ToolCall, ToolDefinition, ToolResult

CALL = ToolCall("call_1", "show", raw="{}")
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40
IMAGE = Image.from_bytes(PNG)


@dataclasses.dataclass
class Place:
    """A dataclass."""

    city: str
    when: dt.date


class Point(NamedTuple):
    """A NamedTuple."""

    x: int
    y: float


class Shade(Enum):
    """An enum."""

    RED = "red"


class Mood(StrEnum):
    """An enum of texts."""

    GOOD = "good"


class Level(IntEnum):
    """An enum of numbers."""

    HIGH = 3


class Typed(TypedDict):
    """A TypedDict."""

    name: str


class Record(msgspec.Struct, rename="camel", tag="record"):
    """A Struct that writes other names."""

    first_name: str
    gone: int | msgspec.UnsetType = UNSET


class Model(pydantic.BaseModel):
    """A pydantic model."""

    day: dt.date
    tags: set[str]


class Row(Mapping[str, int]):
    """A mapping that is no dict."""

    def __getitem__(self, key: str) -> int:
        return {"a": 1}[key]

    def __iter__(self) -> Iterator[str]:
        return iter(["a"])

    def __len__(self) -> int:
        return 1


class Spoken:
    """An object with a text."""

    def __str__(self) -> str:
        return "in words"


class Silent:
    """Has nothing that could be shown."""


class Array:
    """As numpy's arrays are."""

    def tolist(self) -> list[int]:  # noqa: D102 - as numpy's
        return [1, 2]


def test_a_text_is_the_result() -> None:
    """It is unchanged, and the result names the call and the tool."""
    result = result_of(CALL, "Rain.")
    assert (result.call_id, result.tool_name, result.is_error) == ("call_1", "show", False)
    assert result.content == "Rain."
    assert result.data is UNSET


def test_none_is_an_empty_result() -> None:
    """A tool that returns None succeeded."""
    result = result_of(CALL, None)
    assert (result.content, result.data, result.is_error) == ("", UNSET, False)


DATA: list[tuple[Any, Any]] = [
    ({"a": [1, None, True]}, {"a": [1, None, True]}),
    ([1, "two"], [1, "two"]),
    ((1, 2), [1, 2]),
    (3, 3),
    (2.5, 2.5),
    (False, False),
    (Level.HIGH, 3),
    ({}, {}),
    ([], []),
    (Place("Basel", dt.date(2026, 1, 2)), {"city": "Basel", "when": "2026-01-02"}),
    (Point(1, 2.5), {"x": 1, "y": 2.5}),
    ([Point(1, 2.5)], [{"x": 1, "y": 2.5}]),
    (Typed(name="n"), {"name": "n"}),
    (Record("Ada"), {"type": "record", "firstName": "Ada"}),
    (Model(day=dt.date(2026, 1, 2), tags={"t"}), {"day": "2026-01-02", "tags": ["t"]}),
    ({"inner": [Model(day=dt.date(2026, 1, 2), tags=set())]},
     {"inner": [{"day": "2026-01-02", "tags": []}]}),
    (Row(), {"a": 1}),
    (MappingProxyType({"a": 1}), {"a": 1}),
    ({1: "b", None: "c", Shade.RED: "d", (1, 2): "e"},
     {"1": "b", "null": "c", "red": "d", "[1,2]": "e"}),
    (set("qwertyuiopasdfgh"), sorted("qwertyuiopasdfgh")),
    ({"z": 1, "a": 2}.keys(), ["z", "a"]),
    (collections.deque([1]), [1]),
    (range(3), [0, 1, 2]),
    (Array(), [1, 2]),
    ({"x": float("nan"), "y": float("-inf")}, {"x": "NaN", "y": "-Infinity"}),
    (2**70, 2**70),
    ({"raw": b"text"}, {"raw": "text"}),
    ({"half": "a\udcff"}, {"half": "a\ufffd"}),
    ({"half\udcff": 1}, {"half\ufffd": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("value", "data"), DATA)
def test_values_become_data(value: Any, data: Any) -> None:
    """Values with a JSON form are the result's data, and JSON as text."""
    result = result_of(CALL, value)
    assert (result.content, result.data, result.is_error) == ("", data, False)
    assert json.loads(result.text) == data


TEXTS: list[tuple[Any, str]] = [
    (Shade.RED, "red"),
    (Mood.GOOD, "good"),
    (dt.datetime(2026, 1, 2, 3, 4, tzinfo=dt.UTC), "2026-01-02T03:04:00+00:00"),
    (dt.date(2026, 1, 2), "2026-01-02"),
    (dt.timedelta(hours=1), "PT3600S"),
    (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (Decimal("1.50"), "1.50"),
    (PurePosixPath("/a/b"), "/a/b"),
    (Spoken(), "in words"),
    (float("inf"), "Infinity"),
    (10**2000, hex(10**2000)),
    (b"plain text", "plain text"),
    (bytearray(b"plain text"), "plain text"),
    ("half \udcff", "half \ufffd"),
    ("two halves \ud83d\ude00", "two halves \U0001f600"),
]


@pytest.mark.parametrize(("value", "text"), TEXTS)
def test_text_like_values_have_no_quotes(value: Any, text: str) -> None:
    """A date or an enum is a plain text; a lone surrogate is replaced."""
    result = result_of(CALL, value)
    assert (result.content, result.data, result.is_error) == (text, UNSET, False)


def test_media_are_content() -> None:
    """An image alone, among texts, and as bytes becomes an image part."""
    assert result_of(CALL, IMAGE).content == (IMAGE,)
    assert result_of(CALL, PNG).content == (IMAGE,)
    mixed = result_of(CALL, ["Look:", IMAGE, None, {"a": 1}, b"end"])
    assert mixed.content == (Text("Look:"), IMAGE, Text('{"a":1}'), Text("end"))


def test_a_document_in_bytes_is_a_file() -> None:
    """A PDF is recognized by its first bytes."""
    (part,) = result_of(CALL, b"%PDF-1.7 ...").parts
    assert isinstance(part, File)
    assert part.mime == "application/pdf"


def test_media_within_data_come_after_it() -> None:
    """The JSON refers to the image that follows it."""
    result = result_of(CALL, {"plots": [{"picture": IMAGE, "name": "one"}]})
    text, picture = result.parts
    assert picture == IMAGE
    assert isinstance(text, Text)
    said = json.loads(text.text)
    assert said == {"plots": [{"picture": "(image 1, attached below)", "name": "one"}]}


def test_a_tool_may_return_a_result() -> None:
    """The ids are the call's; the tool decides whether it is an error."""
    made = ToolResult("other", "No.", tool_name="other", is_error=True)
    result = result_of(CALL, made)
    assert (result.call_id, result.tool_name) == ("call_1", "show")
    assert (result.content, result.is_error) == ("No.", True)
    assert result_of(CALL, ToolResult("other", "Yes.")).is_error is False


def test_an_agents_result_counts_by_its_output() -> None:
    """An agent may be a tool: the output of its run is the result."""
    assert result_of(CALL, Result(id="r", output="Done.")).content == "Done."
    assert result_of(CALL, Result(id="r", output={"a": 1})).data == {"a": 1}


def test_a_result_has_the_kind_of_its_call() -> None:
    """The result of a free-text call is marked: providers that store the call need it."""
    call = ToolCall("c", "run", raw="ls", kind="custom")
    assert result_of(call, "a").kind == result_of(call, {"a": 1}).kind == "custom"
    assert result_of(call, ToolResult("x", "a")).kind == result_of(call, object()).kind == "custom"


class _Raising:
    def __str__(self) -> str:
        msg = "secret"
        raise ValueError(msg)


@dataclasses.dataclass
class _Lazy:
    known: int = 1

    def __getattribute__(self, name: str) -> Any:
        if name == "known":
            msg = "secret"
            raise OSError(msg)
        return super().__getattribute__(name)


class _Dumping:
    def model_dump(self, mode: str) -> Any:
        raise RecursionError(mode)


def _cyclic() -> list[Any]:
    items: list[Any] = []
    items += [items, items]
    return items


def _laughs() -> list[Any]:
    """Ten to the power of 50 values, in 50 lists."""
    items: list[Any] = [1]
    for _ in range(50):
        items = [items] * 10
    return items


def _deep() -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(5000):
        value = {"a": value}
    return value


BAD: dict[str, Callable[[], Any]] = {
    "an object": Silent,
    "a class": lambda: Silent,
    "a function": lambda: _deep,
    "a generator": lambda: (each for each in "ab"),
    "a complex number": lambda: 1j,
    "cyclic": _cyclic,
    "endless": _laughs,
    "deep": _deep,
    "long": lambda: range(MAX_ITEMS + 1),
    "raising text": _Raising,
    "raising field": _Lazy,
    "raising model": _Dumping,
    "within": lambda: {"a": [Silent()]},
    "binary": lambda: b"\xff\xfe\x81",
    "binary with text": lambda: b"abc\0def",
    "archive": lambda: b"PK\x03\x04....",
    "thinking": lambda: Thinking("hm"),
    "thinking among parts": lambda: ["a", Thinking("hm")],
    "a broken part": lambda: Text(3),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", BAD)
def test_values_without_a_json_form_are_an_error_result(name: str) -> None:
    """No value raises: the model gets an error that the tool ran, and why there is no result."""
    result = result_of(CALL, BAD[name]())
    assert (result.call_id, result.tool_name, result.is_error) == ("call_1", "show", True)
    assert "ran to its end" in result.text
    assert "secret" not in result.text


_LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.binary() | st.decimals()
    | st.text(st.characters(exclude_categories=())) | st.dates() | st.uuids() | st.timedeltas()
    | st.complex_numbers() | st.just(IMAGE) | st.just(Thinking("x")) | st.sampled_from(Shade)
    | st.builds(Silent) | st.builds(_Raising) | st.builds(Point, st.integers(), st.floats())
)  # fmt: skip
_KEYS = st.text(st.characters(exclude_categories=())) | st.integers() | st.floats() | st.none()
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner) | st.dictionaries(_KEYS, inner) | st.tuples(inner, inner),
    max_leaves=15,
)


def _asked(result: ToolResult) -> Request:
    asked = (Message(Role.ASSISTANT, (CALL,)), Message(Role.TOOL, (result,)))
    messages = (Message.user("Go."), *asked)
    definition = ToolDefinition.create("show", "Shows.")
    return Request(model="m", messages=messages, tools=(definition,))


@given(_VALUES)
def test_any_value_gives_a_result_for_every_dialect(value: Any) -> None:
    """It can be stored and encoded, and passes all rules."""
    result = result_of(CALL, value)
    result.check()
    assert ToolResult.from_json(result.to_json()) == result
    for name in dragoman.dialects():
        dialect = dragoman.dialect(name)
        assert dialect.check(dialect.encode_request(_asked(result)).body) == []


_WORD = "sought"


@pytest.mark.parametrize("name", dragoman.dialects())
@pytest.mark.parametrize(
    "value",
    [_WORD, {"key": _WORD}, [_WORD], {"error": _WORD}, {"output": _WORD}, {"$ref": _WORD},
     [IMAGE, _WORD], {"of": IMAGE, "key": _WORD}, object],
)  # fmt: skip
def test_results_are_in_every_request(value: Any, name: str) -> None:
    """The text is in the request of every dialect; that of a failure as well."""
    result = result_of(CALL, value)
    body = dragoman.dialect(name).encode_request(_asked(result)).body
    assert ("can't be shown" if result.is_error else _WORD) in json.dumps(body, default=dict)


def test_gemini_gets_objects() -> None:
    """Gemini's data is an object: the value itself if it is one, else under `output` (W82)."""

    def response(value: Any) -> Any:
        body = dragoman.dialect("gemini").encode_request(_asked(result_of(CALL, value))).body
        return body["contents"][-1]["parts"][0]["functionResponse"]["response"]

    assert response({"a": 1}) == {"a": 1}
    assert response([1]) == {"output": [1]}
    assert response("hi") == {"output": "hi"}
    assert response({"error": "none"}) == {"output": {"error": "none"}}
