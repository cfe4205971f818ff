"""Values made by hand are validated in every way; decoded values are kept unchanged."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from copy import deepcopy
from typing import Any, TypedDict

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import InvalidInputError
from dragoman.model.media import Image
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Text, Thinking
from dragoman.model.roles import Role
from dragoman.model.tools import (
    LongDescriptionWarning,
    ToolCall,
    ToolDefinition,
    ToolResult,
    make_call,
    make_definition,
    make_result,
)
from dragoman.model.value import Value, unchecked
from tests.model import anything

CALL = ToolCall("c1", "weather", {"city": "Basel"})
RESULT = ToolResult("c1", "sunny")
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}}
IMAGE = Image.from_url("https://example.com/cat.png")


# --- messages


@pytest.mark.parametrize("content", [
    "Hello", Text("Hello"), {"type": "text", "text": "Hello"}, ["Hello"], (Text("Hello"),),
    iter(["Hello"]),
], ids=lambda content: type(content).__name__)  # fmt: skip
def test_a_message_takes_content_in_any_form(content: Any) -> None:
    """A text, a part, a dict or a sequence of those, in the place of the parts (seed 003)."""
    made = Message("user", content)
    assert made == Message.user("Hello")
    assert made.role is Role.USER


@pytest.mark.parametrize(("make", "problem"), [
    (lambda: Message(Role.USER), "a user message needs content"),
    (lambda: Message("assistant"), "an assistant message needs content or tool calls"),
    (lambda: Message("user", ()), "a user message needs content"),
    (lambda: Message(Role.TOOL, "text"), "a tool message may only hold tool results"),
    (lambda: Message("user", CALL), "a user message can't have tool calls"),
    (lambda: Message.user(CALL), "a user message can't have tool calls"),
    (lambda: Message.system("be brief", CALL), "a system message can't have tool calls"),
    (lambda: Message.assistant(RESULT), "tool results belong in a tool message"),
    (lambda: Message("user", "hi", id=5), "Message.id must be str"),  # type: ignore[arg-type]
    (lambda: Message("user", "hi", name=5), "Message.name must be str"),  # type: ignore[arg-type]
    (lambda: Message("user", "hi", extras={"x": 5}), "extras of a dialect must be Mapping"),
    (lambda: Message("user", [5]), "content can't be made from int"),  # type: ignore[list-item]
    (lambda: Message("user", Text(5)), "Text.text must be str"),  # type: ignore[arg-type]
    (lambda: Message.user("hi").replace(parts=()), "a user message needs content"),
    (lambda: Message.user("hi").with_role("tool"), "a tool message may only hold tool results"),
    (lambda: Message.assistant(CALL).with_role("user"), "a user message can't have tool calls"),
    (lambda: Message.user("hi").add_part(CALL), "a user message can't have tool calls"),
])  # fmt: skip
def test_an_invalid_message_is_rejected(make: Callable[[], Any], problem: str) -> None:
    """No content, or content not allowed for the role: rejected on construction and on change."""
    with pytest.raises(InvalidInputError, match=problem):
        make()


def test_a_user_message_may_hold_results_and_text() -> None:
    """As in Anthropic's format, results may be in a user message with text."""
    assert Message.user(RESULT, "And tomorrow?").tool_results == (RESULT,)


def test_a_decoded_message_is_not_validated() -> None:
    """No parts, a call in a user message, text in a tool message: kept, and still editable."""
    odd = make_message(Role.USER, (make_call("", "mcp.read-file"), Text("hi")))
    assert odd.with_name("Ann").parts == odd.parts
    assert odd.replace(parts=(*odd.parts, Text("more"))).text == "hi\nmore"
    assert odd.with_metadata("seen", value=True).metadata == {"seen": True}
    with pytest.raises(InvalidInputError, match="can't have tool calls"):
        odd.replace(parts=(*odd.parts, CALL))
    assert make_message(Role.TOOL).parts == ()


# --- calls and results


@pytest.mark.parametrize(("make", "problem"), [
    (lambda: ToolCall("", "f"), "the id of a tool call must not be empty"),
    (lambda: ToolCall("c", ""), "the name of a tool call must not be empty"),
    (lambda: ToolCall("c", "bad name!"), "only contain letters, digits and underscores"),
    (lambda: ToolCall("c", "f", "[1]"), "not a JSON object"),
    (lambda: ToolCall("c", "f", "{"), "not a JSON object"),
    (lambda: ToolCall("c", "f", '{"a":1}', {"a": 1}), "not both"),
    (lambda: ToolCall("c", "f", {"a": 1}, {"a": 1}), "not both"),
    (lambda: ToolCall("c", "f", 5), "must be str or Mapping"),  # type: ignore[arg-type]
    (lambda: ToolCall("c", "f", kind="custom"), "ToolCall.raw of a custom call must be str"),
    (lambda: ToolCall("c", "f", kind="other"), "must be function or custom"),  # type: ignore[arg-type]
    (lambda: CALL.replace(id=""), "the id of a tool call must not be empty"),
    (lambda: CALL.replace(name="bad name!"), "only contain letters, digits and underscores"),
    (lambda: CALL.replace(raw="[1]"), "not a JSON object"),
    (lambda: ToolResult("", "x"), "the call id of a tool result must not be empty"),
    (lambda: ToolResult(None, "x"), "must be str"),  # type: ignore[arg-type]
    (lambda: ToolResult("c", "x", is_error="no"), "is_error must be bool"),  # type: ignore[arg-type]
    (lambda: RESULT.replace(call_id=""), "the call id of a tool result must not be empty"),
])  # fmt: skip
def test_calls_and_results_are_checked(make: Callable[[], Any], problem: str) -> None:
    """By the constructor and by `replace`, as by the factories (FR-53, FR-54, FR-66)."""
    with pytest.raises(InvalidInputError, match=problem):
        make()


@pytest.mark.parametrize("name", ["get-order", "a.b:c", "x" * 128, "-"])
@pytest.mark.parametrize(("make", "field"), [
    (lambda name, **how: ToolCall("c", name, "{}", **how), "name"),
    (lambda name, **how: ToolCall("c", name, {"a": 1}, **how), "name"),
    (lambda name, **how: ToolCall.create("c", name, {"a": 1}, **how), "name"),
    (lambda name, **how: ToolCall.create("c", name, "{}", **how), "name"),
    (lambda name, **how: CALL.replace(name=name, **how), "name"),
    (lambda name, **how: ToolDefinition(name, "It.", SCHEMA, **how), "name"),
    (lambda name, **how: ToolDefinition.create(name, "It.", **how), "name"),
    (lambda name, **how: ToolDefinition.create("a", "It.").replace(name=name, **how), "name"),
    (lambda name, **how: ToolDefinition.from_function(ahead, name, **how), "name"),
    (lambda name, **how: ToolDefinition.from_type(Place, name, "A place.", **how), "name"),
])  # fmt: skip
def test_names_are_portable_unless_asked(make: Callable[..., Any], field: str, name: str) -> None:
    """Seed 004's names by default; `portable=False` takes what providers and MCP take."""
    with pytest.raises(InvalidInputError, match=r"portable to every system; portable=False allows"):
        make(name)
    assert getattr(make(name, portable=False), field) == name
    for bad in ("", "a b", "é", "x" * 129, "a/b", name + "\n"):
        with pytest.raises(InvalidInputError, match=r"must not be empty|may only contain"):
            make(bad, portable=False)


def ahead(city: str) -> str:
    """The weather ahead."""
    return city


class Place(TypedDict):
    """Where."""

    city: str


@pytest.mark.parametrize(
    "raw",
    ["", " ", "{}", '{"a":[{"b":1}]}', '{"a":"\\ud800"}', '{"n":18446744073709551616}'],
)
def test_arguments_checked_at_construction_are_those_read_later(raw: str) -> None:
    """The mapping made while checking is the same, and as immutable, as that of a decoded call."""
    made, decoded = ToolCall("c", "f", raw), make_call("c", "f", raw)
    assert made.arguments == decoded.arguments
    assert type(made.arguments) is type(decoded.arguments)
    assert made.raw == raw


def test_arguments_are_a_text_or_a_mapping() -> None:
    """The third argument of a call is either; both say the same."""
    assert ToolCall("c", "f", {"a": 1}) == ToolCall("c", "f", '{"a":1}')
    assert ToolCall("c", "f").arguments == {}


def test_changed_arguments_replace_the_other_form() -> None:
    """A new text wins over an old object and the other way round: no edit is undone."""
    assert CALL.replace(raw='{"city":"Bern"}').arguments == {"city": "Bern"}
    assert ToolCall("c", "f", '{"a":1}').replace(input={"a": 2}).raw_arguments == '{"a":2}'


def test_a_result_made_by_hand_is_no_error_by_default() -> None:
    """`None` is for wire formats without this field (FR-64)."""
    assert ToolResult("c", "x").is_error is False
    assert make_result("c", "x").is_error is None


def test_a_decoded_call_can_be_edited() -> None:
    """Its name is up to the provider; only changes are validated."""
    call = make_call("c", "mcp.read-file", "{")
    assert call.replace(input={"path": "/"}).name == "mcp.read-file"
    assert call.replace(id="d").raw == "{"


# --- definitions


@pytest.mark.parametrize("make", [
    lambda schema: ToolDefinition("f", "Does it.", schema),
    lambda schema: ToolDefinition.create("f", "Does it.", schema),
    lambda schema: ToolDefinition.create("f", "Does it.").replace(parameters=schema),
], ids=["constructor", "create", "replace"])  # fmt: skip
@pytest.mark.parametrize(("schema", "problem"), [
    ({"properties": 5}, r"got `int` - at `\$.properties`"),
    ({"required": "path"}, r"got `str` - at `\$.required`"),
    ({"required": [5]}, r"got `int` - at `\$.required\[0\]`"),
    ({"properties": {"path": {"type": "strnig"}}}, "value that is not allowed here"),
    ({"properties": {"path": 5}}, "got `int`"),
    ({"properties": {"path": {"items": {"anyOf": {}}}}}, "got `object`"),
    ({"$defs": {"a": {"minLength": -1}}}, "value that is not allowed here"),
    ({"type": "array"}, 'with "type": "object"'),
    ({"additionalProperties": True}, "strict tool must not allow additionalProperties"),
    ({"additionalProperties": {"type": "string"}}, "must not allow additionalProperties"),
])  # fmt: skip
def test_a_schema_is_checked(
    make: Callable[[Any], Any], schema: dict[str, Any], problem: str
) -> None:
    """A value that is no JSON Schema of an object is rejected, however the tool is made (FR-80)."""
    with pytest.raises(InvalidInputError, match=problem):
        make({**SCHEMA, **schema})


def test_a_strict_definition_is_closed_whichever_way_it_is_made() -> None:
    """`additionalProperties: false` is added where the schema leaves it open (FR-84)."""
    closed = {**SCHEMA, "additionalProperties": False}
    assert ToolDefinition("f", "Does it.", SCHEMA).parameters == closed
    assert ToolDefinition.create("f", "Does it.", SCHEMA).parameters == closed
    loose = ToolDefinition("f", "Does it.", SCHEMA, strict=False)
    assert loose.parameters == SCHEMA
    assert loose.replace(strict=True).parameters == closed


def test_a_type_that_is_open_makes_a_tool_that_is_not_strict() -> None:
    """Pydantic's `extra="allow"` means it; asked for strictly, it is refused."""

    class Open(pydantic.BaseModel, extra="allow"):
        """Takes anything."""

        path: str

    assert ToolDefinition.from_type(Open).strict is False
    with pytest.raises(InvalidInputError, match="strict tool must not allow additionalProperties"):
        ToolDefinition.from_type(Open, strict=True)


@pytest.mark.parametrize("make", [ToolDefinition, ToolDefinition.create])
def test_a_long_description_warns_whichever_way(make: Callable[..., Any]) -> None:
    """Some providers take 1,024 characters (FR-77); the warning points at the caller's line."""
    with pytest.warns(LongDescriptionWarning) as caught:
        make("f", "x" * 1025, SCHEMA)
    assert caught[0].filename == __file__


def test_a_definition_of_a_reader_is_kept() -> None:
    """A foreign name, no description, an odd schema: kept as on the wire, and still editable."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        odd = make_definition("mcp.read-file", None, {"properties": 5}, strict=None)
        edited = odd.replace(description="Reads a file.")
    assert (edited.name, edited.parameters) == ("mcp.read-file", {"properties": 5})


# --- all of them


@pytest.mark.parametrize("odd", [
    make_message(Role.USER), make_message(Role.TOOL, (Text("x"),)), make_call("", "", "["),
    make_result("", "x"), make_definition("a.b", None, None),
], ids=lambda odd: type(odd).__name__)  # fmt: skip
def test_what_came_survives_pickles_copies_and_documents(odd: Value) -> None:
    """Stores, pickles and copies accept whatever a decoder made."""
    for again in (
        pickle.loads(pickle.dumps(odd)),  # noqa: S301 - our own bytes
        deepcopy(odd),
        type(odd).from_json(odd.to_json()),
    ):
        assert again.identical(odd)
        assert type(again) is type(odd)


@pytest.mark.parametrize("kind", [Message, ToolCall, ToolResult, ToolDefinition])
@given(data=st.data())
def test_nothing_but_our_error_leaves_a_constructor(kind: type[Any], data: st.DataObject) -> None:
    """Whatever is passed, a value is created and can be stored, or our own error is raised."""
    fields = data.draw(
        st.fixed_dictionaries({}, optional=dict.fromkeys(kind.__struct_fields__, _strange))
    )
    required = {"role", "id", "name", "call_id"} & set(kind.__struct_fields__)
    for name in (
        required - {"id" if kind is Message else ""} - ({"name"} if kind is Message else set())
    ):
        fields.setdefault(name, "x")
    try:
        made = kind(**fields)
    except InvalidInputError:
        return
    assert type(made).from_json(made.to_json()) == made
    make: Callable[..., Value] = unchecked(kind)
    assert make(**fields) == made


_strange = st.one_of(
    anything.json_values(), anything.texts(), st.just(CALL), st.just(RESULT), st.just(IMAGE),
    st.just(Thinking("hm")), st.just(object()), st.binary(max_size=3), st.sampled_from(list(Role)),
    st.lists(st.just(Text("x")), max_size=2), st.just(SCHEMA), st.floats(), st.just(int),
)  # fmt: skip


def test_a_lone_surrogate_in_a_schema_raises_our_error() -> None:
    """The codec's own error is never raised."""
    odd = {"type": "object", "properties": {"a": {"type": "\ud800"}}}
    with pytest.raises(InvalidInputError, match="not a JSON Schema"):
        ToolDefinition("f", "Does it.", odd)
