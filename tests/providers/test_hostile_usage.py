"""Whatever a server says it has counted: the cost is unknown or right, never negative, no crash."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Message, Usage, dialect
from dragoman.errors import WireError
from dragoman.model.parts import Origin
from dragoman.providers.price import Price
from dragoman.providers.prices import LISTED, Prices

pytestmark = pytest.mark.whole

_CHAT = {
    "id": "c", "object": "chat.completion", "created": 1, "model": "gpt-5",
    "choices": [{"index": 0, "finish_reason": "stop",
                 "message": {"role": "assistant", "content": "x"}}],
}  # fmt: skip
_RESPONSES = {
    "id": "r", "object": "response", "created_at": 1, "status": "completed", "model": "gpt-5",
    "output": [{"type": "message", "id": "m", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "x", "annotations": []}]}],
}  # fmt: skip
_ANTHROPIC = {
    "id": "m", "type": "message", "role": "assistant", "model": "claude-haiku-4-5",
    "content": [{"type": "text", "text": "x"}], "stop_reason": "end_turn", "stop_sequence": None,
}  # fmt: skip
_GEMINI = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "x"}]},
                    "finishReason": "STOP"}],
    "modelVersion": "gemini-2.5-flash",
}  # fmt: skip
_OLLAMA = {
    "model": "llama3", "created_at": "2026-01-01T00:00:00Z", "done": True, "done_reason": "stop",
    "message": {"role": "assistant", "content": "x"},
}  # fmt: skip
_PAID = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
_CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any], tuple[str, ...]]] = {
    "openai-chat": ("openai:gpt-5", _CHAT, _PAID, (
        "prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details",
        "prompt_tokens_details.cached_tokens", "prompt_tokens_details.audio_tokens",
        "completion_tokens_details.reasoning_tokens", "prompt_cache_hit_tokens")),
    "openrouter": ("openrouter:openai/gpt-5", _CHAT, _PAID, (
        "prompt_tokens", "cost", "cost_details", "is_byok",
        "cost_details.upstream_inference_cost")),
    "openai-responses": ("openai:gpt-5", _RESPONSES,
        {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12}, (
        "input_tokens", "output_tokens", "total_tokens", "input_tokens_details",
        "input_tokens_details.cached_tokens", "input_tokens_details.cache_write_tokens",
        "output_tokens_details.reasoning_tokens")),
    "anthropic": ("anthropic:claude-haiku-4-5", _ANTHROPIC,
        {"input_tokens": 9, "output_tokens": 3}, (
        "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens",
        "cache_creation", "cache_creation.ephemeral_1h_input_tokens",
        "server_tool_use.web_search_requests", "output_tokens_details.thinking_tokens")),
    "gemini": ("google:gemini-2.5-flash", _GEMINI,
        {"promptTokenCount": 9, "candidatesTokenCount": 3, "totalTokenCount": 12}, (
        "promptTokenCount", "candidatesTokenCount", "totalTokenCount", "cachedContentTokenCount",
        "thoughtsTokenCount", "toolUsePromptTokenCount", "promptTokensDetails")),
    "ollama": ("ollama:llama3", _OLLAMA, {"prompt_eval_count": 9, "eval_count": 3}, (
        "prompt_eval_count", "eval_count")),
}  # fmt: skip
_VALUES = st.one_of(
    st.integers(-(10**40), 10**40),
    st.integers(-3, 20),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([None, True, "12", "-3", "x", "", "1e400", [], [5], {}, {"a": None},
                     {"cached_tokens": -4}, [{"modality": "TEXT", "tokenCount": -5}], [None]]),
)  # fmt: skip


def _put(usage: dict[str, Any], path: str, value: Any) -> None:
    *outer, last = path.split(".")
    for name in outer:
        found = usage.get(name)
        usage[name] = usage = dict(found) if isinstance(found, dict) else {}
    usage[last] = value


@pytest.mark.parametrize("case", _CASES)
@given(data=st.data())
def test_no_count_gives_a_negative_cost(case: str, data: st.DataObject) -> None:
    """And the response is still written as it came."""
    model, body, plain, paths = _CASES[case]
    chosen = data.draw(st.dictionaries(st.sampled_from(paths), _VALUES, min_size=1))
    usage: dict[str, Any] = {}
    for path, value in {**plain, **chosen}.items():
        _put(usage, path, value)
    key = {"gemini": "usageMetadata", "ollama": ""}.get(case, "usage")
    said = {**body, key: usage} if key else {**body, **usage}
    speaks = dialect("openai-chat" if case == "openrouter" else case)
    try:
        response = speaks.decode_response(json.dumps(said))
    except WireError:
        return
    for prices in (LISTED, Prices({model: Price(1, 2)})):
        cost = prices.cost_of_response(response, model)
        assert cost is None or (cost.is_finite() and cost >= 0)
    counted = response.usage or Usage()
    assert min(counted.input, counted.output, counted.cache_read, counted.cache_write) >= 0
    assert min(counted.total_input, counted.total_output, counted.total) >= 0
    if key:
        written = json.loads(speaks.encode_response(response).to_bytes())
        assert written[key] == usage


@pytest.mark.parametrize("field", ["input", "output", "cache_read", "cache_write", "thinking"])
def test_a_negative_count_that_was_stored_has_no_known_cost(field: str) -> None:
    """Earlier versions have stored what servers said."""
    usage = msgspec.structs.replace(Usage(5, 5), **{field: -7})
    message = Message.assistant(
        "x", usage=usage, origin=Origin(dialect="openai-chat", provider="openai", model="gpt-5")
    )
    assert LISTED.cost_of_message(message) is None
    assert LISTED.cost_of(usage, "openai:gpt-5") is None
    assert Prices({"gpt-5": Price(1, 2)}).cost_of(usage, "openai:gpt-5") is None
    assert Prices({"gpt-5": Price(0, 0)}).cost_of(usage, "openai:gpt-5") == Decimal(0)


def test_more_cached_than_there_was_is_all_that_there_was() -> None:
    """The prompt is counted once."""
    usage = {"input_tokens": 5, "input_tokens_details": {"cached_tokens": 10**12},
             "output_tokens": 3, "total_tokens": 8}  # fmt: skip
    found = dialect("openai-responses").decode_response(json.dumps({**_RESPONSES, "usage": usage}))
    assert found.usage is not None
    assert (found.usage.input, found.usage.cache_read, found.usage.total_input) == (0, 5, 5)
