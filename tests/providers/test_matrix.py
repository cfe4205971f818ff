"""Any history, made under any dialect, is taken by every provider's models: their rules say so."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman import Request
from tests.corpus import Corpus
from tests.wire.recorded import bodies
from tests.wire.test_matrix import _can_be_said
from tests.wire.test_matrix_random import histories
from tests.wire.test_refused import FAULTY

# One model of every family, and one that nobody knows.
MODELS = (
    "openai:gpt-4o", "openai:o3-mini", "openai:o1-mini", "openai:gpt-5", "openai:gpt-5.2",
    "azure:who-knows", "groq:llama-3.3-70b-versatile", "groq:openai/gpt-oss-20b",
    "vllm:Qwen/Qwen3-8B", "vllm:mistralai/Mistral-7B-Instruct-v0.3", "vllm:google/gemma-2-9b-it",
    "deepseek:deepseek-v4-flash", "deepseek:deepseek-chat",
    "openrouter:anthropic/claude-sonnet-4.5",
    "xai:grok-4-fast", "mistral:mistral-large-latest", "llama.cpp:who-knows", "lmstudio:who-knows",
    "ollama:qwen3", "openai-compatible:who-knows", "perplexity:sonar",
    "anthropic:claude-3-5-haiku-latest", "anthropic:claude-sonnet-4-5", "anthropic:claude-opus-4-6",
    "anthropic:claude-opus-4-8", "google:gemini-2.5-flash", "google:gemini-3-pro-preview",
    "vertex:claude-3-7-sonnet@20250219", "vertex:gemini-2.5-pro",
)  # fmt: skip


def _broken(request: Request, name: str) -> list[tuple[str, str]]:
    """The rules that a request breaks at error level, once it is encoded for a model."""
    provider, _, model = name.partition(":")
    target = dragoman.provider(provider).target(model)
    speaker: Any = dragoman.dialect(target.dialect)
    encoded = speaker.encode_request(request.replace(model=model), target)
    path = encoded.path if target.dialect == "gemini" else None
    found = speaker.check(encoded.body, path=path, target=target)
    return [(one.rule, one.path) for one in found if one.severity == "error"]


@pytest.mark.corpus
@pytest.mark.parametrize("source", dragoman.dialects())
def test_recorded_histories_are_taken_by_every_model(corpus: Corpus, source: str) -> None:
    """Whoever was asked, anyone else can be asked instead."""
    found = []
    for body in bodies(corpus, source):
        request = body.decode()
        if body.recording.row.file in FAULTY:
            continue
        if isinstance(request, Request) and _can_be_said(request):
            found += [
                (name, body.recording.row.file, *rule)
                for name in MODELS
                if not name.endswith(f":{body.wire.get('model')}")
                for rule in _broken(request, name)
            ]
    assert found == []


@given(name=st.sampled_from(MODELS), request=histories())
def test_random_histories_are_taken_by_every_model(name: str, request: Request) -> None:
    """Out of order, half answered, with strange ids and thinking of anybody's."""
    assert _broken(request, name) == []
