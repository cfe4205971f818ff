"""What `check` finds in Ollama's requests."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.wire.ollama import DIALECT
from dragoman.wire.ollama.rules import RULES
from tests.corpus import Corpus
from tests.wire.recorded import bodies

HI = {"role": "user", "content": "Hi"}


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

# Rule, severity, path; a body that trips it, and one that is as near to it as can be.
CASES: list[tuple[str, str, str, dict[str, Any], dict[str, Any]]] = [
    ("shape", "error", "messages", {"messages": "Hi"}, {"messages": None}),
    ("shape", "error", "messages[0]", body("Hi"), body(HI)),
    ("shape", "error", "messages[0].role", body({"role": "x"}), body({"role": "SYSTEM"})),
    ("shape", "error", "messages[0].role", body({"content": "x"}), body()),
    ("shape", "error", "model", {**body(), "model": ""}, {"messages": [HI]}),
    ("shape", "error", "messages[0].thinking", body({**HI, "thinking": 1}),
     body({**HI, "thinking": None})),
    ("shape", "error", "messages[0].tool_name", body({**HI, "tool_name": 1}),
     body({**HI, "tool_name": "f"})),
    ("shape", "error", "tools", body(tools={}), body(tools=[])),
    ("shape", "error", "tools[0].function.name", body(tools=[{"type": "function"}]), tool()),
    ("shape", "error", "tools[0].function.parameters", tool([]), tool({})),
    ("shape", "error", "tools[0].function.parameters", tool({"properties": {"a": True}}),
     tool({"properties": {"a": {}}})),
    ("shape", "error", "tools[0].function.parameters", tool({"required": "a"}),
     tool({"required": ["a"]})),
    ("shape", "error", "tools[0].function.parameters", tool({"type": ["object"]}),
     tool({"type": "object", "properties": {"a": {"type": ["string", "null"]}}})),
    ("shape", "error", "tools[0].function.parameters",
     tool({"properties": {"a": {"anyOf": [{"enum": 1}]}}}),
     tool({"properties": {"a": {"anyOf": [{"enum": [1, None]}]}}})),
    ("shape", "error", "tools[0].function.parameters", tool({"properties": []}),
     tool({"properties": None, "anyOf": None, "items": 1})),
    ("shape", "error", "tools[0].function.parameters", tool({"anyOf": {}}), tool({"anyOf": []})),
    ("shape", "error", "keep_alive", body(keep_alive="5"), body(keep_alive="1h5.5m")),
    ("shape", "error", "keep_alive", body(keep_alive=True), body(keep_alive=-1)),
    ("limit", "error", "top_logprobs", body(top_logprobs=21), body(top_logprobs=20)),
    ("W101", "error", "stream", body(stream="no"), body(stream=False)),
    ("W102", "error", "messages[1].tool_calls[0].function.arguments",
     turn(A, B, arguments="{}"), turn(A, B, arguments={"x": 1})),
    ("W103", "warning", "messages[3]", turn(A, {}), turn({"tool_name": "f"}, B)),
    ("W103", "warning", "messages[3].tool_call_id", turn(B, A), turn(A, B)),
    ("W103", "warning", "messages[3].tool_call_id", turn(B, A), turn(B, A, names=("f", "g"))),
    ("W105", "error", "messages[0].content",
     body({"role": "user", "content": [{"type": "text", "text": "Hi"}]}),
     body({"role": "user", "content": None})),
    ("W105", "error", "messages[0].images", body({**HI, "images": "AAAA"}),
     body({**HI, "images": None})),
    ("W105", "error", "messages[0].images[1]",
     body({**HI, "images": ["AAAA", "data:image/png;base64,AAAA"]}),
     body({**HI, "images": ["AAAA", "AA==", "AA\r\nAA\n"]})),
    ("W105", "error", "messages[0].images[0]", body({**HI, "images": ["https://x/a.png"]}),
     body({**HI, "images": ["+/8="]})),
    ("W105", "error", "messages[0].images[0]", body({**HI, "images": ["AAA"]}),
     body({**HI, "images": []})),
    ("W106", "error", "think", body(think="minimal"), body(think="max")),
    ("W106", "error", "think", body(think=1), body(think=True)),
    ("W107", "warning", "num_ctx", body(num_ctx=8192), body(options={"num_ctx": 8192})),
    ("W108", "error", "options", body(options=[]), body(options=None)),
    ("W108", "error", "options.temperature", body(options={"temperature": "0"}),
     body(options={"temperature": 0, "seed": 1.0, "num_gpu": None})),
    ("W108", "error", "options.stop", body(options={"stop": "END"}),
     body(options={"stop": ["END"]})),
    ("W108", "error", "options.use_mmap", body(options={"use_mmap": 1}),
     body(options={"use_mmap": True})),
    ("W108", "warning", "temperature", body(temperature=0.5), body(options={"temperature": 0.5})),
    ("W108", "warning", "max_tokens", body(max_tokens=5), body(options={"num_predict": 5})),
    ("W108", "warning", "options.max_tokens", body(options={"max_tokens": 5}),
     body(options={"odd": 5})),
    ("W108", "error", "format", body(format="xml"), body(format="json")),
    ("W108", "error", "format", body(format=[]), body(format={"type": "object"})),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "severity", "path", "broken", "sound"), CASES)
def test_a_rule_finds_what_breaks_it_and_nothing_else(
    rule: str, severity: str, path: str, broken: Any, sound: Any
) -> None:
    """One body trips the rule, at that place; the other, which is close to it, trips none."""
    found = [(v.rule, v.severity, v.path) for v in DIALECT.check(broken)]
    assert (rule, severity, path) in found
    assert DIALECT.check(sound) == []


def test_every_rule_has_a_case() -> None:
    """No rule is without a body that trips it."""
    tripped = {
        rule.find.__name__
        for rule in RULES
        for _, _, _, broken, _ in CASES
        for violation in DIALECT.check(broken)
        if violation.rule == rule.number and violation.severity == rule.severity
        and any(path == violation.path for path, _ in rule.find(_view(broken)))
    }  # fmt: skip
    assert tripped == {rule.find.__name__ for rule in RULES}


def _view(wire: Any) -> Any:
    from dragoman.wire.ollama.view import View

    return View(wire)


@pytest.mark.parametrize("wire", [b"[]", "3", b"{", None, 7])
def test_what_is_no_object_is_told(wire: Any) -> None:
    """Anything may be checked."""
    (found,) = DIALECT.check(wire)
    assert (found.rule, found.path) == ("shape", "$")


_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["model", "messages", "role", "content", "images", "tool_calls", "function",
                         "arguments", "name", "id", "tools", "parameters", "properties", "anyOf",
                         "options", "stop", "think", "format", "keep_alive", "tool_call_id"]),
        inner, max_size=5),
    max_leaves=25,
)  # fmt: skip


@given(wire=_JSON)
def test_any_json_can_be_checked(wire: Any) -> None:
    """No JSON makes a rule raise, as text or as it is."""
    assert DIALECT.check(json.dumps(wire)) == DIALECT.check(wire)


def test_findings_quote_nothing() -> None:
    """Neither a path nor a message holds anything of the body's."""
    secret = "hunter2"
    broken = body(
        {"role": secret, "content": [secret], "images": [secret], "tool_name": [secret]},
        format=secret, think=secret, keep_alive=secret, options={"stop": secret, "seed": secret},
        tools=[{"function": {"name": "f", "parameters": {"properties": {secret: 1}}}}],
    )  # fmt: skip
    found = DIALECT.check(broken)
    assert len(found) > 5
    assert secret not in repr(found)


@pytest.mark.corpus
def test_accepted_requests_have_no_errors(corpus: Corpus) -> None:
    """What a server accepted, `check` does not call an error."""
    chosen = [one for one in bodies(corpus, "ollama") if one.kind == "request"]
    wrong = {
        one.recording.row.file: found
        for one in chosen
        if (found := [v for v in DIALECT.check(one.wire) if v.severity == "error"])
    }
    assert chosen
    assert wrong == {}
