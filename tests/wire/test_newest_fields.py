"""Fields, items and tools that vendors added last are kept, accepted, translated or reported."""

from __future__ import annotations

import json
from typing import Any

import pytest

import dragoman
from dragoman import translate

USER = {"role": "user", "content": "Hi"}
HI = {"role": "user", "parts": [{"text": "Hi"}]}
ANSWER = {"role": "assistant", "content": "Hello"}
TOOL = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}
CLAUDE_TOOL = {"name": "f", "input_schema": {"type": "object"}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


def _responses(*items: Any, **fields: Any) -> tuple[str, dict[str, Any]]:
    return "openai-responses", {"model": "gpt-6-sol", "input": [USER, *items], **fields}


def _chat(**fields: Any) -> tuple[str, dict[str, Any]]:
    return "openai-chat", {"model": "gpt-6-sol", "messages": [USER], **fields}


def _claude(*messages: Any, **fields: Any) -> tuple[str, dict[str, Any]]:
    body = {"model": "claude-sonnet-5-5", "max_tokens": 500, "messages": [USER, *messages]}
    return "anthropic", {**body, **fields}


def _gemini(*contents: Any, **fields: Any) -> tuple[str, dict[str, Any]]:
    return "gemini", {"contents": [HI, *contents], **fields}


_CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}", "async": True}
_RESULT = {"type": "function_call_output", "call_id": "c1", "output": "x"}
_MCP = {"name": "m", "streamableHttpTransport": {"url": "https://m.example", "headers": {"a": "b"}}}
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "async tool": _responses(tools=[{**TOOL, "async": True}]),
    "async call": _responses(_CALL, _RESULT),
    "configuration_update": _responses(
        {"type": "configuration_update", "reasoning": {"effort": "low"}}, USER
    ),
    "reasoning.context": _responses(reasoning={"context": "all_turns", "effort": "low"}),
    "reasoning.mode": _responses(reasoning={"mode": "pro"}),
    "prompt_cache_options": _responses(prompt_cache_options={"mode": "explicit", "ttl": "30m"}),
    "multi_agent": _responses(multi_agent={"enabled": True}),
    "access_programs": _responses(access_programs={"a": "b"}),
    "chat prompt_cache_options": _chat(prompt_cache_options={"mode": "implicit"}),
    "chat fast tier": _chat(service_tier="fast"),
    "chat moderation": _chat(moderation={"model": "omni-moderation-latest"}),
    "chat max effort": _chat(reasoning_effort="max"),
    "between_tools": _claude(thinking={"type": "between_tools"}),
    "block_binding": _claude(
        thinking={"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    ),
    "clear_at": _claude(
        {"role": "system", "content": "Be brief.", "clear_at": "next_user_message"}, ANSWER, USER
    ),
    "per-turn output_config": _claude(
        {"role": "system", "output_config": {"effort": "low"}}, ANSWER, USER
    ),
    "clear_at_least": _claude(
        context_management={
            "edits": [
                {
                    "type": "clear_tool_uses_20250919",
                    "clear_at_least": {"type": "input_tokens", "value": 5000},
                }
            ]
        }
    ),
    "thread": _claude(thread={"type": "create"}),
    "mcpServers": _gemini(tools=[{"mcpServers": [_MCP]}]),
    "two mcpServers": _gemini(
        tools=[{"mcpServers": [_MCP, {**_MCP, "name": "n"}], "googleSearch": {}}]
    ),
    "mcp_servers": _gemini(tools=[{"mcp_servers": [_MCP]}]),
    "odd mcpServers": _gemini(tools=[{"mcpServers": {"name": "m"}}, {"mcpServers": [5]}]),
    "responseFormat": _gemini(
        generationConfig={
            "responseFormat": [{"text": {"mimeType": "application/json", "schema": SCHEMA}}]
        }
    ),
    "responseFormat text": _gemini(
        generationConfig={"responseFormat": [{"text": {"mimeType": "text/plain"}}]}
    ),
    "responseFormat image": _gemini(
        generationConfig={"responseFormat": [{"image": {"aspectRatio": "1:1"}}, {"text": {}}]}
    ),
    "part mediaResolution": _gemini(
        {"role": "model", "parts": [{"text": "x"}]},
        {
            "role": "user",
            "parts": [
                {
                    "inlineData": {"mimeType": "image/png", "data": "AAAA"},
                    "mediaResolution": {"level": "MEDIA_RESOLUTION_LOW"},
                }
            ],
        },
    ),
}
_UNUSUAL = {"odd mcpServers"}


@pytest.mark.parametrize("name", REQUESTS)
def test_they_round_trip(name: str) -> None:
    """They are sent unchanged, also to the vendor itself, and nothing is reported."""
    dialect, body = REQUESTS[name]
    speaker = dragoman.dialect(dialect)
    for target in (None, speaker.target):
        encoded = speaker.encode_request(speaker.decode_request(_copy(body)), target)
        assert json.loads(encoded.to_bytes()) == body
        assert (encoded.losses, encoded.repairs) == ((), ())


@pytest.mark.parametrize("name", sorted(REQUESTS.keys() - _UNUSUAL))
def test_check_accepts_them(name: str) -> None:
    """Fields in the vendor's types are no findings."""
    dialect, body = REQUESTS[name]
    assert dragoman.dialect(dialect).check(_copy(body)) == []


@pytest.mark.parametrize("target", dragoman.dialects())
@pytest.mark.parametrize("name", REQUESTS)
def test_they_are_translated_validly(name: str, target: str) -> None:
    """Every other dialect can encode them, and the result is valid."""
    dialect, body = REQUESTS[name]
    if dialect == target:
        return
    speaker = dragoman.dialect(target)
    sent = translate(_copy(body), source=dialect, target=target)
    found = speaker.check(sent.body, path=sent.path)
    assert [each for each in found if each.severity == "error"] == []


@pytest.mark.parametrize(
    ("name", "target", "path"),
    [
        ("async tool", "anthropic", "tools[0].extras"),
        ("async call", "openai-chat", "messages[1].parts[0].extras"),
        ("configuration_update", "anthropic", "messages[1].parts[0]"),
        ("reasoning.context", "openai-chat", "extras.reasoning"),
        ("prompt_cache_options", "anthropic", "service.cache_options"),
        ("block_binding", "openai-chat", "thinking.extras.block_binding"),
        ("clear_at", "openai-chat", "messages[1].extras"),
        ("per-turn output_config", "openai-chat", "messages[1]"),
        ("clear_at_least", "openai-responses", "extras.context_management"),
        ("thread", "gemini", "extras.thread"),
        ("mcpServers", "ollama", "tools[0]"),
        ("responseFormat image", "openai-chat", "extras.generationConfig"),
    ],
)
def test_fields_without_an_equivalent_are_losses(name: str, target: str, path: str) -> None:
    """The loss has the path of the field."""
    dialect, body = REQUESTS[name]
    sent = translate(_copy(body), source=dialect, target=target)
    assert any(loss.path.startswith(path) for loss in sent.losses), sent.losses


def test_cache_options_are_shared_by_openai_s_dialects() -> None:
    """Chat and Responses have the same cache options."""
    dialect, body = REQUESTS["prompt_cache_options"]
    sent = translate(_copy(body), source=dialect, target="openai-chat")
    assert sent.body["prompt_cache_options"] == body["prompt_cache_options"]
    assert sent.losses == ()


def test_between_tools_disables_thinking_elsewhere() -> None:
    """Claude's `between_tools` becomes effort "none" in other dialects."""
    dialect, body = REQUESTS["between_tools"]
    sent = translate(_copy(body), source=dialect, target="openai-responses")
    assert sent.body["reasoning"] == {"effort": "none"}


@pytest.mark.parametrize("name", ["mcpServers", "two mcpServers", "mcp_servers"])
def test_mcp_servers_are_translated_both_ways(name: str) -> None:
    """Each server in Gemini's list becomes a tool, and vice versa."""
    dialect, body = REQUESTS[name]
    sent = translate(_copy(body), source=dialect, target="openai-responses")
    servers = [tool for tool in sent.body["tools"] if tool["type"] == "mcp"]
    assert [(tool["server_label"], tool["server_url"]) for tool in servers] == [
        (label, "https://m.example") for label in ("mn" if "two" in name else "m")
    ]
    assert servers[0]["headers"] == {"a": "b"}
    back = translate(sent.body, source="openai-responses", target="gemini")
    assert {"mcpServers": [_MCP]} in back.body["tools"]


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses", "anthropic", "ollama"])
def test_gemini_s_response_format_is_translated(target: str) -> None:
    """Gemini's newest field is decoded like the older ones."""
    dialect, body = REQUESTS["responseFormat"]
    older = _gemini(
        generationConfig={"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}
    )[1]
    sent = translate(_copy(body), source=dialect, target=target)
    assert sent.body == translate(older, source=dialect, target=target).body
    assert sent.losses == ()


def test_an_edited_response_format_is_written_in_its_field() -> None:
    """A new schema replaces the old one, and plain text replaces JSON."""
    dialect, body = REQUESTS["responseFormat"]
    speaker = dragoman.dialect(dialect)
    request = speaker.decode_request(_copy(body))
    assert request.output is not None
    other = {"type": "object", "properties": {"b": {"type": "integer"}}}
    changed = request.replace(output=request.output.replace(schema=other))
    config = speaker.encode_request(changed).body["generationConfig"]
    assert config == {
        "responseFormat": [{"text": {"mimeType": "application/json", "schema": other}}]
    }
    plain = request.replace(output=request.output.replace(format="text", schema=None))
    config = speaker.encode_request(plain).body["generationConfig"]
    assert config == {"responseFormat": [{"text": {"mimeType": "text/plain"}}]}


def _copy(body: dict[str, Any]) -> Any:
    return json.loads(json.dumps(body))
