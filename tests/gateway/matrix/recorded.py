"""Recorded answers of providers, used instead of generated ones where there are any."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from tests.corpus import Corpus, CorpusNotFoundError, Row
from tests.gateway.matrix.behind import Answer

_FOLDERS = {
    "openai-chat": ("openai_chat", "other_openai_compatible"),
    "openai-responses": ("openai_responses",),
    "anthropic": ("anthropic",),
    "gemini": ("gemini",),
    "ollama": ("ollama",),
}
_HOSTS = frozenset(
    {
        "api.openai.com",
        "openrouter.ai",
        "api.anthropic.com",
        "generativelanguage.googleapis.com",
        "localhost:11434",
    }
)
_ELSEWHERE = frozenset(
    {
        *("compaction", "interactions_api", "citations", "image_out", "server_state", "truncated"),
        *("logprobs", "multi_choice", "audio_out", "refusal", "ollama_generate"),
        *("legacy_function_call", "multi_system"),
    }
)
"""Features that the scenarios are not about."""
_MOST = 12_000  # bytes of a recording


class Wanted(NamedTuple):
    """Features that a recording must have, and must not have."""

    features: frozenset[str]
    absent: frozenset[str]


def wanted(features: str, absent: str) -> Wanted:
    """The same, from strings of feature names."""
    return Wanted(frozenset(features.split()), frozenset(absent.split()))


SCENARIOS = {
    "text": wanted("text", "tool_call reasoning tools_offered structured_output"),
    "tools": wanted("tool_call", "parallel_tool_calls reasoning"),
    "parallel tools": wanted("parallel_tool_calls", "reasoning"),
    "thinking": wanted("reasoning text", "tool_call builtin_tools"),
    "thinking and tools": wanted("reasoning tool_call", "parallel_tool_calls"),
}
"""The features of usable recordings, by scenario."""


def recorded(back: str, scenario: str, *, stream: bool) -> tuple[Answer, str] | None:
    """The first recording of a scenario and its model, or None."""
    asked = SCENARIOS.get(scenario)
    corpus = _corpus()
    if asked is None or corpus is None:
        return None
    for found in corpus.select(
        provider_api=_FOLDERS[back], tier="extended", streaming=stream, status=200,
        fidelity="wire", features=asked.features,
    ):  # fmt: skip
        if _fits(found.row, back, asked):
            body = found.response_stream if stream else _whole(found.content)
            if body is not None:
                return Answer(body), found.row.model
    return None


def _whole(content: dict[str, object]) -> bytes | None:
    import json

    response = content["response"]
    assert isinstance(response, dict)
    return json.dumps(response["body"]).encode() if isinstance(response.get("body"), dict) else None


def _fits(row: Row, back: str, asked: Wanted) -> bool:
    absent = asked.absent | _ELSEWHERE
    if back != "gemini":  # all its tools have this mark
        absent |= {"builtin_tools"}
    is_small = row.size < _MOST and bool(row.model)
    return is_small and row.host in _HOSTS and not row.features & absent


@cache
def _corpus() -> Corpus | None:
    try:
        return Corpus.open()
    except CorpusNotFoundError:
        return None
