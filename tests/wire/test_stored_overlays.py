"""Extras stored by earlier versions still restore the wire form, until they are edited."""

from __future__ import annotations

import json
from typing import Any

import pytest

import dragoman
from dragoman import Message, Request
from dragoman.wire.overlay import are_sound, fields_of, own_extras, with_overlay, words_of

_USER = {"role": "user", "content": "hi"}
_CALL = {"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}
_PATH = "/v1beta/models/m:generateContent"

# The dialect, a body, and the extras that version 1 stored, by their place in the document.
_STORED: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "instead": ("openai-responses",
        {"model": "m", "input": "hi", "conversation": {"id": "c"}},
        {"": {"openai-responses instead": [[["conversation"], "c", {"id": "c"}]]}}),
    "shape": ("anthropic", {"model": "m", "max_tokens": 5, "system": 5, "messages": [_USER]},
        {"": {"anthropic shape": [[["system"], "5", 5]]}}),
    "shape of a message": ("openai-chat", {"model": "m", "messages": ["hi"]},
        {"messages.0": {"openai-chat shape": [[[], _USER, "hi"]]}}),
    "absent": ("ollama",
        {"model": "m", "messages": [_USER, _CALL, {"role": "tool", "content": "x",
                                                   "tool_name": "f"}]},
        {"": {"ollama absent": [["stream", True]]},
         "messages.1": {"ollama absent": [["content", ""]]},
         "messages.1.parts.0": {"ollama absent": [["arguments", {}]]}}),
    "meant": ("openai-chat",
        {"model": "m", "messages": [_USER], "max_tokens": 7, "max_completion_tokens": 8},
        {"": {"openai-chat": {"max_tokens": 7, ":words": ["max_tokens=max_completion_tokens"]},
              "openai-chat meant": {"sampling.max_tokens": "2c624232cdd22177"}}}),
    "words": ("openai-chat",
        {"model": "m", "stop": "x", "max_tokens": 7,
         "messages": [_USER, {"role": "assistant", "reasoning": "hm", "content": "ho"}, _USER]},
        {"": {"openai-chat": {":words": ["max_tokens=max_tokens", "stop"]}},
         "messages.1.parts.0": {"openai-chat": {":words": ["reasoning"]}}}),
    "wire": ("gemini",
        {"contents": {"parts": {"text": "hi"}}, "tools": [{"google_search": {}}],
         "generation_config": {"top_k": 40.0, "stopSequences": [5]}},
        {"": {"gemini": {"generationConfig": {"stopSequences": [5]}, "$wire": {
            "snake": ["generation_config", "generationConfig.top_k"], "single": ["contents"],
            "tools": [{"servers": ["google_search"]}],
            "instead": {"generationConfig.topK": [40, 40.0]}}}},
         "messages.0": {"gemini": {"$wire": {"single": ["parts"], "absent": {"role": "user"}}}}}),
}  # fmt: skip


def _stored(name: str) -> tuple[str, dict[str, Any], Request]:
    """The request of a body, with its extras as version 1 stored them."""
    dialect, body, extras = _STORED[name]
    path = _PATH if dialect == "gemini" else None
    document = json.loads(dragoman.dialect(dialect).decode_request(body, path=path).to_json())
    _forget(document["value"])
    for place, kept in extras.items():
        holder = document["value"]
        for step in place.split(".") if place else ():
            holder = holder[int(step)] if isinstance(holder, list) else holder[step]
        holder["extras"] = kept
    return dialect, body, Request.from_json(json.dumps(document))


def _forget(value: Any) -> None:
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        if key == "extras":
            del value[key]
        elif isinstance(value[key], (dict, list)):
            _forget(value[key])


@pytest.mark.parametrize("name", _STORED)
def test_requests_stored_by_version_1_round_trip(name: str) -> None:
    """A stored request is encoded as it came, with the old names of extras."""
    dialect, body, request = _stored(name)
    assert dragoman.dialect(dialect).encode_request(request, repair=False).body == body
    assert b" spelling" not in request.to_json()  # stored extras are not rewritten


@pytest.mark.parametrize("name", _STORED)
def test_edits_override_extras_of_version_1(name: str) -> None:
    """A new first message and new settings are written as they are now."""
    dialect, _, request = _stored(name)
    messages = (Message.user("edited"), *request.messages[1:])
    edited = request.replace(messages=messages).with_settings(max_tokens=99)
    text = json.dumps(dragoman.dialect(dialect).encode_request(edited, repair=False).body)
    assert "edited" in text
    assert "99" in text
    assert '": 7' not in text  # nor the other spelling of the setting


def test_digests_of_lists_of_version_1() -> None:
    """A stored Gemini list is restored if ours is unchanged, and dropped otherwise."""
    digest = "b713f6d2a989e907"  # of [{"a":1}]
    extras = {"gemini": {"$wire": {"lists": [[["x", "y"], digest, [{"a": 1, "b": 2}]]]}}}
    came = with_overlay({"x": {"y": [{"a": 1}]}}, extras, "gemini")
    assert came == {"x": {"y": [{"a": 1, "b": 2}]}}
    assert with_overlay({"x": {"y": [{"a": 2}]}}, extras, "gemini") == {"x": {"y": [{"a": 2}]}}


def test_envelopes_of_version_1_are_valid() -> None:
    """They are re-sealed in the current form, with the same content."""
    extras = {"d": {"a": 1}, "d instead": [[["b"], 1, 2]], "d meant": {"p": "0"}}
    assert are_sound(extras, "d")
    assert not are_sound({"d instead": [[[], 1, 2]]}, "d")
    own = own_extras({**extras, "other": {}}, "d")
    assert own == {"d": {"a": 1}, "d spelling": {"guesses": [[["b"], 1, 2]], "said": {"p": "0"}}}
    assert own_extras(own, "d") == own
    assert are_sound(own, "d")


def test_notes_of_version_1_are_no_fields() -> None:
    """Notes that were stored among the fields are not written as fields."""
    extras = {"openai-chat": {":words": ["content"], "odd": 1}}
    assert fields_of(extras, "openai-chat") == {"odd": 1}
    assert words_of(extras, "openai-chat") == ["content"]
    assert with_overlay({}, extras, "openai-chat") == {"odd": 1}
