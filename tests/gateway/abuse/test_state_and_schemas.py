"""Forged sealed state and hostile schemas: rejected or harmless, in bounded time."""

from __future__ import annotations

import time
from base64 import b64encode
from typing import Any

import pytest

from dragoman.model.parts import Origin, Thinking
from dragoman.wire.envelope import PREFIX, Seal, wrap
from tests.gateway.abuse.stage import CANARY, Stage, refused
from tests.gateway.client_requests import body_for
from tests.mcp.test_hostile import nested

pytestmark = pytest.mark.whole

BACKS = ("openai-chat", "openai-responses", "anthropic", "gemini", "ollama")


def _forged() -> dict[str, str]:
    made = wrap(Seal(Origin(dialect="gemini"), Thinking(CANARY, signature="c2ln")))
    system = wrap(Seal(Origin(dialect="anthropic", provider="x"), Thinking("x", signature="s")))
    assert made is not None
    assert system is not None
    return {
        "proper form, not ours": made,
        "for another dialect": system,
        "cut": made[:-9],
        "changed": made[:40] + ("A" if made[40] != "A" else "B") + made[41:],
        "marker only": PREFIX,
        "no JSON": b64encode(b"dragoman1" + b"signed" + bytes(24) + b"{").decode(),
        "deep": b64encode(b"dragoman1" + bytes(6) + b"[" * 50_000).decode(),
        "large": PREFIX + "A" * 600_000,
        "no base64": PREFIX + "\x00é{}",
        "line ends": made[:20] + "\r\n" + made[20:],
    }


FORGED = _forged()


def _with_state(front: str, model: str, state: str) -> Any:
    body = body_for(front, CANARY, model=model)
    asked = {"role": "user", "content": CANARY}
    match front:
        case "openai-chat":
            detail = {"type": "reasoning.encrypted", "data": state, "signature": state}
            said: Any = {"role": "assistant", "content": "x", "reasoning_details": [detail]}
            body["messages"] = [asked, said, asked]
        case "openai-responses":
            item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": state}
            body["input"] = [asked, item, {"role": "assistant", "content": "x"}, asked]
        case "anthropic":
            blocks = [
                {"type": "thinking", "thinking": "x", "signature": state},
                {"type": "redacted_thinking", "data": state}, {"type": "text", "text": "x"},
            ]  # fmt: skip
            body["messages"] = [asked, {"role": "assistant", "content": blocks}, asked]
        case "gemini":
            parts = [{"text": "x", "thought": True, "thoughtSignature": state}, {"text": "x"}]
            text = {"role": "user", "parts": [{"text": CANARY}]}
            body["contents"] = [text, {"role": "model", "parts": parts}, text]
        case _:
            said = {"role": "assistant", "content": "x", "thinking": state}
            body["messages"] = [asked, said, asked]
    return body


@pytest.mark.parametrize("kind", FORGED)
def test_forged_state(stage: Stage, front: str, kind: str) -> None:
    """State that a client invented is an ordinary signature or dropped: never an internal error."""
    for back in BACKS:
        model = f"{back}.good"
        answer = stage.post(front, _with_state(front, model, FORGED[kind]), model=model)
        if answer.status != 200:
            refused(front, answer, 400, 413)
    stage.serves(front)


def _wide_refs(count: int) -> dict[str, Any]:
    """Each definition refers to the next one twice: expanded, its size would be 2**count."""
    ref = [{"$ref": f"#/$defs/d{n + 1}"} for n in range(count)]
    defs: dict[str, Any] = {
        f"d{n}": {"type": "object", "properties": {"a": ref[n], "b": ref[n]}} for n in range(count)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{count}": {"type": "string"}}}


SCHEMAS: dict[str, Any] = {
    "deep": nested(150),
    "recursive": {"$ref": "#"},
    "recursive pair": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"},
                                                     "b": {"$ref": "#/$defs/a"}}},
    "recursive object": {"type": "object", "properties": {"a": {"$ref": "#"}}},
    "exponential": _wide_refs(40),
    "huge enum": {"enum": [f"v{n}" for n in range(5000)]},
    "regex bomb": {"type": "string", "pattern": "^(a+)+$" * 5 + "(" * 50 + ")" * 50},
    "remote ref": {"$ref": "http://127.0.0.1:1/schema.json"},
    "file ref": {"$ref": "file:///etc/passwd"},
    "broken ref": {"$ref": "#/%ff/~2/\x00"},
    "no schema": [1, 2],
    "string": "object",
    "wrong types": {"type": 5, "properties": [], "required": {}},
    "many properties": {"type": "object", "properties": {f"p{n}": {} for n in range(2000)}},
    "all of itself": {"allOf": [{"$ref": "#"}] * 5, "anyOf": [{"$ref": "#"}] * 5},
    "huge numbers": {"type": "integer", "minimum": -(10**300), "maximum": 10**300},
    "odd names": {"type": "object", "properties": {"": {}, "\x00": {}, "$ref": {}}},
}  # fmt: skip


def _with_tool(front: str, model: str, schema: Any) -> Any:
    body = body_for(front, CANARY, model=model)
    function = {"name": "look", "description": "x", "parameters": schema}
    match front:
        case "anthropic":
            body["tools"] = [{"name": "look", "input_schema": schema}]
        case "gemini":
            body["tools"] = [{"functionDeclarations": [
                {"name": "look", "parametersJsonSchema": schema}]}]  # fmt: skip
        case "openai-responses":
            body["tools"] = [{"type": "function", **function, "strict": True}]
        case _:
            body["tools"] = [{"type": "function", "function": function}]
    return body


@pytest.mark.parametrize("kind", SCHEMAS)
def test_hostile_schemas(stage: Stage, front: str, kind: str) -> None:
    """No URL in it is followed, nothing is expanded, and no pattern is run."""
    for back in BACKS:
        model = f"{back}.good"
        began = time.monotonic()
        answer = stage.post(front, _with_tool(front, model, SCHEMAS[kind]), model=model)
        assert time.monotonic() - began < 20
        if answer.status != 200:
            refused(front, answer, 400, 413)
    stage.serves(front)
