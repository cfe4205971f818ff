"""Documents: what is written can be read, and nothing else is accepted."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman.errors import DragomanError, InvalidInputError
from dragoman.model import document
from dragoman.model.collection import Messages
from dragoman.model.content import part_from, parts_from
from dragoman.model.events import ResponseStart
from dragoman.model.frozen import MAX_DEPTH
from dragoman.model.media import Audio, File, Image
from dragoman.model.messages import Message
from dragoman.model.parts import Citation, Opaque, Origin, Refusal, Text, Thinking
from dragoman.model.responses import Choice, Embedding, Response
from dragoman.model.roles import Role
from dragoman.model.schema import schema_of
from dragoman.model.tools import ToolCall, ToolDefinition, ToolResult, make_call
from dragoman.model.usage import FinishReason, Usage
from dragoman.model.value import Value, unchecked
from tests.model.anything import any_values, json_values, texts, value_types, values


def a_document(value: Any, kind: str = "Message", version: Any = 1, **more: Any) -> bytes:
    """A document by hand."""
    return json.dumps({"dragoman": version, "kind": kind, "value": value, **more}).encode()


# --- there and back


@pytest.mark.parametrize("kind", value_types(), ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_every_value_comes_back(kind: type[Value], data: st.DataObject) -> None:
    """JSON, pickle and both kinds of copy give back the very same value, of every type."""
    value = data.draw(values(kind))
    for back in (
        kind.from_json(value.to_json()),
        document.read(value.to_json()),
        pickle.loads(pickle.dumps(value)),  # noqa: S301 - our own
        copy.copy(value),
        copy.deepcopy(value),
    ):
        assert type(back) is kind
        assert back.identical(value)
        assert back == value
        assert hash(back) == hash(value)


@given(st.lists(values(Message), max_size=4))
def test_conversations_come_back(messages: list[Message]) -> None:
    """So do conversations."""
    conversation = Messages(*messages)
    for back in (
        Messages.from_json(conversation.to_json()),
        document.read(conversation.to_json()),
        pickle.loads(pickle.dumps(conversation)),  # noqa: S301 - our own
        copy.copy(conversation),
        copy.deepcopy(conversation),
    ):
        assert type(back) is Messages
        assert all(map(Message.identical, back, conversation))
        assert len(back) == len(conversation)


@given(values(Message))
def test_dicts_come_back(message: Message) -> None:
    """The canonical dict holds everything, through JSON of others as well."""
    plain = message.to_dict()
    assert Message.from_dict(plain).identical(message)
    assert Message.from_dict(json.loads(json.dumps(plain))).identical(message)


@pytest.mark.parametrize("half", [chr(0xD800), chr(0xDFFF), "a\udc00\ud800z"], ids=ascii)
def test_half_characters_survive_everywhere(half: str) -> None:
    """Lone surrogates come back from texts, keys, metadata, arguments, names and ids."""
    message = Message.assistant(
        half,
        Thinking(half, data=half, signature=half),
        tool_calls=[
            make_call(half, half, raw=f'{{"a":"{half}"}}'),
            ToolCall("2", "f", input={half: [half]}),
        ],
        name=half,
        id=half,
        metadata={half: {half: half}},
        extras={half: {half: half}},
        origin=Origin(dialect=half, model=half),
    )
    assert Message.from_json(message.to_json()).identical(message)
    assert Messages.from_json(Messages(message).to_json())[0].identical(message)
    assert message.tool_calls[0].arguments == {"a": half}
    assert json.loads(message.tool_calls[1].raw_arguments) == {half: [half]}


def test_escaped_halves_are_read() -> None:
    """Documents by others may contain them as escapes anywhere."""
    raw = (
        b'{"dragoman":1,"kind":"Message","value":{"role":"user","id":"\\ud800","metadata":'
        b'{"\\udc00":"\\ud800"},"parts":[{"type":"text","text":"\\uDBFF!"}]}}'
    )
    message = Message.from_json(raw)
    assert (message.id, message.text) == ("\ud800", "\udbff!")
    assert message.metadata == {"\udc00": "\ud800"}


# --- what can't be stored is refused before


@pytest.mark.parametrize(
    "make",
    [
        lambda bad: Message.user("hi", metadata={"a": [bad]}),
        lambda bad: Message.user("hi", extras={"a": {"b": bad}}),
        lambda bad: Message.user("hi").with_metadata("a", bad),
        lambda bad: Message.user("hi").with_extra("a", bad),
        lambda bad: Message.user("hi", created_at=bad),
        lambda bad: Message.user("hi").replace(created_at=bad),
        lambda bad: Message.user(Text("hi", extras={"a": {"b": bad}})),
        lambda bad: ToolCall.create("1", "f", {"a": bad}),
        lambda bad: ToolCall("1", "f", input={"a": bad}),
        lambda bad: ToolResult("1", data=bad),
        lambda bad: ToolDefinition.create("f", "d", {"type": "object", "default": bad}),
        lambda bad: Opaque("x", [bad]),
        lambda bad: Usage(extras={"x": {"a": bad}}),
        lambda bad: Citation(kind="url", extras={"x": {"a": bad}}),
        lambda bad: Choice(0, Message.user("hi"), logprobs=bad),
        lambda bad: Response(created_at=bad),
        lambda bad: ResponseStart(created_at=bad),
        lambda bad: Embedding((1.0, bad)),
        lambda bad: dragoman.model.Sampling(temperature=bad),
        lambda bad: dragoman.Request(metadata={"a": bad}),
        lambda bad: dragoman.Output(format="schema", schema={"a": bad}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("bad", [nan, inf, -inf])
def test_nan_and_infinities_are_refused(make: Callable[[Any], Any], bad: float) -> None:
    """Wherever a number may stand, one that JSON can't carry is refused when the value is made."""
    with pytest.raises(InvalidInputError):
        make(bad)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e400", "-1e400"])
@pytest.mark.parametrize("field", ['"metadata":{"a":%s}', '"created_at":%s'])
def test_nan_and_infinities_are_not_read(number: str, field: str) -> None:
    """Nor do they come in with a document."""
    inner = '"role":"user",' + field % number
    with pytest.raises(InvalidInputError):
        Message.from_json(f'{{"dragoman":1,"kind":"Message","value":{{{inner}}}}}')


def test_integers_of_5000_digits_are_refused() -> None:
    """They are refused in a value and in a document; 2**200 is fine."""
    with pytest.raises(InvalidInputError, match="integer"):
        Message.user("hi", metadata={"a": 10**5000})
    raw = a_document({"role": "user", "metadata": {"a": 0}}).replace(b"0}", b"9" * 5000 + b"}")
    with pytest.raises(InvalidInputError, match="out of range"):
        Message.from_json(raw)
    large = Message.user("hi", metadata={"a": 2**200, "b": -(2**200)})
    assert Message.from_json(large.to_json()).identical(large)


def deep(depth: int) -> Any:
    """An object in an object in an object."""
    value: Any = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


def endless() -> dict[str, Any]:
    """An object that contains itself."""
    value: dict[str, Any] = {}
    value["a"] = [value]
    return value


@pytest.mark.parametrize(
    "make",
    [
        lambda d: Message.user("hi", metadata=d),
        lambda d: Message.user("hi", extras={"x": d}),
        lambda d: Message.from_dict({"role": "user", "content": "hi", "metadata": d}),
        lambda d: Message.from_dict({"role": "user", "content": "hi", "unknown": d}),
        lambda d: Message.from_dict({"role": "user", "parts": [], "metadata": d}),
        lambda d: Message.from_dict({"role": "user", "content": d}),
        lambda d: Message.from_any([d]),
        lambda d: Message.from_any({"content": [{"type": "text", "text": "", "x": d}]}),
        lambda d: part_from({"type": "opaque", "dialect": "x", "payload": d}),
        lambda d: ToolCall.create("1", "f", d),
        lambda d: ToolCall("1", "f", input=d),
        lambda d: ToolResult("1", data=d),
        lambda d: ToolDefinition.create("f", "d", {"type": "object", "properties": d}),
        lambda d: Opaque("x", d),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "value", [deep(MAX_DEPTH + 2), deep(5_000), endless()], ids=["just", "far", "endless"]
)
def test_deep_and_endless_values_are_refused(make: Callable[[Any], Any], value: Any) -> None:
    """Too deep is an error of ours wherever JSON may be given."""
    with pytest.raises(InvalidInputError):
        make(value)


def test_values_at_the_limit_work_in_every_way() -> None:
    """As deep as allowed: compared, hashed, printed, copied, pickled, written and read."""
    bottom = deep(MAX_DEPTH + 1)
    message = Message.assistant(
        Opaque("x", bottom), tool_calls=[ToolCall("1", "f", input=bottom)], metadata=bottom
    )
    twin = Message.from_json(message.to_json())
    assert twin.identical(message)
    assert twin == message
    assert hash(twin) == hash(message)
    assert repr(twin) == repr(message)
    assert pickle.loads(pickle.dumps(message)).identical(message)  # noqa: S301 - our own
    assert Message.from_dict(message.to_dict()).identical(message)


def test_nesting_frozen_values_stays_within_the_limit() -> None:
    """Metadata put into metadata, again and again, ends in an error before it can't be read."""
    message = Message.user("hi")
    for _ in range(MAX_DEPTH):
        message = message.with_metadata("a", message.metadata)
    with pytest.raises(InvalidInputError, match="nested deeper"):
        message.with_metadata("a", message.with_metadata("b", message.metadata).metadata)
    assert Message.from_json(message.to_json()).identical(message)


def test_deep_arguments_are_kept_as_text() -> None:
    """What the model wrote stays, is flagged, and can be stored."""
    for depth in (MAX_DEPTH + 2, 5_000, 200_000):
        raw = '{"a":' * depth + "1" + "}" * depth
        call = make_call("1", "f", raw=raw)
        assert not call.has_valid_arguments
        assert ToolCall.from_json(call.to_json()).raw == raw
        assert call == make_call("1", "f", raw=raw)
        with pytest.raises(InvalidInputError):
            ToolCall.create("1", "f", raw)


@pytest.mark.parametrize("kind", [Message, Messages, Opaque, ToolCall])
@pytest.mark.parametrize("depth", [MAX_DEPTH + 2, 900, 5_000, 500_000])
def test_deep_documents_are_refused(kind: type[Message], depth: int) -> None:
    """A document that nests without end is refused by its reader."""
    name = kind.__name__
    fields = {
        "Message": '{"role":"user","metadata":{"a":%s}}',
        "Messages": '[{"role":"user","metadata":{"a":%s}}]',
        "Opaque": '{"type":"opaque","dialect":"x","payload":%s}',
        "ToolCall": '{"type":"tool_call","id":"1","name":"f","input":{"a":%s}}',
    }
    value = fields[name] % ("[" * depth + "]" * depth)
    with pytest.raises(InvalidInputError):
        kind.from_json(f'{{"dragoman":1,"kind":"{name}","value":{value}}}')


@given(st.sampled_from(value_types()), st.data())
def test_what_can_be_written_can_be_read(kind: type[Value], data: st.DataObject) -> None:
    """With fields of any type whatever, a value is refused or comes back; nothing in between."""
    value = data.draw(values(kind))
    field = data.draw(st.sampled_from(kind.__struct_fields__))
    odd = data.draw(json_values() | any_values() | st.sampled_from([b"x", object(), nan, (1,)]))
    fields = {name: getattr(value, name) for name in kind.__struct_fields__} | {field: odd}
    try:
        strange = unchecked(kind)(**fields)
        raw = strange.to_json()
    except InvalidInputError as error:
        assert error.__context__ is None  # noqa: PT017 - it need not be refused
    else:
        assert isinstance(kind.from_json(raw), kind)


@pytest.mark.parametrize("text", [5, None, ["hi"], {"a": 1}, b"hi"])
def test_a_text_that_is_none_does_not_get_into_a_message(text: Any) -> None:
    """A wrong type would make a whole conversation unreadable, so it is rejected at once."""
    with pytest.raises(InvalidInputError, match=r"Text\.text must be str"):
        Message(Role.USER, (Text(text),))


# --- reading what others wrote


@pytest.mark.parametrize("kind", value_types(), ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_documents_of_version_1_are_read(kind: type[Value], data: st.DataObject) -> None:
    """What is written is of version 2; what an earlier dragoman wrote gives the same value."""
    raw = data.draw(values(kind)).to_json()
    assert raw.startswith(b'{"dragoman":2,')
    old = b'{"dragoman":1,' + raw.removeprefix(b'{"dragoman":2,')
    assert document.read(old).identical(document.read(raw))
    assert kind.from_json(old).identical(kind.from_json(raw))


def test_a_documents_kind_is_read_from_its_beginning() -> None:
    """In both versions; a newer version or another kind does not match."""
    for version, is_one in ((1, True), (2, True), (3, False), (0, False)):
        raw = b'{"dragoman":%d,"kind":"Message","value":{}}' % version
        assert document.is_of_kind(raw, "Message") == is_one
        assert not document.is_of_kind(raw, "Messages")


def test_read_returns_the_kind_in_the_document() -> None:
    """`document.read` reads a document of any kind."""
    assert document.read(a_document({"role": "user"})) == Message.empty()


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (a_document({"role": "user"}, version=3), "version 3; this version of dragoman reads"),
        (a_document({"role": "user", "new": 1}, version=3), "version 3"),
        (a_document({"role": "user"}, version=0), "version 0"),
        (a_document({"role": "user"}, version=-1), "version -1"),
        (a_document({"role": "user"}, version="1"), "Expected `int`"),
        (a_document({"role": "user"}, version=None), "Expected `int`"),
        (a_document({"role": "user"}, version=1.5), "Expected `int`"),
        (a_document({"role": "user"}, version=True), "Expected `int`"),
        (a_document([], kind="Messages"), "does not hold a value of kind"),
        (a_document({"role": "user"}, kind="hush"), "does not hold a value of kind"),
        (a_document({"role": "user"}, kind=5), "Expected `str`"),  # type: ignore[arg-type]
        (a_document({"role": "user"}, hush=1), "not allowed here"),
        (a_document({"role": "user", "hush": 1}), "not allowed here"),
        (a_document({"role": "hush"}), "not allowed here"),
        (a_document({}), "missing required field `role`"),
        (a_document(None), "Expected `object`"),
        (a_document([]), "Expected `object`"),
        (a_document({"role": "user", "parts": [{"type": "hush"}]}), "not allowed here"),
        (a_document({"role": "user", "parts": [{"text": "hush"}]}), "missing required field"),
        (a_document({"role": "user", "parts": [{"type": "text"}]}), "missing required field"),
        (a_document({"role": "user", "parts": ["hush"]}), "Expected `object`"),
        (a_document({"role": "user", "name": 5}), "Expected `str | null`"),
        (a_document({"role": "user", "metadata": ["hush"]}), "Expected `object`"),
        (b'{"dragoman":1,"kind":"Message"}', "missing required field `value`"),
        (b'{"kind":"Message","value":{"role":"user"}}', "missing required field `dragoman`"),
        (b'{"dragoman":1,"value":{"role":"user"}}', "missing required field `kind`"),
        (b"[]", "not hold exactly one message"),
        (b"null", "Expected `object`"),
        (b"1", "Expected `object`"),
        (b"", "malformed"),
        (b"{", "malformed"),
        (b"\xff", "UTF-8"),
        (b'{"dragoman":1,"kind":"Message","value":{"role":"user","id":"\xff"}}', "UTF-8"),
    ],
)  # fmt: skip
def test_documents_that_are_not_ours_are_refused(raw: bytes, says: str) -> None:
    """The error describes the problem and its path, and quotes nothing."""
    with pytest.raises(InvalidInputError) as caught:
        Message.from_json(raw)
    assert says in str(caught.value)
    assert "hush" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("raw", [None, 5, {}, [], Message.user("hi"), object()])
def test_values_other_than_text_are_rejected(raw: Any) -> None:
    """A document is text or bytes."""
    for read in (Message.from_json, Messages.from_json, document.read):
        with pytest.raises(InvalidInputError, match="must be bytes or str"):
            read(raw)


def test_an_unknown_kind_is_refused() -> None:
    """A newer library may know kinds that this one does not."""
    with pytest.raises(InvalidInputError, match="kind is unknown to this version"):
        document.read(a_document({}, kind="hush"))


def test_a_byte_order_mark_is_no_matter() -> None:
    """Nor is a text instead of bytes."""
    raw = a_document({"role": "user"})
    assert Message.from_json(b"\xef\xbb\xbf" + raw) == Message.empty()
    assert Message.from_json(raw.decode()) == Message.empty()


def test_the_last_of_equal_keys_wins() -> None:
    """In a document as in its metadata."""
    raw = (
        b'{"dragoman":1,"kind":"Message","value":{"role":"user","role":"tool",'
        b'"metadata":{"a":1,"a":2}}}'
    )
    message = Message.from_json(raw)
    assert (message.role, message.metadata) == (Role.TOOL, {"a": 2})


@given(st.data())
def test_damaged_documents_are_read_or_refused(data: st.DataObject) -> None:
    """Truncated, duplicated or overwritten anywhere, a document is read or raises our own error."""
    value = data.draw(values(Message))
    raw = bytearray(value.to_json())
    start = data.draw(st.integers(0, len(raw)))
    stop = data.draw(st.integers(start, min(len(raw), start + 8)))
    raw[start:stop] = data.draw(
        st.binary(max_size=6) | st.sampled_from([b"null", b"{}", b'"', b"9"])
    )
    try:
        read = Message.from_json(bytes(raw))
    except InvalidInputError as error:
        assert error.__context__ is None  # noqa: PT017 - it need not be refused
    else:
        assert Message.from_json(read.to_json()).identical(read)


@given(st.sampled_from(value_types()), st.data())
def test_documents_of_junk_are_read_or_refused(kind: type[Value], data: st.DataObject) -> None:
    """Any JSON in the place of a value, or of one of its fields, is read or refused."""
    junk = data.draw(json_values())
    value = json.loads(data.draw(values(kind)).to_json())["value"]
    if data.draw(st.booleans()):
        junk = {**value, data.draw(st.sampled_from(kind.__struct_fields__)): junk}
    raw = a_document(junk, kind.__name__)
    try:
        read = kind.from_json(raw)
    except InvalidInputError as error:
        assert error.__context__ is None  # noqa: PT017 - it need not be refused
    else:
        assert kind.from_json(read.to_json()).identical(read)


# --- nothing can be changed


@given(st.sampled_from(value_types()), st.data())
def test_values_refuse_to_be_changed(kind: type[Value], data: st.DataObject) -> None:
    """No field can be set or deleted, no mapping in it changed."""
    value = data.draw(values(kind))
    before = value.to_json()
    for field in kind.__struct_fields__:
        with pytest.raises((AttributeError, TypeError)):
            setattr(value, field, "changed")
        with pytest.raises((AttributeError, TypeError)):
            delattr(value, field)
        if isinstance(inner := getattr(value, field), dict) and (
            not isinstance(value, Text) and field != "extras"
        ):
            with pytest.raises(TypeError):
                inner["changed"] = True
    assert value.to_json() == before


def test_a_call_with_both_forms_of_its_arguments_is_frozen() -> None:
    """Text and object side by side: neither can be changed, and NaN gets into neither."""
    call = make_call("1", "f", raw="{}", input={"a": 1})
    with pytest.raises(TypeError):
        call.input["a"] = 2  # type: ignore[index]
    with pytest.raises(InvalidInputError):
        ToolCall("1", "f", raw="{}", input={"a": nan})


# --- junk


class _Odd:
    """An object that is nothing in particular."""


@dataclass
class _Line:
    length: int
    label: str = ""


_JUNK: list[Any] = [
    None, True, 5, -1, 5.5, nan, inf, b"x", bytearray(b"x"), memoryview(b"x"), "", "x", "\ud800",
    "data:", "data:,", "data:;base64,@", "data:image/png;base64,AA==", "https://x", "x:", ":x", "/",
    "[", "{}", "\x00", (), [], {}, set(), frozenset({1}), range(3), object(), _Odd(), _Odd, int,
    str, len, ..., 1j, [None], [[]], [5], [{}], {1: 2}, {None: None}, {"": ""},
    {"role": 5}, {"role": []}, {"role": "user"}, {"role": "user", "content": 5},
    {"role": "user", "content": [5]}, {"role": "user", "content": {"type": []}}, {"type": {}},
    {"type": "text", "text": 5}, {"type": "image_url"}, {"type": "image_url", "image_url": 5},
    {"type": "image_url", "image_url": {"url": 5, "detail": []}}, {"type": "file", "file": {}},
    {"type": "input_audio", "input_audio": {"data": [], "format": {}}}, {"type": "refusal"},
    {"type": "tool_call", "id": 5}, {"type": "opaque", "payload": object()}, {"parts": 5},
    {"parts": [5]}, {"parts": [{"type": []}]}, {"parts": [Text("x")]}, {"parts": [], 1: 2},
    {"role": "tool"}, {"role": "tool", "content": {"tool_call_id": 5}},
    {"role": "tool", "content": "x", "tool_call_id": "1", "is_error": 5, "tool_name": 5},
    {"role": "assistant", "tool_calls": 5}, {"role": "assistant", "tool_calls": [5]},
    {"role": "assistant", "tool_calls": [{"name": 5}]}, {"role": "assistant", "function_call": 5},
    {"role": "assistant", "tool_calls": [{"name": "f", "arguments": 5}]},
    {"role": "assistant", "tool_calls": [{"type": "custom", "custom": {"name": "f", "input": 5}}]},
    {"role": "user", "content": "x", "extras": 5}, {"role": "user", "content": "x", "extras": [5]},
    {"role": "user", "content": "x", "extras": {"canonical": 5}, "more": 1},
    {"role": "user", "content": "x", "metadata": 5}, {"role": "user", "content": "x", "id": 5},
    {"role": "user", "content": "x", "created_at": nan}, {"role": "user", "content": "x", 1: 2},
    Text("x"), Message.user("x"), Role.USER, Usage(), Messages(), {"name": object()},
]  # fmt: skip

_DOORS: dict[str, Callable[[Any], Any]] = {
    "Message.from_any": Message.from_any,
    "Message.from_dict": Message.from_dict,
    "Message.from_json": Message.from_json,
    "Message.from_any, as role": lambda junk: Message.from_any("hi", junk),
    "Message.user": Message.user,
    "Message.assistant": Message.assistant,
    "Message.tool": Message.tool,
    "Message.tool, result": lambda junk: Message.tool("1", junk),
    "Messages.from_any": Messages.from_any,
    "Messages.from_any, list": lambda junk: Messages.from_any([junk]),
    "Messages.from_json": Messages.from_json,
    "document.read": document.read,
    "part_from": part_from,
    "parts_from": parts_from,
    "Role.parse": Role.parse,
    "Image.from_url": Image.from_url,
    "Image.from_base64": Image.from_base64,
    "Image.from_data_url": Image.from_data_url,
    "Image.from_bytes": Image.from_bytes,
    "Image.from_url, mime": lambda junk: Image.from_url("https://x", junk),
    "Image.from_url, detail": lambda junk: Image.from_url("https://x", detail=junk),
    "Image": lambda junk: Image(data=junk),
    "File.from_file_id": File.from_file_id,
    "File.from_path": File.from_path,
    "Audio.from_format": lambda junk: Audio.from_format("AAAA", junk),
    "Audio.from_format, data": lambda junk: Audio.from_format(junk, "wav"),
    "ToolCall, id": lambda junk: ToolCall(junk, "f"),
    "ToolCall, name": lambda junk: ToolCall("1", junk),
    "ToolCall, raw": lambda junk: ToolCall("1", "f", raw=junk),
    "ToolCall, input": lambda junk: ToolCall("1", "f", input=junk),
    "ToolCall.create, id": lambda junk: ToolCall.create(junk, "f"),
    "ToolCall.create, name": lambda junk: ToolCall.create("1", junk),
    "ToolCall.create": lambda junk: ToolCall.create("1", "f", junk),
    "ToolCall.create, custom": lambda junk: ToolCall.create("1", "f", junk, kind="custom"),
    "argument": lambda junk: ToolCall.create("1", "f", {"a": 1}).argument(junk),
    "argument, kind": lambda junk: ToolCall.create("1", "f", {"a": 1}).argument("a", junk),
    "arguments_as": lambda junk: ToolCall.create("1", "f", {"a": 1}).arguments_as(junk),
    "arguments_as, text": lambda junk: make_call("1", "f", raw=str(junk)).arguments_as(_Line),
    "ToolResult, content": lambda junk: ToolResult("1", junk),
    "ToolResult, data": lambda junk: ToolResult("1", data=junk),
    "ToolResult.success": lambda junk: ToolResult.success("1", junk),
    "ToolDefinition": lambda junk: ToolDefinition("f", "d", junk),
    "ToolDefinition, properties": lambda junk: repr(
        ToolDefinition("f", "d", {"type": "object", "properties": junk})
    ),
    "schema_of": schema_of,
    "replace": lambda junk: Message.user("hi").replace(parts=junk),
    "add_part": lambda junk: Message.user("hi").add_part(junk),
    "with_image": lambda junk: Message.user("hi").with_image(junk),
    "with_metadata": lambda junk: Message.user("hi").with_metadata("a", junk),
    "finish": lambda junk: Message.assistant("hi", finish=junk),
}


@pytest.mark.parametrize("door", _DOORS)
def test_junk_is_taken_or_refused(door: str) -> None:
    """Every constructor makes a value that can be stored, or raises our own error."""
    for junk in _JUNK:
        raw = b""
        try:
            made = _DOORS[door](junk)
            if isinstance(made, (Value, Messages)):
                raw = made.to_json()
                repr(made)
        except DragomanError as error:
            assert error.__context__ is None, junk  # noqa: PT017 - it need not be refused
        else:
            if isinstance(made, (Value, Messages)):
                assert type(made).from_json(raw) == made


@given(st.sampled_from(sorted(_DOORS)), json_values() | texts() | any_values())
def test_random_values_are_accepted_or_rejected(door: str, junk: Any) -> None:
    """As above, with random values."""
    try:
        _DOORS[door](junk)
    except DragomanError as error:
        assert error.__context__ is None  # noqa: PT017 - it need not be refused


# --- size


@pytest.mark.slow
def test_a_hundred_megabytes() -> None:
    """A message may be as large as memory allows."""
    message = Message.user("é" * 50_000_000, metadata={"a": "\x00" * 1_000_000})
    assert Message.from_json(message.to_json()).identical(message)
    assert len(repr(message)) < 200


def test_finish_and_refusals_survive() -> None:
    """A cut-off answer is still one after it was stored."""
    message = Message.assistant(Refusal("no"), finish=FinishReason.LENGTH)
    back = Message.from_json(message.to_json())
    assert back.finish is FinishReason.LENGTH
    assert back.parts == (Refusal("no"),)
