"""Calls that a target does not accept as they are: other ids, and placeholders for signatures."""

from __future__ import annotations

import json
from typing import Any

import pytest

import dragoman
from dragoman.wire.envelope import PREFIX
from tests.wire.lane import requests as lanes

pytestmark = pytest.mark.usefixtures("at_first_sight")
_HI = {"role": "user", "content": "Hi"}
_ANSWER = {"role": "assistant", "content": "A"}
_TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
_MISTRAL, _GEMINI_3 = "mistral:mistral-large-latest", "google:gemini-3-pro"


def _round(*ids: str, **fields: Any) -> list[Any]:
    calls = [
        {"id": each, "type": "function", "function": {"name": "f", "arguments": "{}"}}
        for each in ids
    ]
    results = [{"role": "tool", "tool_call_id": each, "content": "R"} for each in ids]
    return [{"role": "assistant", "tool_calls": calls, **fields}, *results]


def _raw(*messages: Any) -> bytes:
    return json.dumps({"model": "m", "messages": messages, "tools": [_TOOL]}).encode()


@pytest.mark.thorough
@pytest.mark.parametrize("target", lanes.TARGETS)
@pytest.mark.parametrize(
    "ids",
    [
        ("call_1", "call_2", "call_3"), ("abcdefgh1", "abcdefgh2", "abcdefgh3"),
        ("functions.f:0", "functions.f:1", "functions.f:2"), ("x" * 65, "y" * 65, "z" * 65),
        ("a.b" * 30, "a.c" * 30, "a.d" * 30), ("call_1", "abcdefgh2", "a.b"),
        ("call_1", "x" * 70, "call_3"), ("é1", "é2", "é3"), ("1", "2", "3"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("source", ["openai-chat", "anthropic", "openai-responses", "ollama"])
def test_ids_of_any_form_are_translated_alike(
    ids: tuple[str, ...], target: str, source: str
) -> None:
    """Short, long, odd and mixed ids give the same result as on the general path."""
    said = {"content": "T", "reasoning_content": "Hm."}
    rounds = [ids] if source != "anthropic" else [ids[:1], ids[1:2], ids[2:]]
    called = [message for each in rounds for message in _round(*each, **said)]
    raw = _raw(_HI, *called, _ANSWER, _HI)
    if source != "openai-chat":
        raw = dragoman.translate(raw, source="openai-chat", target=source, repair=False).to_bytes()
    lanes.took_lane(raw, source, target)


def test_refused_ids_take_the_lane_and_are_renamed() -> None:
    """Each renamed call and result is reported with its path."""
    raw = _raw(_HI, *_round("call_1", "call_2", content="T"), *_round("call_3"), _ANSWER, _HI)
    assert lanes.took_lane(raw, target=_MISTRAL)
    sent = dragoman.translate(raw, source="openai-chat", target=_MISTRAL)
    assert [repair.path for repair in sent.repairs] == [
        "messages[1].parts[1]", "messages[1].parts[2]", "messages[2].parts[0]",
        "messages[3].parts[0]", "messages[4].parts[0]", "messages[5].parts[0]",
    ]  # fmt: skip
    odd = _raw(_HI, *_round("functions.f:0"), _ANSWER, _HI)
    assert lanes.took_lane(odd)
    mixed = _raw(_HI, *_round("functions.f:0"), *_round("call_1"), _ANSWER, _HI)
    assert not lanes.took_lane(mixed)


_BESIDE = {"role": "user", "content": "And?"}


@pytest.mark.parametrize(
    ("messages", "vouched"),
    [
        ([_HI, *_round("a")], [1]),
        ([_HI, *_round("a", "b", content="T"), *_round("c")], [1, 4]),
        ([_HI, *_round("a"), _ANSWER, _HI, *_round("b")], [5]),
        ([_HI, *_round("a"), _ANSWER, _HI], []),
    ],
)
def test_calls_of_the_current_turn_get_placeholder_signatures(
    messages: list[Any], vouched: list[int]
) -> None:
    """Gemini 3 requires signatures since the last user message, and accepts a placeholder."""
    raw = _raw({"role": "system", "content": "Brief."}, *messages)
    assert lanes.took_lane(raw, target=_GEMINI_3)
    sent = dragoman.translate(raw, source="openai-chat", target=_GEMINI_3)
    assert [repair.path for repair in sent.repairs] == [f"messages[{n + 1}]" for n in vouched]
    assert sent.to_bytes().count(b"skip_thought_signature_validator") == len(vouched)


@pytest.mark.parametrize(
    "messages",
    [
        [*_round("a")],
        [_HI, *_round("a"), _BESIDE],
        [_HI, *_round("a"), _BESIDE, *_round("b")],
        [_HI, _HI, *_round("a")],
        [_HI, _ANSWER, *_round("a")],
        [_HI, *_round("a"), _BESIDE, _HI, *_round("b")],
        [_HI, *_round("a", reasoning_content="Hm."), *_round("b")],
    ],
)
@pytest.mark.parametrize("source", ["openai-chat", "anthropic", "openai-responses", "gemini"])
def test_unusual_turns_are_translated_alike(messages: list[Any], source: str) -> None:
    """Messages after results, and adjacent ones of a role, decide where a turn begins."""
    raw = _raw(*messages)
    if source != "openai-chat":
        raw = dragoman.translate(raw, source="openai-chat", target=source).to_bytes()
    lanes.took_lane(raw, source, _GEMINI_3)


@pytest.mark.parametrize("response", [{"output": "R"}, {"return_value": "R"}, {"x": 1}])
def test_gemini_s_own_results_are_unchanged(response: Any) -> None:
    """Results stay the same within the dialect, beside unsigned calls."""
    call = {"functionCall": {"name": "f", "id": "a", "args": {}}}
    result = {"functionResponse": {"name": "f", "id": "a", "response": response}}
    contents = [
        {"role": "user", "parts": [{"text": "Hi"}]},
        {"role": "model", "parts": [call]},
        {"role": "user", "parts": [result]},
    ]
    body = {"contents": contents, "tools": [{"functionDeclarations": [{"name": "f"}]}]}
    lanes.took_lane(json.dumps(body).encode(), "gemini", _GEMINI_3)


_DETAILS: dict[str, dict[str, Any]] = {
    "text": {"type": "reasoning.text", "text": "Hm.", "format": "unknown", "index": 0},
    "signed": {"type": "reasoning.text", "text": "Hm.", "signature": "c2ln", "id": None},
    "sealed": {"type": "reasoning.encrypted", "data": "c2VhbA==", "id": "rs_1", "index": 1},
    "summary": {"type": "reasoning.summary", "summary": "Hm."},
    "empty": {"type": "reasoning.text", "text": ""},
    "unsaid": {"type": "reasoning.text", "index": 0},
}


@pytest.mark.parametrize("kinds", [("text",), ("signed",), ("sealed",), ("text", "sealed"),
                                   ("summary",), ("empty", "text"), ("unsaid",)])  # fmt: skip
@pytest.mark.parametrize("target", lanes.TARGETS)
def test_reasoning_details_are_translated_alike(kinds: tuple[str, ...], target: str) -> None:
    """OpenRouter's details, with or without text beside them, before calls and texts."""
    details = [_DETAILS[kind] for kind in kinds]
    words = "".join(str(detail.get("text", "")) for detail in details)
    for beside in ({}, {"reasoning": words}, {"reasoning": "x"}, {"reasoning_content": words}):
        said = {"reasoning_details": details, **beside}
        lanes.took_lane(_raw(_HI, *_round("a", **said), {**_ANSWER, **said}, _HI), target=target)


def test_reasoning_details_take_the_lane() -> None:
    """Each is reported as one part; envelopes leave the lane."""
    said = {"reasoning_details": [_DETAILS["text"], _DETAILS["sealed"]], "reasoning": "Hm."}
    raw = _raw(_HI, *_round("a", **said), _ANSWER, _HI)
    assert lanes.took_lane(raw)
    losses = dragoman.translate(raw, source="openai-chat", target="anthropic").losses
    assert [loss.path for loss in losses] == ["messages[1].parts[0]", "messages[1].parts[1]"]
    sealed = {**_DETAILS["sealed"], "data": f"{PREFIX}x"}
    raw = _raw(_HI, *_round("a", reasoning_details=[sealed]), _ANSWER, _HI)
    assert not lanes.took_lane(raw)


def test_cache_hints_on_calls_take_the_lane() -> None:
    """Some clients of routers send them, in various positions of a message."""
    for said in ({}, {"content": "T"}, {"content": "", "reasoning_content": "Hm."}):
        answer, *results = _round("a", "b", **said)
        answer["tool_calls"][1]["cache_control"] = {"type": "ephemeral"}
        for target in lanes.DIALECTS:
            lanes.took_lane(_raw(_HI, answer, *results, _ANSWER, _HI), target=target)
        assert lanes.took_lane(_raw(_HI, answer, *results, _ANSWER, _HI))
