"""Settings in a request's extras reach other dialects and hosts that support them."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import dialect, dialects, translate
from dragoman.model import ServerTool, State

_CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
_GEMINI: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
_CLAUDE: dict[str, Any] = {**_CHAT, "max_tokens": 9}


def _paths(encoded: Any) -> set[str]:
    return {loss.path for loss in encoded.losses}


def test_settings_of_servers_go_to_ollama_and_back() -> None:
    """`min_p` and similar settings are Ollama's options, and fields of Chat servers."""
    body = {**_CHAT, "min_p": 0.1, "repetition_penalty": 1.1, "typical_p": 0.9, "top_k": 5}
    there = translate(body, source="openai-chat", target="ollama")
    options = {"min_p": 0.1, "repeat_penalty": 1.1, "typical_p": 0.9, "top_k": 5}
    assert there.body["options"] == options
    assert _paths(there) == set()
    vllm = translate(there.body, source="ollama", target="vllm:m")
    assert {key: vllm.body.get(key) for key in ("min_p", "repetition_penalty", "top_k")} == {
        "min_p": 0.1, "repetition_penalty": 1.1, "top_k": 5,
    }  # fmt: skip
    assert _paths(vllm) == {"extras.options"}  # typical_p
    openai = translate(there.body, source="ollama", target="openai:gpt-4o")
    assert "min_p" not in openai.body
    assert _paths(openai) == {"extras.options", "sampling.top_k"}


@pytest.mark.parametrize("target", [name for name in dialects() if name != "openai-chat"])
def test_documents_beside_the_messages_become_text(target: str) -> None:
    """Groq's and Cohere's documents become part of the user's text in other dialects."""
    documents = [{"id": "d", "source": {"type": "text", "text": "Rhine: 1230 km"}},
                 {"source": {"type": "json", "data": {"Po": "652 km"}}},
                 {"data": {"title": "Ebro", "snippet": "930 km"}}, "Tagus"]  # fmt: skip
    body = {**_CHAT, "documents": documents}
    encoded = translate(body, source="openai-chat", target=target)
    sent = str(encoded.body)
    assert all(word in sent for word in ("Hi", "Rhine: 1230 km", "652 km", "930 km", "Tagus"))
    assert "extras.documents" not in _paths(encoded)
    home = dialect("openai-chat")
    assert home.encode_request(home.decode_request(body)).body == body


def test_odd_documents_are_reported() -> None:
    """Unreadable content in documents is a loss, not an exception."""
    odd: Any
    for odd in (7, [7], [{"source": 7}], [{"data": 7}], [{"data": {"a": 1}}], [], {}, [None]):
        encoded = translate({**_CHAT, "documents": odd}, source="openai-chat", target="gemini")
        assert "extras.documents" in _paths(encoded) or not odd


def test_visibility_of_thinking_is_translated() -> None:
    """Groq's `include_reasoning` and `reasoning_format` are translated for Claude and Gemini."""
    shown = translate({**_CHAT, "include_reasoning": True}, source="openai-chat", target="gemini")
    thinking = shown.body["generationConfig"]["thinkingConfig"]
    assert thinking["includeThoughts"] is True
    hidden = {**_CHAT, "reasoning_format": "hidden"}
    encoded = translate(hidden, source="openai-chat", target="gemini")
    assert encoded.body["generationConfig"]["thinkingConfig"]["includeThoughts"] is False


@pytest.mark.parametrize("kind", ["browser_search", "web_search"])
def test_tools_run_by_chat_hosts_are_translated(kind: str) -> None:
    """The search tools of Groq and Mistral become the search tools of other dialects."""
    body = {**_CHAT, "tools": [{"type": kind}, {"type": "code_interpreter"}]}
    encoded = translate(body, source="openai-chat", target="gemini")
    assert encoded.body["tools"] == [{"googleSearch": {}}, {"codeExecution": {}}]
    home = dialect("openai-chat").decode_request(body)
    assert all(isinstance(tool, ServerTool) for tool in home.tools)
    assert dialect("openai-chat").encode_request(home).body == body


def test_google_tools_in_snake_case() -> None:
    """Google's SDK sends tool options in snake case, which are read as well."""
    body = {**_GEMINI, "tools": [{"googleSearch": {"exclude_domains": ["a.example"]}}]}
    encoded = translate(body, source="gemini", target="anthropic")
    assert encoded.body["tools"][0]["blocked_domains"] == ["a.example"]


@pytest.mark.parametrize(
    ("source", "body", "state"),
    [
        ("openai-chat", {**_CHAT, "store": True}, State(store=True)),
        ("openai-responses", {"model": "m", "input": "Hi", "previous_response_id": "r"},
         State(previous_response_id="r")),
        ("openai-responses", {"model": "m", "input": "Hi", "conversation": {"id": "c"}},
         State(conversation="c")),
        ("openai-responses", {"model": "m", "input": "Hi", "conversation": "c", "store": False},
         State(conversation="c", store=False)),
        ("anthropic", {**_CLAUDE, "thread": {"type": "continue", "previous_message_id": "msg_1"}},
         State(thread="msg_1")),
        ("anthropic", {**_CLAUDE, "thread": {"id": "t"}}, State(thread="t")),
        ("gemini", {**_GEMINI, "cachedContent": "cachedContents/x"},
         State(cached_content="cachedContents/x")),
        ("gemini", {**_GEMINI, "continuationToken": "c"}, State(continuation_token="c")),
        ("gemini", {**_GEMINI, "store": True}, State(store=True)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_ids_of_stored_provider_state_round_trip(
    source: str, body: dict[str, Any], state: State
) -> None:
    """State references round-trip, are losses in other dialects, and can be edited."""
    home = dialect(source)
    request = home.decode_request(body)
    assert request.state == state
    assert home.encode_request(request).body == body
    named = {name for name in State.__struct_fields__ if getattr(state, name) is not None}
    for target in dialects():
        encoded = dialect(target).encode_request(request)
        lost = {loss.path for loss in encoded.losses}
        kept = set(dialect(target).target.state.fields)
        assert {f"state.{name}" for name in named - kept} <= lost
    edited = request.replace(state=None)
    left = home.encode_request(edited).body
    assert not {"store", "previous_response_id", "conversation", "thread", "cachedContent",
                "continuationToken"} & left.keys()  # fmt: skip
    other: dict[str, Any] = {
        name: "other" if name != "store" else not state.store for name in named
    }
    again = home.encode_request(request.replace(state=State(**other))).body
    assert home.decode_request(again).state == State(**other)


def test_service_tiers_are_translated() -> None:
    """A service tier is sent to other hosts as their nearest equivalent."""
    tiers = {"on_demand": ("default", "standard_only", "standard"),
             "performance": ("priority", None, "priority"),
             "fast": ("fast", None, "priority")}  # fmt: skip
    for tier, (responses, claude, gemini) in tiers.items():
        body = {**_CHAT, "service_tier": tier}
        home = dialect("openai-chat")
        assert home.encode_request(home.decode_request(body)).body == body
        sent = {to: translate(body, source="openai-chat", target=to).body for to in dialects()}
        assert sent["openai-responses"]["service_tier"] == responses
        assert sent["anthropic"].get("service_tier") == claude
        assert sent["gemini"]["serviceTier"] == gemini
    fast = translate({**_CHAT, "service_tier": "fast"}, source="openai-chat", target="anthropic")
    assert fast.body["speed"] == "fast"
    assert fast.headers == {"anthropic-beta": "fast-mode-2026-02-01"}


def test_cache_options() -> None:
    """OpenAI's two dialects share cache options; automatic caching is translated to Anthropic."""
    options = {"mode": "explicit", "ttl": "30m"}
    chat = {**_CHAT, "prompt_cache_options": options}
    responses = translate(chat, source="openai-chat", target="openai-responses")
    assert responses.body["prompt_cache_options"] == options
    claude = translate(chat, source="openai-chat", target="anthropic")
    assert "service.cache_options" in _paths(claude)
    whole = {**_CLAUDE, "cache_control": {"type": "ephemeral"}}
    there = translate(whole, source="anthropic", target="openai-chat")
    assert there.body["prompt_cache_options"] == {"mode": "implicit"}
    back = translate(there.body, source="openai-chat", target="anthropic")
    assert back.body["cache_control"] == {"type": "ephemeral"}
    timed = {**_CLAUDE, "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    assert "service.cache_options" in _paths(
        translate(timed, source="anthropic", target="openai-responses")
    )
