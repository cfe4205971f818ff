"""Detection of dialects."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

import dragoman
from dragoman.errors import InvalidInputError
from dragoman.wire.detection import detect
from tests.corpus import Corpus
from tests.wire.recorded import bodies

HELLO = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (HELLO, "openai-chat"),
        ({"messages": [], "system": "x"}, "anthropic"),
        ({"model": "claude-x", "max_tokens": 1, "messages": []}, "anthropic"),
        ({"input": "hi"}, "openai-responses"),
        ({"prompt": {"id": "p"}}, "openai-responses"),
        ({"contents": []}, "gemini"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]},
            "anthropic",
        ),
        ({"messages": [{"role": "tool", "content": "x"}]}, "openai-chat"),
        (b'{"candidates": []}', "gemini"),
        ({**HELLO, "options": {}}, "ollama"),
        ({**HELLO, "think": True, "tools": [{"function": {"name": "f"}}]}, "ollama"),
        ({"messages": [{"role": "tool", "content": "x", "tool_name": "f"}]}, "ollama"),
        ({"messages": [{"role": "user", "content": "x", "images": ["iVBORw0K"]}]}, "ollama"),
        ({"messages": [{"role": "assistant", "content": "", "thinking": "Hm."}]}, "ollama"),
        (
            {
                "messages": [
                    {
                        "role": "assistant",
                        "tool_calls": [{"function": {"name": "f", "arguments": {}}}],
                    }
                ]
            },
            "ollama",
        ),
        ({"model": "m", "message": {"role": "assistant", "content": ""}, "done": True}, "ollama"),
    ],
)
def test_the_dialect_is_detected_from_the_body(body: Any, found: str) -> None:
    """Fields, roles, blocks and tools identify the dialect."""
    assert detect(body) == found


def test_paths_and_headers_decide() -> None:
    """The path and headers of a request take precedence over its body."""
    assert detect(HELLO, path="/v1/messages") == "anthropic"
    assert detect(HELLO, headers={"Anthropic-Version": "2023-06-01"}) == "anthropic"
    assert detect({}, path="/v1beta/models/m:generateContent?alt=sse") == "gemini"
    assert detect(HELLO, path="/api/chat") == "ollama"


@pytest.mark.parametrize("body", [{}, {"model": "m"}, "[]", "3"])
def test_an_undetectable_dialect_is_an_error(body: Any) -> None:
    """The error for a body without any sign asks for the dialect's name."""
    with pytest.raises(InvalidInputError, match="name it"):
        detect(body)


@pytest.mark.parametrize(
    "body",
    [
        {"model": "m", "input": "Hi", "generation_config": {"temperature": 0}},
        {"model": "m", "input": "Hi", "previous_interaction_id": "v1_1"},
        {"model": "m", "input": [{"type": "user_input", "content": []}]},
        {"model": "m", "input": [{"role": "user", "content": "Hi"}, {"role": "model"}]},
        {"id": "v1_1", "object": "interaction", "status": "completed", "steps": []},
    ],
)
def test_interactions_are_not_responses(body: Any) -> None:
    """Gemini's Interactions API has an `input`, too; the error says it is unsupported."""
    with pytest.raises(InvalidInputError, match="Interactions"):
        detect(body)


def test_the_interactions_path_is_unsupported() -> None:
    """The path identifies an Interactions request even if the body does not."""
    body = {"model": "m", "input": "Hi"}
    assert detect(body) == "openai-responses"
    with pytest.raises(InvalidInputError, match="Interactions"):
        detect(body, path="/v1beta/interactions?alt=sse")


def test_detection_loads_no_codec() -> None:
    """Detection needs only the descriptions of the dialects."""
    code = (
        "import sys, dragoman; dragoman.detect({'contents': []});"
        "print(*(name for name in sys.modules if name.endswith(('.codec', '.request'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.corpus
@pytest.mark.parametrize("dialect", dragoman.dialects())
def test_recorded_bodies_are_detected(corpus: Corpus, dialect: str) -> None:
    """At most 1% of recorded bodies, without paths, are detected as another dialect."""
    chosen = [body for body in bodies(corpus, dialect) if not _is_anybodys(dialect, body.wire)]
    wrong = [body for body in chosen if detect(body.wire) != dialect]
    assert chosen
    assert len(wrong) <= len(chosen) / 100


def _is_anybodys(dialect: str, wire: Mapping[str, Any]) -> bool:
    """Whether an Ollama body is also valid OpenAI Chat, and detected as that."""
    both = {"model", "messages", "stream", "tools", "temperature"}
    return dialect == "ollama" and wire.keys() <= both and detect(wire) == "openai-chat"
