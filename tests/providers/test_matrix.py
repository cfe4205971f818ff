"""Any history, made under any dialect, is taken by every provider's models: their rules say so."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman import Request, Target
from dragoman.providers.registry import provider_names
from tests.corpus import Corpus, current_tier
from tests.wire.recorded import bodies
from tests.wire.refused import FAULTY
from tests.wire.test_matrix import _can_be_said
from tests.wire.test_matrix_random import histories, touched

# One model of every family, and one that nobody knows; behind `@`, a dialect that is not its first.
MODELS = (
    "openai:gpt-4o", "openai:gpt-4o-search-preview", "openai:o3-mini", "openai:o4-mini",
    "openai:o1-mini", "openai:gpt-5", "openai:gpt-5.1", "openai:gpt-5.2", "openai:gpt-5-chat",
    "openai:gpt-4o@openai-responses", "openai:o3-mini@openai-responses",
    "openai:gpt-4-turbo", "openai:o1-mini",
    "openai:gpt-5@openai-responses", "openai:gpt-5.1@openai-responses",
    "openai:gpt-5-pro", "openai:gpt-5.2-pro", "openai:gpt-5.3-chat-latest", "openai:gpt-5.5",
    "openai:gpt-5.6-sol@openai-responses", "openai:gpt-6-sol", "openai:gpt-6-astra",
    "openai:gpt-6.1-sol@openai-responses", "openai:gpt-7-foo", "openai:gpt-5-typo@openai-responses",
    "azure:who-knows", "azure:gpt-5@openai-responses",
    "groq:llama-3.3-70b-versatile", "groq:openai/gpt-oss-20b", "groq:qwen/qwen3-32b",
    "groq:qwen/qwen3.5-9b", "groq:deepseek-r1-distill-llama-70b", "groq:who-knows",
    "vllm:Qwen/Qwen3-8B", "vllm:mistralai/Mistral-7B-Instruct-v0.3", "vllm:google/gemma-2-9b-it",
    "vllm:who-knows", "vllm:who-knows@openai-responses", "vllm:who-knows@anthropic",
    "deepseek:deepseek-v4-flash", "deepseek:deepseek-chat", "deepseek:deepseek-chat@anthropic",
    "openrouter:anthropic/claude-sonnet-4.5", "openrouter:who-knows@openai-responses",
    "xai:grok-4-fast", "xai:grok-3-mini", "xai:grok-2", "xai:grok-4.3",
    "xai:grok-4.5", "xai:grok-4.7", "xai:grok-4-fast@openai-responses",
    "mistral:mistral-large-latest@openai-responses", "mistral:mistral-large-latest",
    "mistral:magistral-medium-latest",
    "llama.cpp:who-knows", "llama.cpp:Qwen3-1.7B", "llama.cpp:mistral-7b", "llama.cpp:gemma-2-2b",
    "llama.cpp:who-knows@openai-responses", "llama.cpp:who-knows@anthropic",
    "lmstudio:who-knows", "lmstudio:qwen/qwen3-8b", "lmstudio:mistral-7b", "lmstudio:gemma-2-2b",
    "lmstudio:who-knows@openai-responses",
    "ollama:qwen3", "ollama:qwen3@openai-chat", "ollama:qwen3@anthropic",
    "openai-compatible:who-knows", "openai-compatible:Qwen/Qwen3-8B",
    "openai-compatible:mistral-small", "openai-compatible:google/gemma-2-9b-it",
    "perplexity:sonar",
    "anthropic:claude-3-5-haiku-latest", "anthropic:claude-3-7-sonnet-latest",
    "anthropic:claude-opus-4-1", "anthropic:claude-sonnet-4-5", "anthropic:claude-opus-4-5",
    "anthropic:claude-opus-4-6", "anthropic:claude-opus-4-8", "anthropic:who-knows",
    "anthropic:claude-opus-5-5", "anthropic:claude-sonnet-5-5", "anthropic:claude-fable-5-2",
    "anthropic:claude-sonet-4-5", "anthropic:claude-2.0", "anthropic:claude-3-haiku-20240307",
    "anthropic:claude-mythos-5",
    "google:gemini-1.5-flash", "google:gemini-2.0-flash", "google:gemini-2.5-flash",
    "google:gemini-2.5-pro", "google:gemini-2.5-flash-lite", "google:gemini-3.1-pro-preview",
    "google:gemini-3-pro-preview", "google:who-knows",
    "google:gemini-2.5-flash-image", "google:gemini-3.1-flash-lite-image", "google:gemini-4-argon",
    "google:gemini-4-carbon",
    "vertex:claude-3-7-sonnet@20250219", "vertex:claude-sonnet-4-5@20250929",
    "vertex:claude-3-5-haiku@20241022", "vertex:claude-opus-4-1@20250805",
    "vertex:claude-opus-4-5@20251101", "vertex:claude-opus-4-6", "vertex:claude-opus-4-8",
    "vertex:gemini-2.5-pro", "vertex:gemini-1.5-pro", "vertex:gemini-2.0-flash",
    "vertex:gemini-3-pro-preview",
)  # fmt: skip
_SPARSE = 7
"""Recordings are many, and so are models: each is tried on every seventh, or on all (extended)."""


def _target(name: str) -> Target:
    provider, _, rest = name.partition(":")
    model, _, dialect = rest.rpartition("@")
    if dialect in dragoman.dialects():
        return dragoman.provider(provider).target(model, dialect)
    return dragoman.provider(provider).target(rest)


def _is_asked(name: str, model: object) -> bool:
    """Whether it is the model that was asked, with or without a date."""
    named = name.partition(":")[2]
    return isinstance(model, str) and (named.startswith(model) or model.startswith(named))


def _broken(request: Request, name: str) -> list[tuple[str, str]]:
    """The rules that a request breaks at error level, once it is encoded for a model."""
    target = _target(name)
    speaker: Any = dragoman.dialect(target.dialect)
    encoded = speaker.encode_request(request.replace(model=target.model), target)
    path = encoded.path if target.dialect == "gemini" else None
    found = speaker.check(encoded.body, path=path, target=target)
    return [(one.rule, one.path) for one in found if one.severity == "error"]


def test_every_family_has_its_model() -> None:
    """No provider, no dialect of one and no family of models is left out."""
    targets = [_target(name) for name in MODELS]
    providers = [dragoman.provider(name) for name in provider_names()]
    for provider in providers:
        spoken = {target.dialect for target in targets if target.provider == provider.name}
        assert spoken == set(provider.dialects), provider.name
    for family in {family for provider in providers for family in provider.families}:
        served = {one.name for one in providers if family in one.families}
        assert any(
            target.provider in served
            and family.covers(target.model or "")
            and family.dialect in (None, target.dialect)
            for target in targets
        ), family.pattern


@pytest.mark.corpus
@pytest.mark.parametrize("source", dragoman.dialects())
def test_recorded_histories_can_be_sent_to_every_model(corpus: Corpus, source: str) -> None:
    """A history recorded with one model can be encoded for every other one."""
    found = []
    step = 1 if current_tier() == "extended" else _SPARSE
    for index, body in enumerate(bodies(corpus, source)):
        request = body.decode()
        if body.recording.row.file in FAULTY:
            continue
        if isinstance(request, Request) and _can_be_said(request):
            found += [
                (name, body.recording.row.file, *rule)
                for name in MODELS[index % step :: step]
                if not _is_asked(name, body.wire.get("model"))
                for rule in _broken(request, name)
            ]
    assert found == []


@given(name=st.sampled_from(MODELS), request=histories())
def test_random_histories_are_taken_by_every_model(name: str, request: Request) -> None:
    """Out of order, half answered, with strange ids and thinking of anybody's."""
    assert _broken(touched(request, _target(name).dialect), name) == []
