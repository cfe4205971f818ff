"""Each rule finds its violations, with their paths, and accepts valid bodies."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman
from dragoman.wire.gemini.dialect import TARGET
from dragoman.wire.gemini.rules import RULEBOOK
from dragoman.wire.gemini.settings import SETTINGS
from tests.wire.rulebook import Book, Row

pytestmark = pytest.mark.whole

PICKY = TARGET.with_flags(
    {
        "turns.prefill": "refused",
        "thinking.signs_calls": True,
        "media.in_results": False,
        "schemas.refuses_json_with_tools": True,
        "tools.refuses_mixed": True,
    }
)
SIGNED = {"thoughtSignature": "c2ln"}


def _content(role: Any, *parts: Any) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


def _user(*parts: Any) -> dict[str, Any]:
    return _content("user", *parts)


def _model(*parts: Any) -> dict[str, Any]:
    return _content("model", *parts)


def _text(text: str = "hi") -> dict[str, Any]:
    return {"text": text}


USER, MODEL = _user(_text()), _model(_text())


def _said(*contents: Any, **fields: Any) -> dict[str, Any]:
    return {"contents": [USER, *contents], **fields}


def _call(name: Any = "f", **fields: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {}, **fields}, **SIGNED}


def _unsigned(name: str = "f") -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {}}}


def _response(name: Any = "f", response: Any = None, **fields: Any) -> dict[str, Any]:
    said = {"output": "ok"} if response is None else response
    return {"functionResponse": {"name": name, "response": said, **fields}}


def _loop(call: dict[str, Any], response: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return _said(_model(call), _user(response), **fields)


def _tools(*declarations: Any, **others: Any) -> list[dict[str, Any]]:
    return [{"functionDeclarations": list(declarations)}, *({k: v} for k, v in others.items())]


def _declared(schema: Any, key: str = "parameters", **fields: Any) -> dict[str, Any]:
    return _said(tools=_tools({"name": "f", key: schema, **fields}))


def _property(schema: Any, name: str = "a") -> dict[str, Any]:
    return _declared({"type": "OBJECT", "properties": {name: schema}})


def _config(**fields: Any) -> dict[str, Any]:
    return _said(generationConfig=fields)


def _calling(*declarations: str, **fields: Any) -> dict[str, Any]:
    tools = _tools(*({"name": name} for name in declarations))
    return _said(tools=tools, toolConfig={"functionCallingConfig": fields})


BLOB = {"inlineData": {"mimeType": "image/png", "data": "AA==", "displayName": "a"}}
DECLARATION = "tools[0].functionDeclarations[0]"

# Rule: invalid body, expected paths, valid body.
ROWS: dict[str, list[Row]] = {
    "shape_model_is_listed": [(_said(), "model", {**_said(), "model": "m"})],
    "shape_fields": [
        (_config(temperature=[1]), "generationConfig.temperature", _config(temperature="0.5")),
        (_config(thinking_config=5), "generationConfig.thinking_config", _config(stopSequences=[])),
        (_config(maxOutputTokens={}), "generationConfig.maxOutputTokens", _config(topK="40")),
        (_config(candidateCount=1.5), "generationConfig.candidateCount", _config(topK=40.0)),
    ],
    "shape_contents": [
        ({"contents": "hi"}, "contents", _said()),
        (_said(5), "contents[1]", _said(MODEL, USER)),
        (_said(_user("hi")), "contents[1].parts", _said(USER)),
    ],
    "shape_temperature": [
        (_config(temperature=1000.0), "generationConfig.temperature", _config(temperature=2)),
        (
            _said(generation_config={"temperature": "1"}),
            "generation_config.temperature",
            _config(temperature=None),
        ),
    ],
    "shape_thinking": [
        (
            _config(thinkingConfig={"thinkingBudget": 5, "thinkingLevel": "LOW"}),
            "generationConfig.thinkingConfig",
            _config(thinkingConfig={"thinkingBudget": 5, "thinkingLevel": None}),
        ),
        (
            _config(thinking_config={"thinking_budget": 5, "thinking_level": "LOW"}),
            "generationConfig.thinking_config",
            _config(thinking_config={"thinking_level": "LOW"}),
        ),
    ],
    "w75_there_are_contents": [
        ({"systemInstruction": {"parts": [_text()]}}, "contents", _said()),
        ({"contents": []}, "contents", {"contents": USER}),
    ],
    "w75_roles_are_known": [
        (_said(_content("system", _text())), "contents[1].role", _said({"parts": [_text()]})),
        (_said(_content({}, _text())), "contents[1].role", _said(_content("function", _text()))),
    ],
    "w76_contents_have_parts": [
        (_said(_user()), "contents[1].parts", _said(_user(_text("")))),
        (_said({"role": "user"}), "contents[1].parts", _said({"role": "user", "parts": _text()})),
    ],
    "w76_parts_have_one_field": [
        (_said(_user({})), "contents[1].parts[0]", _said(_user(SIGNED))),
        (_said(_user({"text": None})), "contents[1].parts[0]", _said(_user(_text("")))),
        (
            _said(_user({**_text(), "inline_data": {}})),
            "contents[1].parts[0]",
            _said(_user({**_text(), "inline_data": None, "video_metadata": {}})),
        ),
    ],
    "w76_texts_are_not_empty": [
        (_said(_user(_text(""), _text())), "contents[1].parts[0]", _said(_user(_text(" ")))),
        (
            _loop({"text": ""}, _call()),
            "contents[1].parts[0]",
            _loop({"text": "", "thoughtSignature": "aGk="}, _call()),
        ),
    ],
    "w77_no_call_comes_first": [
        (
            {"contents": [_model(_call()), _user(_response())]},
            "contents[0].parts[0]",
            _loop(_call(), _response()),
        ),
    ],
    "w78_responses_follow_calls": [
        (_said(_user(_response())), "contents[1].parts[0]", _loop(_call(), _response())),
        (
            _said(_model(_call()), USER, MODEL, _user(_response())),
            "contents[4].parts[0]",
            _said(_model(_call()), USER, _user(_response())),
        ),
        (
            _said(_user(_response())),
            "contents[1].parts[0]",
            {**_said(_user(_response())), "cachedContent": "cachedContents/1"},
        ),
    ],
    "w78_calls_are_answered": [
        (
            _said(_model(_call(), _call()), _user(_response())),
            "contents[1].parts[0]",
            _said(_model(_call(), _call()), _user(_response()), _user(_response())),
        ),
        (
            _said(_model(_call()), _model(_call()), _user(_response())),
            "contents[1].parts[0]",
            _said(_model(_call()), _model(_call()), _user(_response(), _response())),
        ),
    ],
    "w78_calls_should_be_answered": [
        (_loop(_call(), _text()), "contents[1].parts[0]", _loop(_call(), _response())),
        (_said(_model(_call())), "contents[1].parts[0]", _loop(_call(), _response())),
    ],
    "w79_the_user_speaks_last": [(_said(MODEL), "contents[1]", _said(MODEL, USER))],
    "w79_the_user_should_speak_last": [(_said(MODEL), "contents[1]", _said(MODEL, USER))],
    "w80_arguments_are_an_object": [
        (
            _loop(_call(args="{}"), _response()),
            "contents[1].parts[0].functionCall.args",
            _loop(_call(args=None), _response()),
        ),
    ],
    "w81_calls_and_responses_have_names": [
        (
            _loop(_call(), _response("")),
            "contents[2].parts[0].functionResponse.name",
            _loop(_call(), _response()),
        ),
        (
            _loop({"function_call": {"args": {}}, **SIGNED}, _response()),
            "contents[1].parts[0].function_call.name",
            _loop({"function_call": {"name": "f"}, **SIGNED}, _response()),
        ),
    ],
    "w81_ids_are_echoed": [
        (
            _loop(_call(id="a"), _response(id="b")),
            "contents[2].parts[0].functionResponse.id",
            _loop(_call(id="a"), _response(id="a")),
        ),
    ],
    "w82_responses_are_objects": [
        (
            _loop(_call(), _response(response=[])),
            "contents[2].parts[0].functionResponse.response",
            _loop(_call(), _response(response={"result": []})),
        ),
    ],
    "w83_calls_are_signed": [
        (
            _loop(_unsigned(), _response()),
            "contents[1].parts[0]",
            _said(_model(_unsigned()), _user(_response()), USER),
        ),
        (
            _said(_model(_call()), _user(_response()), _model(_unsigned()), _user(_response())),
            "contents[3].parts[0]",
            _said(_model(_call(), _unsigned()), _user(_response(), _response())),
        ),
    ],
    "w86_signatures_are_base64": [
        (
            _said(_model({**_text(), "thought_signature": "no!"}), USER),
            "contents[1].parts[0].thought_signature",
            _said(_model({**_text(), "thoughtSignature": "a-_+/b=="}), USER),
        ),
    ],
    "w89_names_are_plain": [
        (
            _said(tools=_tools({"name": "a b"})),
            f"{DECLARATION}.name",
            _said(tools=_tools({"name": "_a.b:c-9"})),
        ),
        (
            _loop(_call("9"), _response()),
            "contents[1].parts[0].functionCall.name",
            _loop(_call("n" * 128), _response("n" * 128)),
        ),
    ],
    "w89_parameters_have_plain_names": [
        (_property({"type": "STRING"}, "a-b"), f"{DECLARATION}.parameters", _property({})),
        (
            _declared({"properties": {"": {}}}, "parameters_json_schema"),
            f"{DECLARATION}.parameters_json_schema",
            _declared({"properties": {"a_b": {}}}, "parameters_json_schema"),
        ),
    ],
    "w90_keywords_are_known": [
        (
            _property({"type": "STRING", "const": "a"}),
            f"{DECLARATION}.parameters",
            _property({"type": "STRING", "min_length": 1, "nullable": True}),
        ),
        (
            _property({"any_of": [{"oneOf": []}]}),
            f"{DECLARATION}.parameters",
            _declared({"oneOf": []}, "parametersJsonSchema"),
        ),
        (
            _config(responseSchema={"$schema": "x"}),
            "generationConfig.responseSchema",
            _config(responseJsonSchema={"$schema": "x"}),
        ),
    ],
    "w91_types_are_single": [
        (
            _property({"type": ["STRING", "NULL"]}),
            f"{DECLARATION}.parameters",
            _property({"type": "STRING", "nullable": True}),
        ),
    ],
    "w92_any_of_stands_alone": [
        (
            _property({"anyOf": [{"type": "STRING"}], "description": "d"}),
            f"{DECLARATION}.parameters",
            _property({"anyOf": [{"type": "STRING", "description": "d"}]}),
        ),
    ],
    "w93_references_stand_alone": [
        (
            _property({"$ref": "#/$defs/a", "type": "STRING"}),
            f"{DECLARATION}.parameters",
            _property({"$ref": "#/$defs/a", "description": "d"}),
        ),
    ],
    "w93_there_is_one_schema": [
        (
            _declared({"type": "OBJECT"}, parametersJsonSchema={"type": "object"}),
            DECLARATION,
            _declared({"type": "OBJECT"}, parametersJsonSchema=None),
        ),
    ],
    "w94_enums_hold_strings": [
        (
            _property({"type": "INTEGER", "enum": [1]}),
            f"{DECLARATION}.parameters",
            _property({"type": "STRING", "enum": ["1"]}),
        ),
        (_property({"enum": [""]}), f"{DECLARATION}.parameters", _property({"enum": []})),
    ],
    "w94_arrays_have_items": [
        (
            _property({"type": "array"}),
            f"{DECLARATION}.parameters",
            _property({"type": "ARRAY", "items": {"type": "STRING"}}),
        ),
    ],
    "w95_responses_hold_no_references": [
        (
            _loop(_call(), _response(response={"schema": [{"$ref": "#/$defs/a"}]})),
            "contents[2].parts[0].functionResponse.response",
            _loop(_call(), _response(response={"schema": '{"$ref": "#/$defs/a"}'})),
        ),
    ],
    "w96_responses_hold_no_media": [
        (
            _loop(_call(), _response(parts=[BLOB])),
            "contents[2].parts[0].functionResponse.parts",
            _loop(_call(), _response(parts=[])),
        ),
    ],
    "w97_json_or_tools": [
        (
            _said(tools=_tools({"name": "f"}),
                  generation_config={"response_mime_type": "application/json"}),
            "generation_config.response_mime_type",
            _config(responseMimeType="application/json"),
        ),
    ],
    "w97_functions_or_server_tools": [
        (
            _said(tools=_tools({"name": "f"}, googleSearch={})),
            "tools[1]",
            _said(tools=[{"googleSearch": {}, "functionDeclarations": None}]),
        ),
    ],
    "w99_modes_are_known": [
        (
            _calling("f", mode="REQUIRED"),
            "toolConfig.functionCallingConfig.mode",
            _calling("f", mode="any"),
        ),
    ],
    "w99_names_go_with_their_modes": [
        (
            _calling("f", mode="AUTO", allowedFunctionNames=["f"]),
            "toolConfig.functionCallingConfig.allowedFunctionNames",
            _calling("f", mode="VALIDATED", allowedFunctionNames=["f"]),
        ),
        (
            _calling("f", mode="ANY", allowed_function_names=["g"]),
            "toolConfig.functionCallingConfig.allowed_function_names",
            _calling("f", mode="AUTO", allowed_function_names=[]),
        ),
    ],
    "w99_choices_need_functions": [
        (
            _said(tool_config={"function_calling_config": {"mode": "AUTO"}}),
            "tool_config.function_calling_config",
            _said(tool_config={"include_server_side_tool_invocations": True}),
        ),
    ],
}  # fmt: skip
UNLISTED = dragoman.provider("google").target("gemini-3.6-flahs")
BOOK = Book(
    "gemini",
    ROWS,
    PICKY,
    {"w79_the_user_should_speak_last": TARGET, "shape_model_is_listed": UNLISTED},
)
NEEDS_TARGET = (
    "w83_calls_are_signed",
    "w96_responses_hold_no_media",
    "w97_json_or_tools",
    "w97_functions_or_server_tools",
)


@pytest.mark.parametrize("name", NEEDS_TARGET)
def test_restrictions_of_some_models_need_a_target(name: str) -> None:
    """Without a target, restrictions of single models aren't errors."""
    for wrong, _, _ in ROWS[name]:
        assert [v for v in RULEBOOK.check(wrong) if v.severity == "error"] == []


def test_prefill_is_a_violation_only_for_some_targets() -> None:
    """A final model content is accepted if the target allows prefill (W79)."""
    assert [violation.rule for violation in RULEBOOK.check(_said(MODEL))] == ["W79"]
    assert RULEBOOK.check(_said(MODEL), target=TARGET.with_flags({"turns.prefill": "free"})) == []


def test_references_to_media_of_the_same_response_are_accepted() -> None:
    """On Vertex AI a response refers to its media by name (W95, W96)."""
    body = _loop(_call(), _response(response={"image": {"$ref": "a"}}, parts=[BLOB]))
    assert RULEBOOK.check(body) == []
    strange = _loop(_call(), _response(response={"image": {"$ref": {}}}, parts=[BLOB]))
    assert [violation.rule for violation in RULEBOOK.check(strange)] == ["W95"]


def test_both_spellings_are_checked() -> None:
    """Violations are found in snake_case as in camelCase."""
    body = _said(
        _model({"function_call": {"name": "9", "args": 5}}), _user({"function_response": {}})
    )
    assert {violation.rule for violation in RULEBOOK.check(body)} == {"W80", "W81", "W82", "W89"}


def test_rows_say_what_their_values_are() -> None:
    """The message about a value of another type names the type that it should have."""
    assert all(row.value.about for row in SETTINGS.rows)
