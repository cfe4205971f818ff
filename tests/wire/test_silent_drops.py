"""Everything a caller wrote is on the wire, or a loss or repair names it: no silent drops.

Each value is a unique word, so that it can be searched for.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import dragoman
from dragoman import Message, Request, Text, ToolCall, ToolDefinition, ToolResult
from dragoman.model.media import Image
from dragoman.model.messages import make_message
from dragoman.model.parts import Citation, Origin
from dragoman.model.requests import Output
from dragoman.model.responses import Choice, Response
from dragoman.model.roles import Role
from dragoman.model.tools import ServerTool, ToolChoice
from dragoman.wire.encoded import Encoded

pytestmark = pytest.mark.whole

_TOOL = ToolDefinition("f", "Does it.", {"type": "object", "properties": {}})


def _is_told(path: str, encoded: Encoded) -> bool:
    """Whether a loss or repair is at a path, above it, or below it."""
    notes = [*(loss.path for loss in encoded.losses), *(each.path for each in encoded.repairs)]
    return any(
        re.match(rf"{re.escape(short)}($|[.\[])", long) is not None
        for note in notes
        for short, long in [(note, path), (path, note)]
    )


def _silent(words: dict[str, str], encoded: Encoded) -> list[str]:
    """The words that are neither in the body nor reported at their paths."""
    body = json.dumps(encoded.body)
    return [
        word for word, path in words.items() if word not in body and not _is_told(path, encoded)
    ]


def _cited(word: str, **fields: Any) -> Text:
    return Text("Said.", (Citation(quote=f"quote {word}", title=f"title {word}", **fields),))


_PLACES = {
    "outside": "system[0]",
    "system": "messages[0].parts[0]",
    "user": "messages[1].parts[0]",
    "assistant": "messages[2].parts[0]",
    "result": "messages[3].parts[0].content[0]",
}


@pytest.mark.parametrize("target", dragoman.dialects())
@pytest.mark.parametrize("url", [None, "https://example.org"])
@pytest.mark.parametrize(
    "kind", ["char_location", "web_search_result_location", "url_citation", "odd"]
)
def test_citations_are_never_dropped_silently(kind: str, url: str | None, target: str) -> None:
    """Citations of any kind, in instructions, user, model and tool messages."""
    extras: Any = {"elsewhere": {"seal": "sealed away"}}
    said = {
        place: _cited(place, kind=kind, url=url, extras=extras if place == "user" else {})
        for place in _PLACES
    }
    request = Request(
        model="m",
        system=(said["outside"],),
        messages=(
            Message(Role.SYSTEM, (said["system"],)),
            Message.user(said["user"]),
            Message(Role.ASSISTANT, (said["assistant"], ToolCall("c1", "f", {}))),
            Message(Role.TOOL, (ToolResult("c1", (said["result"],)),)),
        ),
        tools=(_TOOL,),
    )
    words = {
        f"{word} {place}": f"{path}.citations"
        for place, path in _PLACES.items()
        for word in ("quote", "title")
    }
    words["sealed away"] = "messages[1].parts[0].citations"
    assert _silent(words, dragoman.dialect(target).encode_request(request)) == []


@pytest.mark.parametrize("target", dragoman.dialects())
@pytest.mark.parametrize("role", [Role.SYSTEM, Role.DEVELOPER, Role.USER, Role.ASSISTANT])
def test_names_of_speakers_are_never_dropped_silently(role: Role, target: str) -> None:
    """Names are sent or reported, also where the message becomes instructions."""
    messages = (Message(role, (Text("Hi."),), name="Somebody"), Message.user("Go on."))
    encoded = dragoman.dialect(target).encode_request(Request(model="m", messages=messages))
    assert _silent({"Somebody": "messages[0].name"}, encoded) == []


def test_names_of_joined_instructions_are_reported() -> None:
    """If instructions are joined into one message, their names are reported."""
    speaker = dragoman.dialect("openai-chat")
    messages = tuple(Message(Role.SYSTEM, (Text("Hi."),), name=f"who{i}") for i in range(2))
    request = Request(model="m", messages=(*messages, Message.user("Go on.")))
    encoded = speaker.encode_request(
        request, speaker.target.with_flags({"turns.system_place": "first"})
    )
    words = {f"who{i}": f"messages[{i}].name" for i in range(2)}
    assert _silent(words, encoded) == []


_SCHEMA: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}},
                           "required": ["n"], "additionalProperties": False}  # fmt: skip
_HELD: dict[str, Any] = {
    "plain": _SCHEMA,
    "labelled": {**_SCHEMA, "title": "Other", "description": "Something else."},
    "same": {**_SCHEMA, "title": "TheName", "description": "The purpose."},
    "reference": {"$ref": "#/$defs/Answer", "$defs": {"Answer": _SCHEMA}},
    "alternatives": {"anyOf": [_SCHEMA, {"type": "string"}]},
    "recursive": {"$ref": "#/$defs/A", "$defs": {"A": {
        "type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}}}},
}  # fmt: skip


@pytest.mark.parametrize("target", dragoman.dialects())
@pytest.mark.parametrize("kind", _HELD)
def test_labels_of_the_answer_are_never_dropped_silently(kind: str, target: str) -> None:
    """A name and a description are in the body, possibly in the schema, or reported."""
    output = Output(format="schema", schema=_HELD[kind], name="TheName", description="The purpose.")
    request = Request(model="m", messages=(Message.user("Hi."),), output=output)
    encoded = dragoman.dialect(target).encode_request(request)
    words = {"TheName": "output.name", "The purpose.": "output.description"}
    assert _silent(words, encoded) == []


@pytest.mark.parametrize("target", dragoman.dialects())
def test_a_named_schema_has_no_losses(target: str) -> None:
    """OpenAI's usual response format, with name and description, is supported everywhere."""
    form = {"name": "TheName", "description": "The purpose.", "schema": _SCHEMA}
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi."}],
            "response_format": {"type": "json_schema", "json_schema": form}}  # fmt: skip
    encoded = dragoman.translate(body, source="openai-chat", target=target, strict=True)
    assert "TheName" in json.dumps(encoded.body)
    assert "The purpose." in json.dumps(encoded.body)


_LABELS = ["title", "$comment", "$id", "x-order", "propertyOrdering", "deprecated", "externalDocs"]


@pytest.mark.parametrize("target", dragoman.dialects())
@pytest.mark.parametrize("is_inside", [False, True])
@pytest.mark.parametrize("label", _LABELS)
@pytest.mark.parametrize("strict", [None, True])
def test_labels_in_schemas_are_never_dropped_silently(
    strict: bool | None, label: str, is_inside: bool, target: str
) -> None:
    """Annotation keywords that are left out are a repair, not a loss."""
    word = "a word" if label == "title" else ["a word"]  # other types are no titles
    inside: dict[str, Any] = {label: word} if is_inside else {}
    outside: dict[str, Any] = {} if is_inside else {label: word}
    speaker = dragoman.dialect(target)
    for ask, path in ((_with_tool, "tools[0].parameters"), (_with_output, "output.schema")):
        encoded = speaker.encode_request(ask(_object(inside, outside), strict))
        assert _silent({"a word": path}, encoded) == []
        assert encoded.losses == speaker.encode_request(ask(_object({}, {}), strict)).losses


def _object(inside: dict[str, Any], outside: dict[str, Any]) -> dict[str, Any]:
    properties = {"s": {"type": "string", **inside}}
    return {"type": "object", "properties": properties, "required": ["s"], **outside}


def _with_tool(schema: dict[str, Any], strict: bool | None) -> Request:
    tool = ToolDefinition("f", "Does it.", schema, strict=strict)
    return Request(model="m", messages=(Message.user("Hi."),), tools=(tool,))


def _with_output(schema: dict[str, Any], strict: bool | None) -> Request:
    output = Output(format="schema", schema=schema, strict=strict)
    return Request(model="m", messages=(Message.user("Hi."),), output=output)


def test_repairs_have_the_tools_original_index() -> None:
    """The index counts tools that were left out by a tool choice."""
    schema = {**_SCHEMA, "$comment": "a word"}
    tools = tuple(ToolDefinition(name, "Does it.", schema) for name in "ab")
    choice = ToolChoice("named", ("b",))
    request = Request(model="m", messages=(Message.user("Hi."),), tools=tools, tool_choice=choice)
    speaker = dragoman.dialect("ollama")
    encoded = speaker.encode_request(
        request, speaker.target.with_flags({"tools.choices": ("auto",)})
    )
    labels = [repair.path for repair in encoded.repairs if repair.rule == "I14"]
    assert labels == ["tools[1].parameters"]


@pytest.mark.parametrize("target", dragoman.dialects())
def test_fields_in_results_and_among_tools_are_reported(target: str) -> None:
    """Dialect-specific fields in tool results, and beside function declarations."""
    inner = Text("Said.", extras={"elsewhere": {"context": "a word"}})
    messages = (
        Message.user("Hi."),
        Message(Role.ASSISTANT, (ToolCall("c1", "f", {}),)),
        Message(Role.TOOL, (ToolResult("c1", (inner, Text("More."))),)),
    )
    request = Request(model="m", messages=messages, tools=(_TOOL,))
    encoded = dragoman.dialect(target).encode_request(request)
    assert _is_told("messages[2].parts[0].content[0].extras", encoded)
    body = {
        "contents": [{"role": "user", "parts": [{"text": "Hi."}]}],
        "tools": [{"functionDeclarations": [{"name": "f"}], "mcpServers": [{"name": "a word"}]}],
    }
    path = "/v1beta/models/m:generateContent"
    encoded = dragoman.translate(body, source="gemini", target=target, path=path)
    assert _silent({"a word": "tools[1]"}, encoded) == []


@pytest.mark.parametrize("target", dragoman.dialects())
def test_names_in_answers_are_reported(target: str) -> None:
    """Names of media, and of a result's tool if there is no call."""
    parts = (
        Image(data="iVBORw0KGgo=", mime="image/png", name="a picture"),
        ToolResult("c1", "Done.", tool_name="a_tool"),
    )
    message = make_message(Role.ASSISTANT, parts, origin=Origin(dialect="elsewhere"))
    response = Response(choices=(Choice(0, message),), model="m", id="r")
    encoded = dragoman.dialect(target).encode_response(response)
    place = "choices[0].message.parts"
    words = {"a picture": f"{place}[0].name", "a_tool": f"{place}[1].tool_name"}
    assert _silent(words, encoded) == []


@pytest.mark.parametrize("target", dragoman.dialects())
def test_no_empty_list_of_tools_is_sent(target: str) -> None:
    """If no tool can be sent, `tools` is left out."""
    tool = ServerTool("odd", "elsewhere", {})
    request = Request(model="m", messages=(Message.user("Hi."),), tools=(tool,))
    encoded = dragoman.dialect(target).encode_request(request)
    assert "tools" not in encoded.body
    assert _is_told("tools[0]", encoded)


@pytest.mark.parametrize("target", ["anthropic", "gemini", "ollama", "openai-chat"])
def test_tools_that_come_to_nothing_are_reported(target: str) -> None:
    """A group without tools, declared or added later, and a removed tool that is not there."""
    group = {"type": "namespace", "name": "crm", "description": "Customers", "tools": []}
    added = {"type": "additional_tools", "role": "developer", "tools": [group]}
    body = {"model": "m", "tools": [group], "input": [{"role": "user", "content": "Hi"}, added]}
    encoded = dragoman.translate(body, source="openai-responses", target=target)
    assert {"tools[0]", "messages[1].parts[0]"} <= {loss.path for loss in encoded.losses}
    if target != "anthropic":
        removed = {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "gone"}}
        turns = [{"role": "user", "content": "Hi"}, {"role": "system", "content": [removed]}]
        wire = {"model": "m", "max_tokens": 9, "messages": turns}
        encoded = dragoman.translate(wire, source="anthropic", target=target)
        assert "messages[1].parts[0]" in {loss.path for loss in encoded.losses}
