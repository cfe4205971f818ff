"""Reads the model, usage and id of a response that is passed through unchanged."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Raw, Struct

from dragoman.model.usage import Usage
from dragoman.wire.lane.plain import Summary

_Zero = Literal[0] | None


class _Prompt(Struct, forbid_unknown_fields=True, gc=False):
    cached_tokens: int | None = None
    audio_tokens: _Zero = None


class _Completion(Struct, forbid_unknown_fields=True, gc=False):
    reasoning_tokens: int | None = None
    audio_tokens: _Zero = None
    accepted_prediction_tokens: _Zero = None
    rejected_prediction_tokens: _Zero = None


class _Counts(Struct, forbid_unknown_fields=True, gc=False):
    """Usage with known fields only: an unknown one might affect the price."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: _Prompt | None = None
    completion_tokens_details: _Completion | None = None


class _ResponseHead(Struct, gc=False):
    choices: Raw
    usage: _Counts
    model: str
    id: str | None = None
    service_tier: Literal["default", "auto", "standard"] | None = None
    error: None = None


_read = msgspec.json.Decoder(_ResponseHead).decode


def summary(body: bytes) -> Summary | None:
    """The summary of a response body; None if the body has to be decoded in full."""
    try:
        head = _read(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    usage = _usage(head.usage)
    return None if usage is None else Summary(head.model, usage, head.id)


def _usage(counts: _Counts) -> Usage | None:
    prompt_details, completion_details = (
        counts.prompt_tokens_details,
        counts.completion_tokens_details,
    )
    read = 0 if prompt_details is None else prompt_details.cached_tokens or 0
    thinking = 0 if completion_details is None else completion_details.reasoning_tokens or 0
    prompt, completion, total = counts.prompt_tokens, counts.completion_tokens, counts.total_tokens
    # xAI counts thinking in addition to the completion (see `response.decode_usage`).
    is_plain = 0 <= read <= prompt and 0 <= thinking <= completion and total == prompt + completion
    return (
        Usage(prompt - read, completion - thinking, read, 0, thinking, total) if is_plain else None
    )
