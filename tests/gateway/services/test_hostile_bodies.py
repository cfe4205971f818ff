"""Generated and hostile bodies at every endpoint: refused in the front's form, never a failure."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.gateway.services.conftest import Stage

pytestmark = pytest.mark.whole

PATHS = {
    "/v1/embeddings": ("input", "dimensions", "encoding_format", "user"),
    "/api/embed": ("input", "dimensions", "truncate", "options", "keep_alive"),
    "/api/embeddings": ("prompt", "options"),
    "/v1beta/models/m1:embedContent": ("content", "taskType", "title", "outputDimensionality"),
    "/v1beta/models/m1:batchEmbedContents": ("requests",),
    "/v1beta/models/m1:countTokens": ("contents", "generateContentRequest", "tools"),
    "/v1/messages/count_tokens": ("messages", "system", "tools", "thinking", "tool_choice"),
    "/v1/responses/input_tokens": ("input", "instructions", "tools", "text", "conversation"),
    "/v1/completions": ("prompt", "n", "echo", "suffix", "best_of", "logprobs", "stop", "stream",
                        "max_tokens", "logit_bias", "stream_options", "messages"),
    "/api/generate": ("prompt", "suffix", "images", "context", "format", "options", "stream",
                      "raw", "system", "template", "keep_alive", "think"),
    "/api/show": ("name", "verbose"),
}  # fmt: skip
_text = st.text("ab:/\x00é\ud800", max_size=6)
_leaves = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | _text
    | st.sampled_from(["", "user", "\ud800", "base64", "json", "AAAA", "\x00"])
)  # fmt: skip
_keys = st.sampled_from(
    ["role", "content", "parts", "text", "type", "model", "inlineData", "data", "mimeType", "title",
     "requests", "contents", "name", "functionCall", "properties", "schema", "num_predict"]
) | _text  # fmt: skip
_values = st.recursive(
    _leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=3),
    max_leaves=8,
)
BACKS = ("openai", "anthropic", "gemini", "ollama")


def _check(answer: httpx.Response) -> None:
    assert answer.status_code < 500, (answer.request.url, answer.request.content, answer.text)
    if answer.status_code >= 400:
        assert answer.json()["error"]


@pytest.mark.parametrize("path", PATHS)
def test_generated_bodies_are_never_a_failure(stage: Stage, path: str) -> None:
    """Any values in the endpoint's fields give a response or a client error."""
    _attack(stage, path, 10)


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
def test_many_generated_bodies_are_never_a_failure(stage: Stage, path: str) -> None:
    """The same with many more examples."""
    _attack(stage, path, 400)


def _attack(stage: Stage, path: str, examples: int) -> None:
    made = st.fixed_dictionaries(
        {"model": st.just("m1")}, optional=dict.fromkeys(PATHS[path], _values)
    )
    with httpx.Client() as client:

        @settings(
            max_examples=examples, deadline=None, database=None, derandomize=True,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        )  # fmt: skip
        @given(body=made, back=st.sampled_from(BACKS))
        def attack(body: dict[str, Any], back: str) -> None:
            content = json.dumps(body).encode("utf-8", "surrogatepass")
            _check(client.post(f"{stage.before(back).url}{path}", content=content))

        attack()


SHAPES = [
    b"", b"null", b"[]", b"{", b'"x"', b"\xff\xfe", b'{"model":"m1","model":2}', b'{"model":null}',
    b'{"model":""}', b"[" * 100_000, b'{"a":' * 50_000, b'{"model":"m1","input":' + b"[" * 5000,
    b'{"model":"m1","prompt":"\\ud800"}', b'{"model":"m1","input":["\\udc00"]}',
    b'{"model":"m1","input":1e999}', b'{"model":"' + b"m" * 2000 + b'","input":"x","prompt":"x"}',
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_malformed_bodies_are_refused(stage: Stage, path: str) -> None:
    """Invalid JSON, deep nesting, lone surrogates; the next valid request still works."""
    with httpx.Client() as client:
        for number, body in enumerate(SHAPES):
            back = BACKS[(number + len(path)) % len(BACKS)]
            _check(client.post(f"{stage.before(back).url}{path}", content=body))
        good = client.post(
            f"{stage.before('openai').url}/v1/embeddings", json={"model": "m1", "input": "one"}
        )
    assert good.status_code == 200
