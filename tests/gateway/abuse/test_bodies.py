"""Invalid bodies: too large, too deep, not JSON, not text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.gateway.abuse.stage import CANARY, MAX_BODY, Stage, refused
from tests.gateway.client_requests import body_for

pytestmark = pytest.mark.whole

FIELDS = {
    "openai-chat": "messages", "openai-responses": "input", "anthropic": "messages",
    "gemini": "contents", "ollama": "messages",
}  # fmt: skip
SHAPES: dict[str, bytes] = {
    "empty": b"",
    "null": b"null",
    "list": b"[]",
    "string": b'"x"',
    "cut": b'{"model":"m"',
    "two values": b"{}{}",
    "single quotes": b"{'model':'m'}",
    "comment": b'{"model":"m"/* */}',
    "not a number": b'{"model":"m","temperature":NaN}',
    "UTF-16": '{"model":"m"}'.encode("utf-16"),
    "byte order mark only": b"\xef\xbb\xbf",
    "no UTF-8": b'{"model":"m","x":"\xff\xfe"',
    "form": b"model=m&messages=x",
    "multipart": b'--x\r\ncontent-disposition: form-data; name="model"\r\n\r\nm\r\n--x--\r\n',
    "XML": b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY y SYSTEM "file:///etc/passwd">]><x>&y;</x>',
    "deep lists": b"[" * 200_000,
    "deep objects": b'{"a":' * 40_000,
    "deep, closed": b'{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "NUL bytes": b"\0" * 1000,
    "a long number": b'{"model":' + b"9" * 100_000,
}


@pytest.mark.parametrize("kind", SHAPES)
def test_invalid_bodies_are_rejected(stage: Stage, front: str, kind: str) -> None:
    """They never reach a provider, and the error quotes nothing."""
    asked = len(stage.upstream.asked)
    answer = stage.post(front, SHAPES[kind])
    refused(front, answer, 400, 404, 413)
    assert len(stage.upstream.asked) == asked
    stage.serves(front)


@pytest.mark.parametrize("kind", ["lists", "objects", "numbers"])
def test_deep_and_wide_conversations(stage: Stage, front: str, kind: str) -> None:
    """A request whose conversation is endlessly nested or long is rejected."""
    endless = {
        "lists": b"[" * 20_000 + b"]" * 20_000,
        "objects": b'{"content":' * 20_000 + b"1" + b"}" * 20_000,
        "numbers": b"[" + b",".join([b"1e999"] * 1000) + b"]",
    }[kind]
    body = b'{"model":"m","max_tokens":5,"%s":%s}' % (FIELDS[front].encode(), endless)
    refused(front, stage.post(front, body), 400)
    stage.serves(front)


def test_oversized_bodies_are_rejected(stage: Stage, front: str) -> None:
    """Beyond the limit a body is not read, with or without its length."""
    before = stage.memory
    body = json.dumps(body_for(front, "x" * MAX_BODY * 2)).encode()
    refused(front, stage.post(front, body), 413)
    chunks = b"".join(
        b"10000\r\n%s\r\n" % body[begin : begin + 65536].ljust(65536)
        for begin in range(0, len(body), 65536)
    )
    answer = stage.post(front, chunks + b"0\r\n\r\n", ("transfer-encoding", "chunked"))
    refused(front, answer, 413)
    assert stage.memory - before < 32 * 1024 * 1024
    stage.serves(front)


def test_many_small_chunks_are_one_body(stage: Stage, front: str) -> None:
    """A body in chunks of one byte is read normally."""
    body = json.dumps(body_for(front, CANARY)).encode()
    chunks = b"".join(b"1;%s\r\n%c\r\n" % (b"x" * 100, byte) for byte in body) + b"0\r\n\r\n"
    assert stage.post(front, chunks, ("transfer-encoding", "chunked")).status == 200


TYPES = (
    "application/json; charset=utf-16", "application/json; charset=no-such", "text/plain", "",
    "multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "a" * 5000,
)  # fmt: skip


@pytest.mark.parametrize("number", range(len(TYPES)))
def test_the_content_type_does_not_matter(stage: Stage, front: str, number: int) -> None:
    """A body is JSON in UTF-8, whatever its header says."""
    answer = stage.post(front, body_for(front, CANARY), ("content-type", TYPES[number]))
    assert answer.status == 200, answer


_text = st.text("ab:/\x00é\ud800", max_size=6) | st.sampled_from(["user", "base64", CANARY])
_leaves = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | _text
_names = st.sampled_from([
    "role", "content", "parts", "text", "type", "id", "name", "arguments", "tool_calls", "source",
    "data", "url", "image_url", "function", "parameters", "input", "output", "call_id", "thinking",
    "signature", "encrypted_content", "thoughtSignature", "inlineData", "functionCall", "images",
])  # fmt: skip
_values = st.recursive(
    _leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=4),
    max_leaves=10,
)
_more = st.sampled_from([
    "tools", "tool_choice", "temperature", "max_tokens", "stop", "stream", "response_format",
    "thinking", "generationConfig", "options", "reasoning", "text", "system", "instructions",
    "metadata", "safetySettings", "format", "previous_response_id", "conversation", "store", "n",
])  # fmt: skip


@pytest.mark.parametrize("back", ["openai-chat", "anthropic", "gemini"])
def test_generated_bodies(stage: Stage, front: str, back: str) -> None:
    """Any values in a request's fields give an answer, or an error in the front's form."""
    _generate(stage, front, back, 6)


@pytest.mark.slow
@pytest.mark.parametrize("back", sorted(FIELDS))
def test_many_generated_bodies(stage: Stage, front: str, back: str) -> None:
    """The same with far more examples."""
    _generate(stage, front, back, 400)


def _generate(stage: Stage, front: str, back: str, examples: int) -> None:
    @settings(
        max_examples=examples, deadline=None, database=None, derandomize=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(conversation=_values, more=st.dictionaries(_more, _values, max_size=3))
    def attack(conversation: Any, more: dict[str, Any]) -> None:
        model = f"{back}.good"
        body = {"model": model, "max_tokens": 5, **more, FIELDS[front]: conversation}
        data = json.dumps(body).encode("utf-8", "surrogatepass")
        answer = stage.post(front, data, model=model)
        if answer.status != 200:
            refused(front, answer, *range(400, 500))

    attack()
    stage.serves(front, back)
