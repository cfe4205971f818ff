"""Content that only one dialect has becomes text in the others."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import dialect, dialects

_BLOCKS: dict[str, dict[str, Any]] = {
    "search result": {"type": "search_result", "source": "https://x.org", "title": "Rivers",
                      "content": [{"type": "text", "text": "The Rhine."}]},
    "document": {"type": "document", "title": "Rivers", "context": "Of Basel.",
                 "source": {"type": "content",
                            "content": [{"type": "text", "text": "The Rhine."}]}},
    "summary": {"type": "compaction", "content": "They spoke of The Rhine."},
}  # fmt: skip
_OTHERS = [name for name in dialects() if name != "anthropic"]


def _asking(*messages: dict[str, Any]) -> Any:
    body = {"model": "m", "max_tokens": 99, "messages": list(messages)}
    return dialect("anthropic").decode_request(body), body


@pytest.mark.parametrize("to", _OTHERS)
@pytest.mark.parametrize("kind", _BLOCKS)
def test_a_block_arrives_as_text(kind: str, to: str) -> None:
    """The text, title and source of a block are in the other body, without losses."""
    block = _BLOCKS[kind]
    role = "assistant" if kind == "summary" else "user"
    after = [{"role": "user", "content": "And?"}] if kind == "summary" else []
    before = [{"role": "user", "content": "Hi"}] if kind == "summary" else []
    request, body = _asking(*before, {"role": role, "content": [block]}, *after)
    encoded = dialect(to).encode_request(request)
    assert b"The Rhine." in encoded.to_bytes()
    if "title" in block:
        assert b"Rivers" in encoded.to_bytes()
    assert encoded.losses == ()
    assert dialect("anthropic").encode_request(request).body == body


@pytest.mark.parametrize("to", _OTHERS)
def test_a_search_result_inside_a_tool_result_arrives_as_text(to: str) -> None:
    """A client tool's search results are readable by any model."""
    call = {"type": "tool_use", "id": "t", "name": "find", "input": {}}
    request, _ = _asking(
        {"role": "user", "content": "Which river?"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t",
                                      "content": [_BLOCKS["search result"]]}]},
    )  # fmt: skip
    encoded = dialect(to).encode_request(request)
    assert b"The Rhine." in encoded.to_bytes()
    assert not [loss for loss in encoded.losses if "content" in loss.path]


@pytest.mark.parametrize("odd", [
    {"type": "search_result", "content": 7}, {"type": "search_result", "content": [{"text": 7}]},
    {"type": "document", "source": {"type": "content", "content": [7]}}, {"type": "compaction"},
])  # fmt: skip
def test_unreadable_blocks_are_losses(odd: dict[str, Any]) -> None:
    """A block of another shape is a loss in other dialects."""
    request, _ = _asking({"role": "user", "content": [{"type": "text", "text": "Hi"}, odd]})
    assert dialect("openai-chat").encode_request(request).losses


@pytest.mark.parametrize("to", [name for name in dialects() if name != "openai-chat"])
def test_documents_of_groq_and_cohere_arrive_as_text(to: str) -> None:
    """A document among the parts of a Chat message is text in other dialects."""
    document = {
        "type": "document",
        "document": {"id": "1", "data": {"title": "Rivers", "text": "The Rhine."}},
    }
    body = {"model": "m", "messages": [{"role": "user", "content": [document]}]}
    encoded = dialect(to).encode_request(dialect("openai-chat").decode_request(body))
    assert b"The Rhine." in encoded.to_bytes()
    assert encoded.losses == ()
