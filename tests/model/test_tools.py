"""Tool calls, results, deltas, definitions and choices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import InvalidInputError
from dragoman.model import tool_calls
from dragoman.model.frozen import FrozenDict
from dragoman.model.jsontext import loads
from dragoman.model.media import Image
from dragoman.model.messages import Message
from dragoman.model.parts import Origin, Text, Thinking
from dragoman.model.provider_tools import Shell
from dragoman.model.tools import (
    LongDescriptionWarning,
    ServerTool,
    ToolCall,
    ToolCallDelta,
    ToolChoice,
    ToolDefinition,
    ToolResult,
    make_call,
    make_definition,
    make_result,
)
from tests.model import strategies as some

OBJECT: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}}
WIRE = Origin(dialect="openai-chat")

GOOD_NAMES = ["read_file", "write_file", "search_codebase", "tool123", "A", "_", "a" * 64]
BAD_NAMES = [
    "", "a" * 65, "read-file", "read file", "read.file", "read@file", "é", "\u0661", "a\n", " a",
]  # fmt: skip


@dataclass
class PlaceData:
    """A place, as a dataclass."""

    city: str
    days: int = 1


class PlaceDict(TypedDict):
    """A place, as a typed dict."""

    city: str
    days: int


class PlaceStruct(msgspec.Struct):
    """A place, as a struct."""

    city: str
    days: int = 1


class PlaceModel(pydantic.BaseModel):
    """A place, as a pydantic model."""

    city: str
    days: int = 1


# --- ToolCall


@pytest.mark.parametrize("name", GOOD_NAMES)
def test_good_names_are_taken(name: str) -> None:
    """Letters, digits and underscores, up to 64: for calls and definitions alike."""
    assert ToolCall.create("c", name).name == name
    assert ToolDefinition(name, "It works.", OBJECT).name == name


@pytest.mark.parametrize("name", BAD_NAMES)
def test_bad_names_are_refused_from_people(name: str) -> None:
    """What people name is checked; what a wire names is kept."""
    with pytest.raises(InvalidInputError, match="the name of a tool"):
        ToolCall.create("c", name)
    with pytest.raises(InvalidInputError, match="the name of a tool"):
        ToolDefinition(name, "It works.", OBJECT)
    assert make_call("c", name, raw="{}").name == name
    assert make_definition(name, origin=WIRE).name == name


@given(some.json_objects)
def test_arguments_are_an_object_and_its_text(arguments: dict[str, Any]) -> None:
    """An object given is an object read; its text stands for the same object."""
    call = ToolCall.create("c", "f", arguments)
    assert call.arguments == arguments
    assert ToolCall.create("c", "f", call.raw_arguments).arguments == arguments
    assert ToolCall.create("c", "f", call.raw_arguments) == call


@pytest.mark.parametrize("text", ['{"a":1}', '{ "a" : 1 }\n', '{"a":1,"a":2}', '{"a":1.0}'])
def test_the_models_text_is_kept_byte_for_byte(text: str) -> None:
    """Whatever the formatting, the model's text is kept."""
    call = ToolCall.create("c", "f", text)
    assert call.raw_arguments == text
    assert call.replace(wire_id="w").raw_arguments == text


def test_arguments_are_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often they are asked for, and in whatever way."""
    calls: list[str] = []

    def counting(raw: str) -> Any:
        calls.append(raw)
        return loads(raw)

    monkeypatch.setattr(tool_calls, "loads", counting)
    monkeypatch.setattr(tool_calls, "_decode_object", counting)
    call = ToolCall("c", "f", raw='{"a":1}')
    for _ in range(3):
        assert call.arguments == {"a": 1}
        assert call.argument("a", int) == 1
        assert call.has_valid_arguments
        assert call == ToolCall("c", "f", input={"a": 1})
    assert len(calls) == 1


def test_arguments_cannot_be_changed() -> None:
    """Not through the mapping that is given out, nor through the one that was given."""
    given_arguments = {"a": [1]}
    call = ToolCall.create("c", "f", given_arguments)
    given_arguments["a"].append(2)
    assert call.arguments == {"a": [1]}
    assert isinstance(call.arguments, FrozenDict)


@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_no_text_means_no_arguments(text: str) -> None:
    """A tool without parameters may be called with nothing at all."""
    call = make_call("c", "f", raw=text)
    assert call.has_valid_arguments
    assert call.arguments == {}
    assert call.raw_arguments == text


@pytest.mark.parametrize(
    "text", ["{", "[]", "null", '"x"', "1", '{"a":', "{}{}", "NaN", '{"a":1e400}']
)
def test_text_that_is_no_object_is_kept_and_flagged(text: str) -> None:
    """The model's text is kept; reading its arguments is a clear error."""
    call = make_call("c", "f", raw=text)
    assert not call.has_valid_arguments
    assert call.raw_arguments == text
    with pytest.raises(InvalidInputError, match="not a JSON object"):
        _ = call.arguments
    with pytest.raises(InvalidInputError, match="not a JSON object"):
        call.argument("a")
    with pytest.raises(InvalidInputError, match="not a JSON object"):
        ToolCall.create("c", "f", text)


@given(some.texts)
def test_a_custom_tool_takes_any_text(text: str) -> None:
    """Free text is valid whatever it is, and has no arguments."""
    call = ToolCall.create("c", "f", text, kind="custom")
    assert call.has_valid_arguments
    assert call.raw_arguments == text
    with pytest.raises(InvalidInputError, match="not a JSON object"):
        _ = call.arguments


@pytest.mark.parametrize(("make", "problem"), [
    (lambda: ToolCall.create("", "f"), "id of a tool call must not be empty"),
    (lambda: ToolCall.create(5, "f"), "id of a tool call must be str"),  # type: ignore[arg-type]
    (lambda: ToolCall.create("c", 5), "name of a tool call must be str"),  # type: ignore[arg-type]
    (lambda: ToolCall.create("c", "f", [1]), "arguments of a tool call must be a mapping"),  # type: ignore[arg-type]
    (lambda: ToolCall.create("c", "f", {"a": {1}}), "arguments of a tool call contains a set"),
    (lambda: ToolCall.create("c", "f", {"a": 1}, kind="custom"), "of a custom call must be str"),
    (lambda: ToolCall(5, "f"), "ToolCall.id must be str"),  # type: ignore[arg-type]
    (lambda: ToolCall("c", None), "ToolCall.name must be str"),  # type: ignore[arg-type]
    (lambda: ToolCall("c", "f", raw=b"{}"), "arguments of a tool call must be str or Mapping"),  # type: ignore[arg-type]
    (lambda: ToolCall("c", "f", input=[1]), "ToolCall.input must be a mapping"),  # type: ignore[arg-type]
    (lambda: Message.assistant(ToolCall("c", "f", kind="x")), "ToolCall.kind must be"),  # type: ignore[arg-type]
    (lambda: Message.assistant(ToolCall("c", "f", kind="custom")), "of a custom call must be str"),
    (lambda: Message.assistant(ToolCall("c", "f", wire_id=5)), "ToolCall.wire_id must be str"),  # type: ignore[arg-type]
])  # fmt: skip
def test_what_is_no_call_is_refused(make: Callable[[], Any], problem: str) -> None:
    """Ids, names and arguments are checked at construction."""
    with pytest.raises(InvalidInputError, match=problem):
        make()


def test_a_call_without_id_gets_a_fresh_one() -> None:
    """Two calls made without ids are two calls."""
    first, second = (ToolCall.create(None, "f") for _ in range(2))
    assert first.id != second.id
    assert first.id.startswith("call_")


def test_one_argument_by_name_and_type() -> None:
    """A missing argument is the default; one of another type is an error."""
    call = ToolCall.create("c", "f", {"city": "Basel", "days": 3, "none": None})
    assert call.argument("city") == "Basel"
    assert call.argument("days", int) == 3
    assert call.argument("days", float) == 3.0
    assert call.argument("missing") is None
    assert call.argument("missing", int) is None
    assert call.argument("missing", int, 7) == 7
    assert call.argument("none", str | None, "x") is None  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="Expected `int`, got `str`"):
        call.argument("city", int)


@pytest.mark.parametrize("kind", [PlaceData, PlaceStruct, PlaceModel])
def test_arguments_as_a_type_of_the_users(kind: type[Any]) -> None:
    """Dataclasses, structs and pydantic models are filled, defaults included."""
    place = ToolCall.create("c", "f", {"city": "Basel"}).arguments_as(kind)
    assert isinstance(place, kind)
    assert (place.city, place.days) == ("Basel", 1)


def test_arguments_as_a_typed_dict() -> None:
    """A TypedDict is a plain dict with the right keys."""
    arguments = {"city": "Basel", "days": 2}
    assert ToolCall.create("c", "f", arguments).arguments_as(PlaceDict) == arguments


@pytest.mark.parametrize("kind", [PlaceData, PlaceStruct, PlaceModel, PlaceDict])
def test_arguments_that_do_not_fit_are_an_error_of_ours(kind: type[Any]) -> None:
    """The value that doesn't fit is not quoted, not even by a cause."""
    call = ToolCall.create("c", "f", {"city": "Basel", "days": "hunter2"})
    with pytest.raises(InvalidInputError) as caught:
        call.arguments_as(kind)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


# --- ToolResult


def test_success_and_error_say_which_they_are() -> None:
    """The two ways to make a result, and what is known of one that a wire had."""
    assert ToolResult.success("c", "fine").is_error is False
    assert ToolResult.error("c", "bad").is_error is True
    assert make_result("c", "fine").is_error is None


def test_the_empty_text_is_a_result() -> None:
    """A tool may have nothing to say."""
    assert ToolResult.success("c", "").text == ""


@pytest.mark.parametrize(("result", "text", "count"), [
    (ToolResult.success("c", "fine"), "fine", 1),
    (ToolResult.success("c", [Text("a"), Image(url="x:y"), Text("b")]), "a\nb", 3),
    (ToolResult("c", data={"a": 1}), '{"a":1}', 1),
    (ToolResult("c", data=None), "null", 1),
    (ToolResult("c", "said", data={"a": 1}), "said", 1),
    (ToolResult("c", ()), "", 0),
])  # fmt: skip
def test_a_result_has_a_text_whatever_it_holds(result: ToolResult, text: str, count: int) -> None:
    """Text, parts or data: each can be read as text and as parts."""
    assert result.text == text
    assert len(result.parts) == count


@pytest.mark.parametrize(("make", "problem"), [
    (lambda: ToolResult.success("", "x"), "call id of a tool result must not be empty"),
    (lambda: ToolResult.success(5, "x"), "call id of a tool result must be str"),  # type: ignore[arg-type]
    (lambda: ToolResult.success("c", None), "content of a tool result"),  # type: ignore[arg-type]
    (lambda: ToolResult.error("c", None), "content of a tool result"),  # type: ignore[arg-type]
    (lambda: ToolResult.success("c", [Thinking("x")]), "ToolResult.content can't hold a Thinking"),  # type: ignore[list-item]
    (lambda: ToolResult("c", data={1}), "ToolResult.data contains a set"),
    (lambda: ToolResult(5), "ToolResult.call_id must be str"),  # type: ignore[arg-type]
    (lambda: Message.tool(ToolResult("c", (Text(5),))), "Text.text must be str"),  # type: ignore[arg-type]
    (lambda: Message.tool(ToolResult("c", tool_name=5)), "ToolResult.tool_name must be str"),  # type: ignore[arg-type]
    (lambda: Message.tool(ToolResult("c", is_error=0)), "ToolResult.is_error must be bool"),  # type: ignore[arg-type]
])  # fmt: skip
def test_what_is_no_result_is_refused(make: Callable[[], Any], problem: str) -> None:
    """A result names its call and has content."""
    with pytest.raises(InvalidInputError, match=problem):
        make()


# --- ToolCallDelta


def test_a_delta_may_hold_anything_or_nothing() -> None:
    """Servers differ: no field is required, and absent fields are not written."""
    assert ToolCallDelta().to_json() == (
        b'{"dragoman":2,"kind":"ToolCallDelta","value":{"type":"tool_call_delta"}}'
    )
    assert ToolCallDelta(10, "c", "f", '{"a').arguments_delta == '{"a'


def test_a_deltas_index_is_a_number() -> None:
    """An index as text is refused: it would never match."""
    with pytest.raises(InvalidInputError, match=r"ToolCallDelta\.index must be int"):
        ToolCallDelta("0")  # type: ignore[arg-type]


# --- ToolDefinition


def test_strict_is_true_by_hand_and_open_off_the_wire() -> None:
    """By hand, strict is the default; off the wire, it is as the wire has it."""
    assert ToolDefinition("f", "It works.", OBJECT).strict is True
    assert ToolDefinition("f", "It works.", OBJECT, strict=False).strict is False
    assert ToolDefinition("f", "It works.", OBJECT, origin=WIRE).strict is None
    assert make_definition("f", origin=WIRE, strict=True).strict is True


@pytest.mark.parametrize("strict", [True, False, None])
def test_strict_survives_a_document(strict: bool | None) -> None:
    """What was decided is what is read, for both kinds of origin."""
    for origin in (None, WIRE):
        tool = ToolDefinition("f", "It works.", OBJECT, strict, origin=origin)
        assert ToolDefinition.from_json(tool.to_json()).strict is strict


def test_create_without_parameters_takes_none() -> None:
    """A tool without parameters has the schema of an empty object."""
    loose = ToolDefinition.create("f", "It works.", strict=False).parameters
    assert loose == {"type": "object", "properties": {}}
    assert ToolDefinition.create("f", "It works.", OBJECT, strict=False).parameters == OBJECT


def test_a_strict_tool_takes_what_its_schema_lists() -> None:
    """Seed 004: strict closes the schema; one that says that there may be more is refused."""
    made = ToolDefinition.create("f", "It works.", OBJECT)
    assert made.parameters == {**OBJECT, "additionalProperties": False}
    opened = {**OBJECT, "additionalProperties": True}
    with pytest.raises(InvalidInputError, match="strict=False"):
        ToolDefinition.create("f", "It works.", opened)


def test_a_definition_off_the_wire_keeps_its_gaps() -> None:
    """No description, no parameters, any name: providers send such tools."""
    tool = make_definition("mcp.server/tool", origin=WIRE)
    assert (tool.description, tool.parameters) == (None, None)


def test_a_custom_tool_needs_no_schema() -> None:
    """Its input is text; a grammar may describe it."""
    assert (
        ToolDefinition("f", "It works.", kind="custom", format={"type": "text"}).parameters is None
    )


@pytest.mark.parametrize(("make", "problem"), [
    (lambda: ToolDefinition("f", None, OBJECT), "description of a tool must be str"),
    (lambda: ToolDefinition("f", "", OBJECT), "description of a tool must not be empty"),
    (lambda: ToolDefinition("f", "It works."), "parameters of a tool must be a JSON Schema"),
    (lambda: ToolDefinition("f", "It works.", {}), "parameters of a tool must be a JSON Schema"),
    (lambda: ToolDefinition("f", "It works.", {"type": "string"}), 'with "type": "object"'),
    (lambda: ToolDefinition("f", "It works.", [1]), "ToolDefinition.parameters must be a mapping"),  # type: ignore[arg-type]
    (lambda: ToolDefinition(5, "It works.", OBJECT), "ToolDefinition.name must be str"),  # type: ignore[arg-type]
    (lambda: ServerTool(5, "x"), "ServerTool.name must be str"),  # type: ignore[arg-type]
    (lambda: ServerTool("x", 5), "ServerTool.dialect must be str"),  # type: ignore[arg-type]
])  # fmt: skip
def test_what_is_no_tool_is_refused(make: Callable[[], Any], problem: str) -> None:
    """Name, description and an object schema: the model chooses by them."""
    with pytest.raises(InvalidInputError, match=problem):
        make()


def test_a_long_description_is_fine() -> None:
    """Seed 004 advises 1,024 characters and does not demand them."""
    with pytest.warns(LongDescriptionWarning):
        made = ToolDefinition("f", "x" * 2000, OBJECT)
    assert len(made.description or "") == 2000


# --- ToolChoice


@pytest.mark.parametrize("mode", ["auto", "none", "required", "allowed"])
def test_modes_without_a_name(mode: Any) -> None:
    """Four ways of choosing that need no tool's name."""
    assert ToolChoice(mode).names == ()


@pytest.mark.parametrize(("make", "problem"), [
    (lambda: ToolChoice("always"), "ToolChoice.mode must be auto"),  # type: ignore[arg-type]
    (lambda: ToolChoice("named"), "exactly one tool name"),
    (lambda: ToolChoice("named", ("a", "b")), "exactly one tool name"),
    (lambda: ToolChoice("allowed", "abc"), "ToolChoice.names must be a sequence"),  # type: ignore[arg-type]
    (lambda: ToolChoice("allowed", (1,)), "ToolChoice.names can't hold a int"),  # type: ignore[arg-type]
])  # fmt: skip
def test_what_is_no_choice_is_refused(make: Callable[[], Any], problem: str) -> None:
    """Unknown modes and missing names are found at once."""
    with pytest.raises(InvalidInputError, match=problem):
        make()


@given(st.lists(some.words, max_size=3))
def test_names_become_a_tuple(names: list[str]) -> None:
    """A list will do."""
    assert ToolChoice("allowed", names).names == tuple(names)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "names", "wanted"),
    [
        ({"command": "ls -l"}, {"command"}, {"command": "ls -l"}),
        ({"command": "ls -l"}, {"commands"}, {"commands": ["ls -l"]}),
        ({"command": ["ls", "a file"]}, {"commands"}, {"commands": ["ls 'a file'"]}),
        ({"command": ["ls", 3]}, {"command"}, {"command": ["ls", 3]}),
        ({"commands": ["cd a", "ls"]}, {"command"}, {"command": "cd a\nls"}),
    ],
)
def test_a_shell_is_given_commands_as_its_function_has_them(
    given: dict[str, Any], names: set[str], wanted: dict[str, Any]
) -> None:
    """One text or a list; what is neither stays as it is."""
    found = Shell().arguments_for(given, names)
    assert {name: found[name] for name in names} == wanted
