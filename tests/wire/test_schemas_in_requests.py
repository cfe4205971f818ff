"""Schemas in requests: the target accepts the request, whatever a tool or output asks for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

import dragoman
from dragoman import Encoded, Message, Request, ToolDefinition
from dragoman.model.parts import Origin
from dragoman.model.requests import Output
from dragoman.model.tools import make_definition
from dragoman.wire.schemas import OPENAI_STRICT, projected
from tests.corpus import Corpus
from tests.wire.schemas.acceptance import refusals
from tests.wire.schemas.samples import of_types, recorded
from tests.wire.schemas.strategies import roots

ELSEWHERE = Origin(dialect="elsewhere")
HI = (Message.user("Hi"),)
NAMES = dragoman.dialects()
OLD_GEMINI = dragoman.dialect("gemini").target.with_flags({"schemas.takes_json_schema": False})
PROFILES = {
    ("anthropic", True): "anthropic-strict",
    ("anthropic", False): "anthropic",
    ("openai-chat", True): "openai-strict",
    ("openai-chat", False): "openai",
    ("openai-responses", True): "openai-strict",
    ("openai-responses", False): "openai",
    ("gemini", False): "gemini-json-schema",
    ("ollama", False): "ollama",
}
OUTPUT_PROFILES = PROFILES | {("gemini", False): "gemini-output", ("ollama", False): "plain"}
HAND_MADE: dict[str, Any] = {
    "nothing": {"type": "object"},
    "optional": {"type": "object", "properties": {"a": {"type": "integer", "default": 3}}},
    "free names": {"type": "object", "additionalProperties": {"type": "string"}},
    "anything": {"type": "object", "properties": {"a": {}, "b": True}},
    "forms": {
        "type": "object",
        "oneOf": [
            {"properties": {"by": {"const": "id"}, "id": {"type": "integer"}}, "required": ["by"]},
            {"properties": {"by": {"const": "name"}, "name": {"type": "string"}}},
        ],
    },
    "all of": {"allOf": [{"properties": {"a": {"type": "string"}}}, {"required": ["a"]}]},
    "tuple": {
        "type": "object",
        "properties": {"at": {"type": "array", "prefixItems": [{"type": "number"}] * 2}},
    },
    "circle": {
        "type": "object",
        "properties": {"next": {"$ref": "#"}, "all": {"type": "array", "items": {"$ref": "#"}}},
    },
    "old dialect": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "definitions": {"P": {"type": "array", "items": [{"type": "string"}]}},
        "properties": {"p": {"$ref": "#/definitions/P"}, "q": {"exclusiveMinimum": 0}},
    },
    "gemini's": {
        "type": "OBJECT",
        "properties": {"a": {"type": "STRING", "nullable": True}, "b": {"type": "ARRAY"}},
    },
    "literals": {
        "type": "object",
        "properties": {"n": {"enum": [1, 2]}, "e": {"enum": ["", "x", None]}, "c": {"const": {}}},
    },
    "words": {
        "type": "object",
        "properties": {
            "s": {"type": "string", "minLength": 1, "pattern": "^(?=a)", "format": "uri"},
            "u": {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 3},
            "p": {"type": "object", "patternProperties": {"^x": {"type": "integer"}}},
        },
        "if": {"required": ["s"]},
        "then": {"required": ["u"]},
    },
}  # fmt: skip
SCHEMAS = HAND_MADE | {kind: json.loads(json.dumps(schema)) for kind, schema in of_types()}


def encoded(name: str, **fields: Any) -> Encoded:
    """A request for the vendor's own deployment."""
    speaker = dragoman.dialect(name)
    target = fields.pop("target", None)
    made = speaker.encode_request(Request(model="m", messages=HI, **fields), target)
    found = speaker.check(json.loads(made.to_bytes()), target=target)
    assert [each for each in found if each.severity == "error"] == []
    return made


def tool(schema: Any, name: str = "f", *, strict: bool | None = None) -> ToolDefinition:
    """A tool of another origin: its schema may be anything."""
    return make_definition(name, "F.", schema, strict, origin=ELSEWHERE)


def sent(name: str, body: Any) -> list[tuple[Any, bool]]:
    """The schemas of a body's tools, and whether each is strict."""
    tools = body.get("tools", [])
    if name == "anthropic":
        return [(each["input_schema"], each.get("strict", False)) for each in tools]
    if name == "gemini":
        found = tools[0]["functionDeclarations"]
        return [(each["parametersJsonSchema"], False) for each in found]
    functions = tools if name == "openai-responses" else [each["function"] for each in tools]
    return [(each["parameters"], each.get("strict", False)) for each in functions]


@pytest.mark.parametrize("strict", [True, False, None])
@pytest.mark.parametrize("kind", sorted(SCHEMAS))
@pytest.mark.parametrize("name", NAMES)
def test_tools_are_acceptable(name: str, kind: str, strict: bool | None) -> None:
    """A tool of another origin is acceptable to an independent check of the vendor's rules."""
    made = encoded(name, tools=(tool(SCHEMAS[kind], strict=strict),))
    ((schema, is_strict),) = sent(name, json.loads(made.to_bytes()))
    assert refusals(schema, PROFILES[name, is_strict]) == []
    if strict is True and not is_strict and name != "gemini":
        assert "tools[0].strict" in [loss.path for loss in made.losses]
    if strict is not True:
        assert not is_strict


@pytest.mark.parametrize("name", NAMES)
def test_recorded_tools_are_acceptable(corpus: Corpus, name: str) -> None:
    """All recorded tools, including those of MCP servers, in requests of many."""
    found = [one.schema for one in recorded(corpus)]
    assert len(found) > 50
    for strict in (True, None):
        for start in range(0, len(found), 40):
            tools = [
                tool(each, f"f{i}", strict=strict) for i, each in enumerate(found[start:][:40])
            ]
            made = encoded(name, tools=tuple(tools))
            for schema, is_strict in sent(name, json.loads(made.to_bytes())):
                assert refusals(schema, PROFILES[name, is_strict]) == []


def answer_schema(name: str, body: Any) -> tuple[Any, bool]:
    """The schema of the answer in a body, and whether it is strict."""
    if name == "anthropic":
        return body["output_config"]["format"]["schema"], True
    if name == "gemini":
        return body["generationConfig"]["responseJsonSchema"], False
    if name == "ollama":
        return body["format"], False
    is_chat = name == "openai-chat"
    form = body["response_format"]["json_schema"] if is_chat else body["text"]["format"]
    return form["schema"], form.get("strict", False)


@pytest.mark.parametrize("strict", [True, None])
@pytest.mark.parametrize("kind", sorted(SCHEMAS))
@pytest.mark.parametrize("name", NAMES)
def test_outputs_are_acceptable(name: str, kind: str, strict: bool | None) -> None:
    """Response formats of any type are acceptable, too."""
    schema = SCHEMAS[kind]
    output = Output(format="schema", schema=schema, strict=strict)
    body = json.loads(encoded(name, output=output).to_bytes())
    found, is_strict = answer_schema(name, body)
    assert refusals(found, OUTPUT_PROFILES[name, is_strict]) == []


@pytest.mark.parametrize("kind", sorted(SCHEMAS))
def test_older_geminis_get_openapi_schemas(kind: str) -> None:
    """Models without JSON Schema support get OpenAPI schemas (W90 to W94)."""
    output = Output(format="schema", schema=SCHEMAS[kind])
    made = encoded("gemini", tools=(tool(SCHEMAS[kind]),), output=output, target=OLD_GEMINI)
    body = json.loads(made.to_bytes())
    (declaration,) = body["tools"][0]["functionDeclarations"]
    assert "parametersJsonSchema" not in declaration
    if "parameters" in declaration:
        assert declaration["parameters"]["type"] == "OBJECT"
        assert declaration["parameters"]["properties"]
    assert body["generationConfig"]["responseSchema"]["type"] == "OBJECT"


def test_a_family_of_older_geminis() -> None:
    """Models before the JSON Schema fields are detected by name."""
    made = dragoman.translate(
        {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "tools": [
            {"type": "function", "function": {"name": "f", "parameters": HAND_MADE["optional"]}}]},
        source="openai-chat", target="google:gemini-1.5-pro",
    )  # fmt: skip
    (declaration,) = made.body["tools"][0]["functionDeclarations"]
    assert declaration["parameters"]["properties"]["a"]["type"] == "INTEGER"


@pytest.mark.parametrize("name", ["openai-chat", "openai-responses", "anthropic", "gemini"])
@given(schema=roots())
def test_any_schema_is_acceptable(name: str, schema: dict[str, Any]) -> None:
    """For any schema, the request is acceptable, and as strict as possible."""
    output = Output(format="schema", schema=schema, strict=True)
    try:
        encoded(name, tools=(tool(schema, strict=True), tool(schema, "g")), output=output)
    except dragoman.errors.InvalidInputError:
        assert schema  # it grows too large, or nests too deeply


# --- unchanged schemas

ODD = {
    "type": ["object"],
    "anyOf": [{"required": ["a"]}, {"patternProperties": {"^b": False}}],
    "properties": {"a": {"type": "string", "default": "x", "x-odd": [None]}},
}
OWN: dict[str, dict[str, Any]] = {
    "openai-chat": {
        "tools": [
            {"type": "function", "function": {"name": "f", "strict": True, "parameters": ODD}}
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "n", "strict": True, "schema": ODD},
        },
    },
    "openai-responses": {
        "tools": [{"type": "function", "name": "f", "parameters": ODD, "strict": True}],
        "text": {"format": {"type": "json_schema", "name": "n", "strict": True, "schema": ODD}},
    },
    "anthropic": {
        "max_tokens": 9,
        "tools": [{"name": "f", "input_schema": ODD, "strict": True}],
        "output_config": {"format": {"type": "json_schema", "schema": ODD}},
    },
    "gemini": {
        "tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": ODD}]}],
        "generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": ODD},
    },
    "ollama": {
        "stream": False,
        "tools": [{"type": "function", "function": {"name": "f", "parameters": ODD}}],
        "format": ODD,
    },
}


@pytest.mark.parametrize("name", NAMES)
def test_a_dialect_s_own_schemas_are_unchanged(name: str) -> None:
    """Schemas round-trip in their dialect, and answers need no restoring."""
    speaker = dragoman.dialect(name)
    messages: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}]}
    if name == "gemini":
        messages = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
    if name == "openai-responses":
        messages = {"input": [{"role": "user", "content": "Hi"}]}
    body = messages | OWN[name] | ({} if name == "gemini" else {"model": "m"})
    made = speaker.encode_request(speaker.decode_request(body))
    assert json.loads(made.to_bytes()) == body
    assert made.losses == ()
    assert made.context.is_idle


@pytest.mark.parametrize("name", ["vllm", "llama.cpp", "lmstudio", "openrouter"])
def test_hosts_that_accept_any_schema(name: str) -> None:
    """Their schemas are sent unchanged, and answers need no restoring."""
    schema = HAND_MADE["optional"]
    output = Output(format="schema", schema=ODD, strict=True)
    for dialect in ("openai-chat", "openai-responses"):
        target = dragoman.provider(name).target("m", dialect)
        made = encoded(dialect, tools=(tool(schema, strict=True),), output=output, target=target)
        assert sent(dialect, made.body) == [(schema, True)]
        assert answer_schema(dialect, made.body) == (ODD, True)
        assert made.context.is_idle


# --- details


@pytest.mark.parametrize("name", ["openai-chat", "openai-responses"])
def test_strict_is_sent_if_possible(name: str) -> None:
    """Responses defaults to strict, so `false` is sent explicitly (W14, W16)."""
    tools = (
        tool(HAND_MADE["optional"], "a", strict=True),
        tool(HAND_MADE["free names"], "b", strict=True),
        tool(HAND_MADE["optional"], "c"),
    )
    made = encoded(name, tools=tools)
    functions = [each.get("function", each) for each in made.body["tools"]]
    silence = False if name == "openai-responses" else None
    assert [each.get("strict") for each in functions] == [True, silence, silence]
    assert functions[0]["parameters"]["required"] == ["a"]
    assert functions[1]["parameters"] == HAND_MADE["free names"]
    assert functions[2]["parameters"] == HAND_MADE["optional"]
    assert [loss.path for loss in made.losses] == ["tools[1].strict"]
    assert set(made.context.undos) == {"a"}


def test_losses_have_a_path() -> None:
    """A loss in a schema starts with the path of its tool, and quotes nothing."""
    schema = {"type": "object", "properties": {"secret": {"type": "string", "minLength": 3}},
              "required": ["secret"], "additionalProperties": False}  # fmt: skip
    made = encoded("openai-chat", tools=(tool(schema, strict=True),))
    (loss,) = made.losses
    assert loss.path == "tools[0].parameters.properties[0]"
    assert "secret" not in repr(made.losses)


def numbered(count: int, schema: Any) -> tuple[ToolDefinition, ...]:
    """Several strict tools."""
    return tuple(tool(schema, f"f{i}", strict=True) for i in range(count))


def of(count: int, inner: Any, *, required: bool = False) -> dict[str, Any]:
    """A schema with several properties."""
    names = [f"p{i}" for i in range(count)]
    return {
        "type": "object",
        "properties": dict.fromkeys(names, inner),
        "required": names if required else [],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("schema", "count", "strict"),
    [
        (of(1, {"type": "string"}, required=True), 25, 20),
        (of(10, {"type": "string"}), 4, 2),
        (of(5, {"type": ["string", "null"]}, required=True), 5, 3),
        (of(5, {"anyOf": [{"type": "string"}, {"type": "integer"}]}, required=True), 5, 3),
    ],
)
def test_anthropic_s_limits_apply_to_all_strict_schemas(
    schema: dict[str, Any], count: int, strict: int
) -> None:
    """Beyond 20 tools, 24 optional properties or 16 unions, tools are sent non-strict."""
    made = encoded("anthropic", tools=numbered(count, schema))
    found = [is_strict for _, is_strict in sent("anthropic", made.body)]
    assert found == [True] * strict + [False] * (count - strict)
    lost = [loss.path for loss in made.losses]
    assert lost == [f"tools[{i}].strict" for i in range(strict, count)]


def test_anthropic_s_own_tools_and_outputs_count_first() -> None:
    """Schemas that are sent in any case use up the limits before other tools."""
    own = ToolDefinition("own", "O.", of(10, {"type": "string"}), strict=True,
                         origin=Origin(dialect="anthropic"))  # fmt: skip
    output = Output(format="schema", schema=of(10, {"type": "string"}))
    tools = (tool(of(5, {"type": "string"}), strict=True), own)
    made = encoded("anthropic", tools=tools, output=output)
    assert [is_strict for _, is_strict in sent("anthropic", made.body)] == [False, True]
    alone = encoded("anthropic", tools=tools)
    assert [is_strict for _, is_strict in sent("anthropic", alone.body)] == [True, True]


def test_an_output_beyond_anthropic_s_limits_is_a_loss() -> None:
    """There is no non-strict form, so the schema is left out with a loss."""
    output = Output(format="schema", schema=of(25, {"type": "string"}))
    made = encoded("anthropic", output=output)
    assert "output_config" not in made.body
    assert [loss.path for loss in made.losses] == ["output.schema"]
    assert made.context.is_idle


def test_earlier_calls_are_unchanged() -> None:
    """Providers don't validate earlier calls, so they keep their original arguments."""
    call = dragoman.ToolCall.create("c1", "f", {})
    history = (*HI, Message.assistant(call), Message.tool(dragoman.ToolResult("c1", "ok")))
    made = dragoman.dialect("openai-chat").encode_request(
        Request(messages=history, tools=(tool(HAND_MADE["optional"], strict=True),))
    )
    assert made.body["tools"][0]["function"]["parameters"]["required"] == ["a"]
    assert made.body["messages"][1]["tool_calls"][0]["function"]["arguments"] == "{}"
    assert made.losses == ()


def test_numeric_types_are_decoded() -> None:
    """Types given as numbers of Google's enum are decoded, and round-trip."""
    gemini = dragoman.dialect("gemini")
    schema = {"type": 6, "properties": {"a": {"type": 5, "items": {"type": 1, "nullable": True}},
                                        "b": {"anyOf": [{"type": 2}, {"type": 4}]}}}  # fmt: skip
    body = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
            "tools": [{"functionDeclarations": [{"name": "f", "parameters": schema}]}]}  # fmt: skip
    request = gemini.decode_request(body)
    (read,) = request.tools
    assert isinstance(read, ToolDefinition)
    assert read.parameters == {
        "type": "object",
        "properties": {
            "a": {"type": "array", "items": {"type": ["string", "null"]}},
            "b": {"anyOf": [{"type": "number"}, {"type": "boolean"}]},
        },
    }
    assert gemini.encode_request(request).body == body
    made = dragoman.dialect("openai-chat").encode_request(request)
    assert made.body["tools"][0]["function"]["parameters"] == read.parameters


@pytest.mark.parametrize("kind", [True, 9, 0, 6.0])
def test_invalid_numeric_types_round_trip(kind: Any) -> None:
    """Numbers that are not in the enum are unchanged."""
    gemini = dragoman.dialect("gemini")
    body = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}], "tools": [
        {"functionDeclarations": [{"name": "f", "parameters": {"type": kind}}]}]}  # fmt: skip
    again = gemini.encode_request(gemini.decode_request(body)).body
    assert json.dumps(again) == json.dumps(body)


def test_the_same_tools_are_compiled_once() -> None:
    """Compiled schemas are cached by identity and by content."""
    made = tool(SCHEMAS["Zoo"], strict=True).parameters
    assert made is not None
    assert projected(made, OPENAI_STRICT) is projected(made, OPENAI_STRICT)
    assert projected(json.loads(json.dumps(made)), OPENAI_STRICT) is projected(made, OPENAI_STRICT)
