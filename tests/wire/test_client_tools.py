"""Client-run tools between dialects: declared, called, answered, and restored in responses."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman import Front, Message, Request, Response, ToolCall, translate
from dragoman.model.events import Event
from dragoman.model.parts import Opaque
from dragoman.model.responses import Choice
from dragoman.model.tools import ToolDefinition
from dragoman.model.usage import FinishReason
from tests.corpus import Corpus
from tests.wire.recorded import bodies

RESPONSES = "openai-responses"
OTHERS = [name for name in dragoman.dialects() if name != RESPONSES]
TOOLS: dict[str, dict[str, Any]] = {
    "shell": {"type": "shell", "environment": {"type": "local"}},
    "local_shell": {"type": "local_shell"},
    "apply_patch": {"type": "apply_patch"},
    "computer": {"type": "computer"},
}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "shell": {"commands": ["ls"], "timeout_ms": 1000},
    "local_shell": {"command": ["ls", "-l"]},
    "apply_patch": {"type": "update_file", "path": "a", "diff": "@@\n-a\n+b\n"},
    "computer": {"actions": [{"type": "click", "x": 1, "y": 2, "button": "left"}]},
}
SAID = {
    "shell": {"action": ARGUMENTS["shell"]},
    "local_shell": {"action": {"type": "exec", "env": {}, **ARGUMENTS["local_shell"]}},
    "apply_patch": {"operation": ARGUMENTS["apply_patch"]},
    "computer": {**ARGUMENTS["computer"], "pending_safety_checks": []},
}
CRM: dict[str, Any] = {
    "type": "namespace",
    "name": "crm",
    "description": "Customers.",
    "tools": [
        {"type": "function", "name": "find", "description": "Find one.", "strict": False,
         "parameters": {"type": "object", "properties": {"id": {"type": "string"}}}},
        {"type": "function", "name": "list", "parameters": {"type": "object", "properties": {}},
         "strict": False},
    ],
}  # fmt: skip


def body(*tools: Any, items: Any = (), **fields: Any) -> dict[str, Any]:
    """A Responses request body."""
    hello = {"role": "user", "content": "Hi"}
    return {"model": "gpt-5", "input": [hello, *items], "tools": list(tools), **fields}


def declared(encoded: Any, to: str) -> list[str]:
    """The names of the functions that a request declares, in any dialect."""
    request = dragoman.dialect(to).decode_request(encoded.body, path=encoded.path)
    return [tool.name for tool in request.tools if isinstance(tool, ToolDefinition)]


def answered(to: str, encoded: Any, name: str, arguments: dict[str, Any]) -> Response:
    """Another model's answer with one call, decoded with the request's context."""
    call = ToolCall.create("call_9", "f", arguments).replace_unchecked(name=name)
    message = Message.assistant(tool_calls=(call,))
    response = Response(choices=(Choice(0, message, FinishReason.TOOL_CALLS),), model="m", id="r")
    wire = dragoman.dialect(to).encode_response(response).body
    return dragoman.dialect(to).decode_response(wire, encoded.context)


def streamed(to: str, encoded: Any, name: str, arguments: dict[str, Any]) -> list[Event]:
    """The same as a stream, decoded with the request's context."""
    from dragoman.model.events import (
        ChoiceFinish,
        PartDelta,
        PartStart,
        PartStop,
        ResponseEnd,
        ResponseStart,
    )

    text = json.dumps(arguments)
    half = len(text) // 2
    told: list[Event] = [
        ResponseStart(id="r", model="m"),
        PartStart(
            0, ToolCall.create("call_9", "f").replace_unchecked(name=name, raw="", input=None)
        ),
        PartDelta(0, text[:half]),
        PartDelta(0, text[half:]),
        PartStop(0),
        ChoiceFinish(FinishReason.TOOL_CALLS),
        ResponseEnd(),
    ]
    dialect = dragoman.dialect(to)
    encoder, decoder = dialect.stream_encoder(), dialect.stream_decoder(encoded.context)
    wire = b"".join(encoder.feed(event) for event in told) + encoder.close()
    return [*decoder.feed(wire), *decoder.close()]


def written(events: list[Event], request: Request) -> list[dict[str, Any]]:
    """The items of the stream that a Responses client gets."""
    encoder = Front(RESPONSES, request).stream()
    wire = b"".join(encoder.feed(event) for event in events) + encoder.close()
    frames = [json.loads(line[6:]) for line in wire.decode().splitlines() if line[:6] == "data: "]
    assert frames[-1]["type"] == "response.completed"
    done = [frame["item"] for frame in frames if frame["type"] == "response.output_item.done"]
    assert frames[-1]["response"]["output"] == done
    return done


def calls_in(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The calls without other content such as texts and sealed state."""
    return [item for item in items if item["type"] not in ("message", "reasoning")]


@pytest.mark.parametrize("to", OTHERS)
@pytest.mark.parametrize("name", sorted(TOOLS))
def test_a_client_tool_becomes_a_function_and_is_restored(to: str, name: str) -> None:
    """Any model can be offered it, and its call becomes the client's own item type again."""
    wire = body(TOOLS[name], tool_choice={"type": name})
    encoded = translate(wire, source=RESPONSES, target=to)
    assert declared(encoded, to) == [name]
    assert [loss for loss in encoded.losses if loss.path.startswith("tools")] == []
    request = dragoman.dialect(RESPONSES).decode_request(wire)
    response = answered(to, encoded, name, ARGUMENTS[name])
    [item] = calls_in(Front(RESPONSES, request).response(response).body["output"])
    call_id, item_id = item.pop("call_id"), item.pop("id")
    assert item == {"type": f"{name}_call", "status": "completed", **SAID[name]}
    events = streamed(to, encoded, name, ARGUMENTS[name])
    [told] = calls_in(written(events, request))
    assert {**told, "call_id": call_id, "id": item_id} == {
        **item,
        "call_id": call_id,
        "id": item_id,
    }


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_invalid_calls_stay_function_calls(name: str) -> None:
    """If a call's arguments do not fit the client's item type, it stays a function call."""
    wire = body(TOOLS[name])
    request = dragoman.dialect(RESPONSES).decode_request(wire)
    encoded = translate(wire, source=RESPONSES, target="anthropic")
    response = answered("anthropic", encoded, name, {"nonsense": 1})
    [item] = calls_in(Front(RESPONSES, request).response(response).body["output"])
    assert (item["type"], item["name"]) == ("function_call", name)
    assert item.keys() == {"type", "id", "call_id", "name", "arguments", "status"}
    [told] = calls_in(written(streamed("anthropic", encoded, name, {"nonsense": 1}), request))
    assert (told["type"], json.loads(told["arguments"])) == ("function_call", {"nonsense": 1})


def test_a_function_of_the_same_name_is_kept_apart() -> None:
    """Both are declared, and their calls are distinct in the history and in the answer."""
    function = {"type": "function", "name": "shell", "strict": False,
                "parameters": {"type": "object", "properties": {}}}  # fmt: skip
    items = [
        {"type": "shell_call", "call_id": "a", "action": {"commands": ["ls"]},
         "status": "completed"},
        {"type": "shell_call_output", "call_id": "a", "output": []},
        {"type": "function_call", "call_id": "b", "name": "shell", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "b", "output": "ok"},
    ]  # fmt: skip
    encoded = translate(body(function, TOOLS["shell"], items=items), source=RESPONSES,
                        target="anthropic")  # fmt: skip
    assert declared(encoded, "anthropic") == ["shell", "shell_2"]
    used = [b["name"] for m in encoded.body["messages"] for b in m["content"]
            if isinstance(b, dict) and b["type"] == "tool_use"]  # fmt: skip
    assert used == ["shell_2", "shell"]
    native = answered("anthropic", encoded, "shell_2", ARGUMENTS["shell"])
    plain = answered("anthropic", encoded, "shell", {})
    kinds = [dragoman.dialect(RESPONSES).encode_response(each).body["output"][0]["type"]
             for each in (native, plain)]  # fmt: skip
    assert kinds == ["shell_call", "function_call"]


@pytest.mark.parametrize("to", OTHERS)
def test_the_provider_s_own_shell_is_no_function(to: str) -> None:
    """A shell that runs in the provider's container can't be run by the client."""
    tool = {"type": "shell", "environment": {"type": "container_auto"}}
    encoded = translate(body(tool), source=RESPONSES, target=to)
    assert declared(encoded, to) == []
    assert [loss.path for loss in encoded.losses if loss.path.startswith("tools")] == ["tools[0]"]


@pytest.mark.parametrize("to", [name for name in dragoman.dialects() if name != "anthropic"])
def test_claude_s_computer_tool_becomes_a_function(to: str) -> None:
    """The model is told the screen size, and screenshots are sent as images."""
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png",
                                           "data": "iVBORw0KGgo="}}  # fmt: skip
    wire = {
        "model": "claude-sonnet-4-5", "max_tokens": 9,
        "tools": [{"type": "computer_20250124", "name": "computer", "display_width_px": 640,
                   "display_height_px": 480}],
        "messages": [
            {"role": "user", "content": "Look."},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "computer",
                                               "input": {"action": "screenshot"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a",
                                          "content": [picture]}]},
        ],
    }  # fmt: skip
    encoded = translate(wire, source="anthropic", target=to)
    assert declared(encoded, to) == ["computer"]
    assert "640 x 480" in json.dumps(encoded.body)
    assert "iVBORw0KGgo=" in json.dumps(encoded.body)
    assert [loss for loss in encoded.losses if loss.path.startswith("tools")] == []


# --- namespaces


@pytest.mark.parametrize("to", OTHERS)
def test_a_namespace_is_flattened_and_restored(to: str) -> None:
    """Declarations, calls and tool choice are flattened; answers have name and namespace."""
    items = [
        {"type": "function_call", "call_id": "a", "name": "find", "namespace": "crm",
         "arguments": '{"id":"1"}'},
        {"type": "function_call_output", "call_id": "a", "output": "Ann"},
    ]  # fmt: skip
    choice = {"type": "function", "name": "find", "namespace": "crm"}
    wire = body(CRM, items=items, tool_choice=choice)
    encoded = translate(wire, source=RESPONSES, target=to)
    again = dragoman.dialect(to).decode_request(encoded.body, path=encoded.path)
    names = declared(encoded, to)
    assert names in (["crm__find", "crm__list"], ["crm__find"])  # Ollama has no other way
    assert "Customers." in str(json.dumps(encoded.body))
    calls = [call.name for message in again.messages for call in message.tool_calls]
    assert calls == ["crm__find"]
    assert "extras" not in str([loss.path for loss in encoded.losses])
    request = dragoman.dialect(RESPONSES).decode_request(wire)
    response = answered(to, encoded, "crm__find", {"id": "2"})
    [item] = calls_in(Front(RESPONSES, request).response(response).body["output"])
    assert (item["name"], item["namespace"], item["status"]) == ("find", "crm", "completed")
    [told] = calls_in(written(streamed(to, encoded, "crm__find", {"id": "2"}), request))
    assert (told["name"], told["namespace"]) == ("find", "crm")
    assert json.loads(told["arguments"]) == {"id": "2"}


def test_a_namespace_is_unchanged_in_its_own_dialect() -> None:
    """Namespaces round-trip unchanged in the same dialect."""
    items = [{"type": "function_call", "call_id": "a", "name": "find", "namespace": "crm",
              "arguments": "{}"},
             {"type": "function_call_output", "call_id": "a", "output": "Ann"}]  # fmt: skip
    wire = body(CRM, items=items)
    dialect = dragoman.dialect(RESPONSES)
    assert dialect.encode_request(dialect.decode_request(wire)).body == wire


def test_flattened_names_are_unique_and_short_enough() -> None:
    """Taken or too long names are changed within the target's limits, and restored."""
    taken = {"type": "function", "name": "crm__find", "strict": False,
             "parameters": {"type": "object", "properties": {}}}  # fmt: skip
    long = {**CRM, "name": "c" * 127}
    encoded = translate(body(taken, CRM, long), source=RESPONSES, target="anthropic")
    names = declared(encoded, "anthropic")
    assert len(set(names)) == 5
    assert all(len(name) <= 128 for name in names)
    found = []
    for name in names:
        [call] = answered("anthropic", encoded, name, {}).message.tool_calls
        found.append((call.extras.get(RESPONSES, {}).get("namespace"), call.name))
    assert found == [(None, "crm__find"), ("crm", "find"), ("crm", "list"),
                     ("c" * 127, "find"), ("c" * 127, "list")]  # fmt: skip


# --- tools added or removed during a conversation


@pytest.mark.parametrize("to", OTHERS)
def test_additional_tools_are_merged_into_the_list(to: str) -> None:
    """Tools of an `additional_tools` item are tools of the request, of any kind."""
    function = {"type": "function", "name": "clock", "strict": False,
                "parameters": {"type": "object", "properties": {}}}  # fmt: skip
    item = {"type": "additional_tools", "role": "developer", "tools": [function, CRM,
                                                                       TOOLS["shell"]]}  # fmt: skip
    wire = body(items=[item, {"role": "user", "content": "Go on."}])
    encoded = translate(wire, source=RESPONSES, target=to)
    assert declared(encoded, to) == ["clock", "crm__find", "crm__list", "shell"]
    assert list(encoded.losses) == []
    assert dragoman.dialect(to).check(encoded.body, encoded.path) == []


@pytest.mark.parametrize("to", [name for name in dragoman.dialects() if name != "anthropic"])
def test_tool_additions_and_removals_are_applied(to: str) -> None:
    """The list has the tools after all of Claude's additions and removals."""
    schema = {"type": "object", "properties": {}}
    tools = [{"name": name, "input_schema": schema} for name in ("always", "old")]
    late = {"name": "late", "input_schema": schema, "defer_loading": True}
    new = {"name": "new", "input_schema": schema}

    def change(kind: str, tool: Any) -> dict[str, Any]:
        return {"role": "system", "content": [{"type": kind, "tool": tool}]}

    wire = {
        "model": "claude-sonnet-5", "max_tokens": 9, "tools": [*tools, late],
        "messages": [
            {"role": "user", "content": "Hi"},
            change("tool_addition", {"type": "tool_reference", "name": "late"}),
            change("tool_removal", {"type": "tool_reference", "name": "old"}),
            change("tool_addition", {"type": "tool_definition", "definition": new}),
            {"role": "assistant", "content": "Hello."},
            {"role": "user", "content": "Go on."},
        ],
    }  # fmt: skip
    encoded = translate(wire, source="anthropic", target=to)
    assert declared(encoded, to) == ["always", "late", "new"]
    assert [
        loss.path for loss in encoded.losses if "tool" in loss.path or "mess" in loss.path
    ] == []
    same = dragoman.dialect("anthropic")
    assert same.encode_request(same.decode_request(wire)).body == wire


# --- recorded traffic and odd bodies


@pytest.mark.parametrize("source", [RESPONSES, "anthropic"])
def test_recorded_additional_tools_are_declared_everywhere(corpus: Corpus, source: str) -> None:
    """Tools that were added in mid-conversation are in the list of tools."""
    marks = ("additional_tools", "tool_addition")
    found = 0
    for recorded in bodies(corpus, source):
        text = json.dumps(recorded.wire)
        if recorded.kind != "request" or not any(mark in text for mark in marks):
            continue
        found += 1
        request = dragoman.dialect(source).decode_request(recorded.wire)
        for to in dragoman.dialects():
            if to == source:
                continue
            encoded = dragoman.dialect(to).encode_request(request)
            names = {tool.name for tool in request.tools if isinstance(tool, ToolDefinition)}
            added = [part.payload.get("tools", ()) for message in request.messages
                     for part in message.parts if isinstance(part, Opaque)]  # fmt: skip
            names |= {tool["name"] for tools in added for tool in tools}
            assert names == set(declared(encoded, to))
            assert "only another dialect" not in str([loss.reason for loss in encoded.losses])
    assert found


_ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "find", "crm", "a b"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "name", "tools", "description", "namespace"]), inner
        )
    ),
    max_leaves=6,
)
_TOOL = st.fixed_dictionaries(
    {"type": st.sampled_from(["function", "custom", "namespace", "shell", "computer"])},
    optional={"name": st.sampled_from(["find", "crm", "crm__find", ""]) | _ODD, "tools": _ODD,
              "description": st.just("x") | _ODD, "parameters": st.just({"type": "object"}) | _ODD},
)  # fmt: skip


@given(
    st.lists(_TOOL | st.builds(lambda inner: {**CRM, "tools": inner}, st.lists(_TOOL)), max_size=4),
    st.lists(st.builds(lambda tools: {"type": "additional_tools", "role": "developer",
                                      "tools": tools}, st.lists(_TOOL, max_size=2) | _ODD)
             | st.builds(lambda ns, name: {"type": "function_call", "call_id": "c", "name": name,
                                           "namespace": ns, "arguments": "{}"}, _ODD,
                         st.sampled_from(["find", "crm"])), max_size=3),
    _ODD,
)  # fmt: skip
def test_odd_groups_and_additions_do_no_harm(tools: Any, items: Any, choice: Any) -> None:
    """Odd declarations round-trip, and can be encoded for every dialect."""
    wire = body(*tools, items=items, tool_choice=choice)
    dialect = dragoman.dialect(RESPONSES)
    request = dialect.decode_request(wire)
    assert dialect.encode_request(request).body == wire
    for to in OTHERS:
        dragoman.dialect(to).encode_request(request)


def test_losses_of_tools_have_the_original_path() -> None:
    """Paths count the tools of the original body; added tools have their message's path."""
    search = {"type": "file_search", "vector_store_ids": ["v"]}
    item = {"type": "additional_tools", "role": "developer", "tools": [search]}
    encoded = translate(body(CRM, search, items=[item]), source=RESPONSES, target="anthropic")
    assert [loss.path for loss in encoded.losses] == ["tools[1]", "messages[1].parts[0]"]


_ANTHROPIC_TOOLS: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "bash": ({"type": "bash_20250124"}, [{"command": "ls"}, {"restart": True}]),
    "str_replace_based_edit_tool": (
        {"type": "text_editor_20250728"},
        [
            {"command": "view", "path": "a", "view_range": [1, -1]},
            {"command": "str_replace", "path": "a", "old_str": "x", "new_str": "y"},
            {"command": "insert", "path": "a", "insert_line": 0, "insert_text": "x"},
        ],
    ),
    "memory": (
        {"type": "memory_20250818"},
        [{"command": "rename", "old_path": "a", "new_path": "b"}, {"command": "view", "path": "a"}],
    ),
    "computer": (
        {"type": "computer_20250124", "display_width_px": 9, "display_height_px": 9},
        [
            {"action": "screenshot"},
            {"action": "left_click_drag", "coordinate": [1, 2], "start_coordinate": [0, 0]},
            {"action": "scroll", "scroll_direction": "down", "scroll_amount": 3},
            {"action": "wait", "duration": 0.5},
        ],
    ),
}
"""By name: the tools that Claude's clients run, and arguments that Claude sends."""


@pytest.mark.parametrize("name", _ANTHROPIC_TOOLS)
def test_a_client_tool_of_anthropic_is_a_whole_function_elsewhere(name: str) -> None:
    """It has its name, a sentence about it, and a schema that takes what Claude would send."""
    import jsonschema

    tool, calls = _ANTHROPIC_TOOLS[name]
    said = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
    made = translate(
        {**said, "tools": [{**tool, "name": name}]}, source="anthropic", target="openai-chat"
    )
    (wire,) = made.body["tools"]
    function, schema = wire["function"], wire["function"]["parameters"]
    assert function["name"] == name
    assert re.match(r"[A-Z]\w* .*\.", function["description"])
    assert schema["type"] == "object"
    assert set(schema.get("required", ())) <= set(schema["properties"])
    jsonschema.Draft202012Validator.check_schema(schema)
    for arguments in calls:
        assert arguments.keys() <= schema["properties"].keys()
        jsonschema.validate(arguments, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate([], schema)
