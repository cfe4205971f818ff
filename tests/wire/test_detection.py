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
def test_bodies_give_their_dialect_away(body: Any, found: str) -> None:
    """Fields, roles, blocks and tools tell the dialect."""
    assert detect(body) == found


def test_paths_and_headers_decide() -> None:
    """Where a request was sent says more than what is in it."""
    assert detect(HELLO, path="/v1/messages") == "anthropic"
    assert detect(HELLO, headers={"Anthropic-Version": "2023-06-01"}) == "anthropic"
    assert detect({}, path="/v1beta/models/m:generateContent?alt=sse") == "gemini"
    assert detect(HELLO, path="/api/chat") == "ollama"


@pytest.mark.parametrize("body", [{}, {"model": "m"}, "[]", "3"])
def test_what_nothing_tells_is_asked_for(body: Any) -> None:
    """A body without any sign is an error that asks for the name."""
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
def test_interactions_are_no_responses(body: Any) -> None:
    """Gemini's other API has an `input`, too: what nobody here speaks is said to be so."""
    with pytest.raises(InvalidInputError, match="Interactions"):
        detect(body)


def test_the_path_of_interactions_says_so() -> None:
    """Where the body alone could be anybody's."""
    body = {"model": "m", "input": "Hi"}
    assert detect(body) == "openai-responses"
    with pytest.raises(InvalidInputError, match="Interactions"):
        detect(body, path="/v1beta/interactions?alt=sse")


def test_no_codec_is_loaded_for_it() -> None:
    """Descriptions are enough, of all dialects."""
    code = (
        "import sys, dragoman; dragoman.detect({'contents': []});"
        "print(*(name for name in sys.modules if name.endswith(('.codec', '.request'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.corpus
@pytest.mark.parametrize("dialect", dragoman.dialects())
def test_recorded_bodies_are_told_apart(corpus: Corpus, dialect: str) -> None:
    """Of recorded bodies, without their paths, not one in a hundred is taken for another's."""
    chosen = [body for body in bodies(corpus, dialect) if not _is_anybodys(dialect, body.wire)]
    wrong = [body for body in chosen if detect(body.wire) != dialect]
    assert chosen
    assert len(wrong) <= len(chosen) / 100


def _is_anybodys(dialect: str, wire: Mapping[str, Any]) -> bool:
    """Whether a body of Ollama's is one of OpenAI Chat's as well, and taken for it."""
    both = {"model", "messages", "stream", "tools", "temperature"}
    return dialect == "ollama" and wire.keys() <= both and detect(wire) == "openai-chat"
