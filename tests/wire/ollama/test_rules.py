"""Each rule finds its violations, with their paths, and accepts valid bodies."""

from __future__ import annotations

from typing import Any

import pytest

from tests.wire.rulebook import Book, Row

pytestmark = pytest.mark.whole

HI = {"role": "user", "content": "Hi"}
PARAMETERS = "tools[0].function.parameters"


def body(*messages: Any, **fields: Any) -> dict[str, Any]:
    """A request."""
    return {"model": "m", "messages": list(messages or [HI]), **fields}


def tool(parameters: Any = None, **fields: Any) -> dict[str, Any]:
    """A request with a tool."""
    function = {"name": "f", **fields}
    if parameters is not None:
        function["parameters"] = parameters
    return body(tools=[{"type": "function", "function": function}])


def turn(*results: dict[str, Any], ids: tuple[str | None, ...] = ("a", "b"), arguments: Any = None,
         names: tuple[str, ...] = ("f", "f")) -> dict[str, Any]:  # fmt: skip
    """Two calls and their results."""
    calls = [
        {**({"id": i} if i else {}), "function": {"name": n, "arguments": arguments or {}}}
        for i, n in zip(ids, names, strict=True)
    ]
    said = {"role": "assistant", "content": "", "tool_calls": calls}
    return body(HI, said, *({"role": "tool", "content": "x", **result} for result in results))


A, B = {"tool_name": "f", "tool_call_id": "a"}, {"tool_name": "f", "tool_call_id": "b"}

# Rule: invalid body, expected paths, valid body.
ROWS: dict[str, list[Row]] = {
    "shape_messages": [
        ({"messages": "Hi"}, "messages", {"messages": None}),
        (body("Hi"), "messages[0]", body(HI)),
        (body({"role": "x"}), "messages[0].role", body({"role": "SYSTEM"})),
        (body({"content": "x"}), "messages[0].role", body()),
    ],
    "shape_model": [({**body(), "model": ""}, "model", {"messages": [HI]})],
    "shape_model_is_named": [({"messages": [HI]}, "model", body(HI))],
    "shape_texts": [
        (body({**HI, "thinking": 1}), "messages[0].thinking", body({**HI, "thinking": None})),
        (body({**HI, "tool_name": 1}), "messages[0].tool_name", body({**HI, "tool_name": "f"})),
    ],
    "shape_tools": [
        (body(tools={}), "tools", body(tools=[])),
        (body(tools=[{"type": "function"}]), "tools[0].function.name", tool()),
        (tool([]), PARAMETERS, tool({})),
        (tool({"properties": {"a": True}}), PARAMETERS, tool({"properties": {"a": {}}})),
        (tool({"required": "a"}), PARAMETERS, tool({"required": ["a"]})),
        (
            tool({"type": ["object"]}),
            PARAMETERS,
            tool({"type": "object", "properties": {"a": {"type": ["string", "null"]}}}),
        ),
        (
            tool({"properties": {"a": {"anyOf": [{"enum": 1}]}}}),
            PARAMETERS,
            tool({"properties": {"a": {"anyOf": [{"enum": [1, None]}]}}}),
        ),
        (
            tool({"properties": []}),
            PARAMETERS,
            tool({"properties": None, "anyOf": None, "items": 1}),
        ),
        (tool({"anyOf": {}}), PARAMETERS, tool({"anyOf": []})),
    ],
    "shape_keep_alive": [
        (body(keep_alive="5"), "keep_alive", body(keep_alive="1h5.5m")),
        (body(keep_alive=True), "keep_alive", body(keep_alive=-1)),
        (body(keep_alive="1.m5"), "keep_alive", body(keep_alive="-.5s")),
    ],
    "limit_logprobs": [(body(top_logprobs=21), "top_logprobs", body(top_logprobs=20))],
    "w101_stream_is_yes_or_no": [(body(stream="no"), "stream", body(stream=False))],
    "w102_arguments_are_objects": [
        (
            turn(A, B, arguments="{}"),
            "messages[1].tool_calls[0].function.arguments",
            turn(A, B, arguments={"x": 1}),
        )
    ],
    "w103_results_name_their_tool": [(turn(A, {}), "messages[3]", turn({"tool_name": "f"}, B))],
    "w103_results_are_in_order": [
        (turn(B, A), "messages[3].tool_call_id", turn(A, B)),
        (turn(B, A), "messages[3].tool_call_id", turn(B, A, names=("f", "g"))),
    ],
    "w105_content_is_one_text": [
        (
            body({"role": "user", "content": [{"type": "text", "text": "Hi"}]}),
            "messages[0].content",
            body({"role": "user", "content": None}),
        )
    ],
    "w105_images_are_base64": [
        (body({**HI, "images": "AAAA"}), "messages[0].images", body({**HI, "images": None})),
        (
            body({**HI, "images": ["AAAA", "data:image/png;base64,AAAA"]}),
            "messages[0].images[1]",
            body({**HI, "images": ["AAAA", "AA==", "AA\r\nAA\n", "AA==\n"]}),
        ),
        (
            body({**HI, "images": ["https://x/a.png"]}),
            "messages[0].images[0]",
            body({**HI, "images": ["+/8="]}),
        ),
        (body({**HI, "images": ["AAA"]}), "messages[0].images[0]", body({**HI, "images": []})),
        (body({**HI, "images": ["AA=\n="]}), "messages[0].images[0]", body({**HI, "images": []})),
    ],
    "w106_thinking_is_known": [
        (body(think="minimal"), "think", body(think="max")),
        (body(think=1), "think", body(think=True)),
    ],
    "w107_the_window_is_an_option": [
        (body(num_ctx=8192), "num_ctx", body(options={"num_ctx": 8192}))
    ],
    "w108_options_are_of_their_types": [
        (body(options=[]), "options", body(options=None)),
        (
            body(options={"temperature": "0"}),
            "options.temperature",
            body(options={"temperature": 0, "seed": 1.0, "num_gpu": None}),
        ),
        (body(options={"stop": "END"}), "options.stop", body(options={"stop": ["END"]})),
        (body(options={"use_mmap": 1}), "options.use_mmap", body(options={"use_mmap": True})),
    ],
    "w108_sampling_is_in_the_options": [
        (body(temperature=0.5), "temperature", body(options={"temperature": 0.5})),
        (body(max_tokens=5), "max_tokens", body(options={"num_predict": 5})),
        (body(options={"max_tokens": 5}), "options.max_tokens", body(options={"odd": 5})),
    ],
    "w108_formats_are_json_or_a_schema": [
        (body(format="xml"), "format", body(format="json")),
        (body(format=[]), "format", body(format={"type": "object"})),
    ],
}
BOOK = Book("ollama", ROWS)


@pytest.mark.parametrize("sound", [case.right for case in BOOK.cases])
def test_valid_bodies_pass_every_rule(sound: dict[str, Any]) -> None:
    """A body that is valid for one rule violates no other."""
    found = BOOK.check(sound)
    assert [v for v in found if v.path != "model"] == []  # may be filled in later
