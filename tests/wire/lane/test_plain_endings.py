"""Conversations of which only the end is plain."""

from __future__ import annotations

import json
from typing import Any

import pytest

import dragoman
from dragoman.wire.lane import requests as lane
from tests.wire.lane import requests as lanes

pytestmark = pytest.mark.usefixtures("at_first_sight")
_HEAD = {"model": "m", "max_tokens": 100}
_HI = {"role": "user", "content": "Hi"}
_PNG = "iVBORw0KGgo="
_CALLED = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def _raw(*messages: Any, **fields: Any) -> bytes:
    return json.dumps({**_HEAD, "messages": messages, **fields}).encode()


# --- conversations of which only the end is plain


_ODD = {"role": "assistant", "content": "A", "audio": {"id": "x"}}
_TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def _round(call_id: str, **fields: Any) -> list[Any]:
    call = {**_CALLED, "id": call_id}
    return [
        {"role": "assistant", "tool_calls": [call], **fields},
        {"role": "tool", "tool_call_id": call_id, "content": "R"},
    ]


@pytest.mark.parametrize(
    "messages",
    [
        [_HI, _ODD, _HI],
        [_HI, _ODD, _HI, {"role": "assistant", "content": "B"}, _HI],
        [_HI, *_round("a", audio={"id": "x"}), *_round("b")],
        [_HI, {"role": "system", "content": "Amid."}, _HI],
        [_HI, {"role": "user", "content": " "}, {"role": "assistant", "content": "B"}, _HI],
        [{"role": "assistant", "content": "B"}, _HI],
        [*_round("a"), *_round("b")],
        [{"role": "system", "content": "Brief."}, *_round("a"), _HI],
    ],
)
def test_messages_after_an_odd_one_take_the_lane(messages: list[Any]) -> None:
    """The messages up to the odd one take the general path, with the same result."""
    raw = _raw(*messages, tools=[_TOOL])
    assert lanes.took_lane(raw)
    for target in lanes.TARGETS:
        lanes.took_lane(raw, target=target)


def test_losses_after_an_odd_message_have_the_right_path() -> None:
    """Indexes count from the first message, which the lane did not decode."""
    thought = {"role": "assistant", "content": "A", "reasoning_content": "Hm."}
    raw = _raw(_HI, _ODD, _HI, thought, _HI, thought, _HI)
    assert lanes.took_lane(raw)
    losses = dragoman.translate(raw, source="openai-chat", target="anthropic").losses
    assert {f"messages[{n}].parts[0]" for n in (3, 5)} <= {loss.path for loss in losses}


def test_ids_of_the_beginning_are_not_reused() -> None:
    """If ids of earlier calls or results recur, the general path repairs the request."""
    odd = _round("a", audio={"id": "x"})
    assert lanes.took_lane(_raw(_HI, *odd, _HI, *_round("b"), tools=[_TOOL]))
    assert not lanes.took_lane(_raw(_HI, *odd, _HI, *_round("a"), tools=[_TOOL]))
    assert not lanes.took_lane(_raw(_HI, odd[1], _HI, *_round("a"), tools=[_TOOL]))


def test_beginnings_are_found_by_their_exact_bytes() -> None:
    """Beginnings of equal length that differ in one character are not mixed up."""
    for word in ("one", "two", "one"):
        raw = _raw({"role": "user", "content": word * 1_000, "odd": 1}, _ODD, _HI)
        made = dragoman.translate(raw, source="openai-chat", target="anthropic")
        assert made.is_raw
        assert word * 1_000 in json.dumps(made.body)


def test_a_beginning_is_cached_only_if_it_recurs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise a long conversation with an odd message would be decoded twice."""
    monkeypatch.setattr(lane, "LONG", 1_000)
    raw = _raw(_HI, _ODD, *[_HI, {"role": "assistant", "content": "B" * 50}] * 20, _HI)
    took = [lanes.outcome(raw, "openai-chat", "anthropic").took_lane for _ in range(4)]
    assert took == [False, False, True, True]


# --- content of such conversations


def test_undeclared_functions_take_the_lane() -> None:
    """The general path gets their names; tools of another kind are no functions."""
    custom = {"type": "custom", "custom": {"name": "f"}}
    for target in lanes.TARGETS:
        lanes.took_lane(_raw(_HI, *_round("a"), tools=[custom]), target=target)
    assert lanes.took_lane(_raw(_HI, *_round("a")))
    assert not lanes.took_lane(_raw(_HI, *_round("a"), tools=[custom]))


@pytest.mark.parametrize("target", lanes.TARGETS)
def test_signed_and_unsigned_calls_are_translated_alike(target: str) -> None:
    """Gemini 3 requires a signature on the first call of each step."""
    calls = [{"functionCall": {"name": "f", "args": {}, "id": call_id}} for call_id in "abc"]
    signed = [{**calls[0], "thoughtSignature": "c2ln"}, *calls[1:]]
    contents: list[Any] = [{"role": "user", "parts": [{"text": "Hi"}]}]
    for part, call_id in zip(signed, "abc", strict=True):
        answer = {"name": "f", "response": {"output": "R"}, "id": call_id}
        contents += [
            {"role": "model", "parts": [part]},
            {"role": "user", "parts": [{"functionResponse": answer}]},
        ]
    declared = [{"functionDeclarations": [{"name": "f"}]}]
    raw = json.dumps({"contents": contents, "tools": declared}).encode()
    lanes.took_lane(raw, "gemini", target)


@pytest.mark.parametrize("target", lanes.TARGETS)
def test_snake_case_fields_are_translated_alike(target: str) -> None:
    """Gemini's Python clients may send snake case, which is kept within the dialect."""
    blob = {"mime_type": "image/png", "data": _PNG}
    called = {"function_call": {"name": "f", "args": {"odd_name": 1}, "id": "c"}}
    answered = {"function_response": {"name": "f", "response": {"output": "R"}, "id": "c"}}
    contents = [
        {"role": "user", "parts": [{"text": "Hi"}, {"inline_data": blob}]},
        {"role": "model", "parts": [{**called, "thought_signature": "c2ln"}]},
        {"role": "user", "parts": [answered]},
    ]
    raw = json.dumps({"contents": contents}).encode()
    took = lanes.took_lane(raw, "gemini", target)
    assert took or target not in lanes.DIALECTS


@pytest.mark.parametrize("target", lanes.TARGETS)
def test_cache_ttls_are_translated_alike(target: str) -> None:
    """TTLs of cache hints, on a single text and beside other texts."""
    part = {"type": "text", "text": "Long.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    for parts in ([part], [part, {"type": "text", "text": "Short."}], [part, part]):
        lanes.took_lane(_raw({"role": "user", "content": parts}), target=target)


def test_a_signed_text_has_the_same_loss_alone_or_not() -> None:
    """Responses has a shorter form for a single text; the loss is the same."""
    signed = {"text": "A", "thoughtSignature": "c2ln"}
    reasons = set()
    for parts in ([signed], [signed, {"text": "B"}]):
        contents = [
            {"role": "user", "parts": [{"text": "Hi"}]},
            {"role": "model", "parts": parts},
            {"role": "user", "parts": [{"text": "Go on."}]},
        ]
        raw = json.dumps({"contents": contents}).encode()
        lanes.took_lane(raw, "gemini", "openai-responses")
        made = dragoman.translate(
            raw, source="gemini", target="openai-responses", path=lanes.GEMINI_PATH
        )
        reasons |= {loss.reason for loss in made.losses}
    assert reasons == {"another provider's signature is left out"}
