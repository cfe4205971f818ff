"""What all values have in common: equality, copies, repr, JSON and pickle."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from dragoman import reveal
from dragoman.errors import InvalidInputError
from dragoman.history.identity import SessionIdentity
from dragoman.model.media import Image
from dragoman.model.messages import Message
from dragoman.model.parts import (
    CacheHint,
    Opaque,
    Origin,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
)
from dragoman.model.requests import Request, Sampling
from dragoman.model.responses import Choice, Embedding, Response
from dragoman.model.tools import (
    ToolCall,
    ToolChoice,
    ToolDefinition,
    ToolResult,
    make_call,
    make_result,
)
from dragoman.model.value import Value
from tests.model import strategies as some


@given(some.values)
def test_a_document_gives_the_value_back(value: Value) -> None:
    """Whatever a value holds, its JSON document reads as the same value."""
    back = type(value).from_json(value.to_json())
    assert back == value
    assert back.identical(value)
    assert back.to_json() == value.to_json()


@pytest.mark.parametrize("copied", [
    copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value)),  # noqa: S301 - our own bytes
], ids=["copy", "deepcopy", "pickle"])  # fmt: skip
@given(value=some.values)
def test_copies_are_the_same_value(copied: Callable[[Value], Value], value: Value) -> None:
    """Copies are equal, hash alike and are identical in every field."""
    same = copied(value)
    assert same == value
    assert hash(same) == hash(value)
    assert same.identical(value)


@given(some.values, some.values)
def test_equal_values_hash_alike(left: Value, right: Value) -> None:
    """Equality is symmetric, and what is equal has one hash."""
    assert (left == right) is (right == left)
    assert (left != right) is not (left == right)
    if left == right:
        assert hash(left) == hash(right)


@given(some.values)
def test_identical_values_are_equal(value: Value) -> None:
    """A value without any change is another object that is identical and equal."""
    same = value.replace()
    assert same is not value
    assert same.identical(value)
    assert same == value


@given(some.values)
def test_values_are_immutable(value: Value) -> None:
    """No field of any value can be set or deleted."""
    for name in value.__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(value, name, None)
        with pytest.raises(AttributeError):
            delattr(value, name)


@given(some.values)
def test_repr_is_the_name_of_the_type_and_sizes(value: Value) -> None:
    """A repr is one line that begins with the type's name."""
    text = repr(value)
    assert text.startswith(f"{type(value).__name__}(")
    assert text.endswith(")")
    assert "\n" not in text
    # rich prints what its own hook yields: the same, not the fields.
    assert f"{type(value).__name__}({', '.join(value.__rich_repr__())})" == text


@pytest.mark.parametrize(("value", "text"), [
    (Text("hello"), "Text(5 chars)"),
    (Refusal("no"), "Refusal(2 chars)"),
    (Opaque("x", {"a": 1}), "Opaque(1 payload)"),
    (ServerToolCall("web_search"), "ServerToolCall(web_search, 1 call)"),
    (ToolCall("c", "f", raw='{"a":1}'), "ToolCall(f, c, 7 chars)"),
    (ToolCall("c", "f", input={"a": 1}), "ToolCall(f, c, 1 arguments)"),
    (ToolResult.success("c", "fine"), "ToolResult(c, ok, 4 chars)"),
    (ToolResult.error("c", "bad"), "ToolResult(c, error, 3 chars)"),
    (Origin(dialect="gemini", model="m"), "Origin(gemini, m)"),
    (Message.user("hello"), "Message(user, Text(5 chars))"),
    (Choice(0, Message.assistant("hi")), "Choice(Message(assistant, Text(2 chars)))"),
    (ToolResult("c", data={"a": 1}, tool_name="f"), "ToolResult(f, c, ok, data of 1 fields)"),
    (ToolCall("my secret", "f", raw="{}"), "ToolCall(f, 2 chars)"),
    (Origin(dialect="gemini", model="my secret"), "Origin(gemini, model)"),
    (Request(model="m", messages=(Message.user("hi"),)), "Request(m, 1 messages, 0 tools)"),
    (Response(id="r1", model="m"), "Response(m, r1)"),
    (SessionIdentity(chat="7", user="ana"), "SessionIdentity(chat=7, user)"),
    (Request(messages=(Message.user("hi"),)), "Request(1 messages, 0 tools)"),
    (Response(), "Response()"),
    (Embedding((1.0, 2.0)), "Embedding(2 dimensions)"),
])  # fmt: skip
def test_repr_shows_kinds_and_sizes(value: Value, text: str) -> None:
    """A repr says what a value is and how large, never what it says."""
    assert repr(value) == text


@given(some.values)
def test_revealed_a_repr_shows_the_fields(value: Value) -> None:
    """For debugging: in a block, and only there."""
    hidden = repr(value)
    with reveal():
        shown = repr(value)
    assert shown.startswith(f"{type(value).__name__}(")
    for name, _ in value._non_default_fields():
        assert f"{name}=" in shown
    assert repr(value) == hidden


def test_revealed_messages_show_what_was_said() -> None:
    """With the parts in them; pictures by their beginning."""
    message = Message.user("hello", Image.from_bytes(b"\x89PNG\r\n\x1a\n" + bytes(9999)))
    assert "hello" not in repr(message)
    with reveal():
        assert "text='hello'" in repr(message)
        assert len(repr(message)) < 3000


@pytest.mark.parametrize(("left", "right"), [
    (Text("a", item_id="1"), Text("a")),
    (Text("a", origin=Origin(dialect="x")), Text("a")),
    (Text("a", extras={"x": {"y": 1}}), Text("a")),
    (Text("a", cache=CacheHint("5m")), Text("a")),
    (ToolCall("1", "f", input={"a": 1}), ToolCall("1", "f", raw='{ "a": 1 }')),
    (ToolCall("1", "f", raw=" "), ToolCall("1", "f", raw="{}")),
    (ToolCall("1", "f", raw="", wire_id=None), ToolCall("1", "f")),
    (make_result("1", "x"), ToolResult("1", "x", is_error=False)),
    (ToolResult("1", (Text("x"),)), ToolResult("1", "x")),
    (Response(id="1"), Response(id="2", model="m")),
])  # fmt: skip
def test_equality_is_about_what_was_said(left: Value, right: Value) -> None:
    """Wire ids, origins, extras and the formatting of arguments count only in `identical`."""
    assert left == right
    assert hash(left) == hash(right)
    assert not left.identical(right)


@pytest.mark.parametrize(("left", "right"), [
    (Text("a"), Text("b")),
    (Text("a"), Refusal("a")),
    (ToolCall("1", "f", raw='{"a":1}'), ToolCall("1", "f", raw='{"a":2}')),
    (ToolCall("1", "f", raw="{}"), ToolCall("1", "g", raw="{}")),
    (make_call("1", "f", raw="{"), make_call("1", "f", raw="{ ")),
    (ToolCall("1", "f", raw="{}", kind="custom"), ToolCall("1", "f", raw="{}")),
    (ToolCall("1", "f", raw="{}", kind="custom"), ToolCall("1", "f", raw="{ }", kind="custom")),
    (ToolResult.success("1", "x"), ToolResult.error("1", "x")),
    (ToolResult("1", data=None), ToolResult("1")),
    (ToolCall("1", "f", raw="{}"), ToolCall("2", "f", raw="{}")),
    (make_call("1", "f", raw="{"), make_call("2", "f", raw="{")),
    (ToolResult("1", "x"), ToolResult("2", "x")),
    (ServerToolCall("search", "1"), ServerToolCall("search", "2")),
    (ServerToolResult("search", "1"), ServerToolResult("search", "2")),
    (Message.tool("call_1", "ok"), Message.tool("call_2", "ok")),
])  # fmt: skip
def test_what_was_said_tells_values_apart(left: Value, right: Value) -> None:
    """Other words, another type, other arguments, another id of a call: another value."""
    assert left != right
    assert len({left, right}) == 2
    assert not left.identical(right)


def test_identical_tells_true_from_one() -> None:
    """JSON's `true` and `1` are different, though Python calls them equal."""
    assert not Opaque("x", [{"a": True}]).identical(Opaque("x", [{"a": 1}]))
    assert not Opaque("x", [1]).identical(Opaque("x", [1, 1]))
    assert not Opaque("x", {"a": 1}).identical(Opaque("x", {"b": 1}))
    assert Opaque("x", 1.0).identical(Opaque("x", 1))


def test_a_value_is_not_equal_to_something_else() -> None:
    """Values and other objects are never equal, and asking is no error."""
    assert Text("a") != "a"
    assert not Text("a").identical("a")


def test_replace_changes_the_named_fields_only() -> None:
    """Fields that are not named stay as they are."""
    changed = Text("a", item_id="1").replace(text="b")
    assert (changed.text, changed.item_id) == ("b", "1")


def test_replace_refuses_unknown_fields() -> None:
    """A misspelt field is an error that names the real ones."""
    with pytest.raises(InvalidInputError, match="Text has no such field; its fields are text, "):
        Text("a").replace(txt="b")


def test_replacing_the_arguments_forgets_the_parsed_ones() -> None:
    """What a call has parsed is not carried over to its changed copy."""
    call = ToolCall("c", "f", raw='{"a":1}')
    assert call.arguments == {"a": 1}
    assert call.replace(raw='{"a":2}').arguments == {"a": 2}


@pytest.mark.parametrize(("make", "problem"), [
    (lambda: Message(5), "unknown role"),  # type: ignore[arg-type]
    (lambda: Message("user", 5), "content can't be made from int"),  # type: ignore[arg-type]
    (lambda: Request(messages=["hi"]), "Request.messages can't hold a str"),  # type: ignore[arg-type]
    (lambda: Request(tools=["hi"]), "Request.tools can't hold a str"),  # type: ignore[arg-type]
    (lambda: Request(sampling=None), "Request.sampling must be Sampling, not NoneType"),  # type: ignore[arg-type]
    (lambda: Request(tool_choice="auto"), "Request.tool_choice must be ToolChoice, not str"),  # type: ignore[arg-type]
    (lambda: Sampling(temperature=float("nan")), "Sampling.temperature must be a finite number"),
    (lambda: Sampling(temperature=10**400), "Sampling.temperature must be a finite number"),
    (lambda: Sampling(temperature="hot"), "Sampling.temperature must be int or float, not str"),  # type: ignore[arg-type]
    (lambda: Sampling(max_tokens=1.5), "Sampling.max_tokens must be int, not float"),  # type: ignore[arg-type]
    (lambda: Choice(0, "hi"), "Choice.message must be Message, not str"),  # type: ignore[arg-type]
    (lambda: Response(usage=5), "Response.usage must be Usage, not int"),  # type: ignore[arg-type]
    (lambda: Embedding((float("inf"),)), "must contain finite numbers only"),
    (lambda: Opaque(5), "Opaque.dialect must be str, not int"),  # type: ignore[arg-type]
    (lambda: Opaque("x", {1, 2}), "Opaque.payload contains a set"),
    (lambda: Opaque("x", float("nan")), "Opaque.payload contains NaN"),
    (lambda: Text("a").replace(text=5), "Text.text must be str, not int"),
    (lambda: Text("a").replace(origin="me"), "Text.origin must be Origin, not str"),
])  # fmt: skip
def test_wrong_types_are_refused(make: Callable[[], Any], problem: str) -> None:
    """What could not be stored is refused at once, and the error names the field and the type."""
    with pytest.raises(InvalidInputError, match=problem):
        make()


def test_finite_numbers_of_any_size_are_a_vector() -> None:
    """Each number is looked at by itself: their sum may be more than a double holds."""
    assert Embedding((1e308, 1e308)).vector == (1e308, 1e308)


@pytest.mark.parametrize(
    "value",
    [ToolCall.create("c1", "f", {"x": 1}), ToolResult.success("c1", "y"), ToolChoice("required"),
     ToolDefinition("f", "Does it.", {"type": "object"})],
)  # fmt: skip
def test_pickles_name_tools_as_they_always_did(value: Any) -> None:
    """What an earlier release has pickled names `model.tools`, and is read."""
    now = type(value).__module__.encode()
    pickled = pickle.dumps(value, protocol=0).replace(now, b"dragoman.model.tools")
    assert b"dragoman.model.tools" in pickled
    assert now not in pickled
    assert pickle.loads(pickled) == value  # noqa: S301 - it was made two lines above
