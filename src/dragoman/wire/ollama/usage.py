"""Token counts, and the durations beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.frozen import freeze_mapping
from dragoman.model.usage import Usage
from dragoman.wire import overlay
from dragoman.wire.ollama.spelling import NAME, is_integer

_PROMPT, _ANSWER = "prompt_eval_count", "eval_count"
METRICS = ("total_duration", "load_duration", _PROMPT, "prompt_eval_duration", _ANSWER,
           "eval_duration")  # fmt: skip


def decode_usage(wire: Mapping[str, Any], known: set[str]) -> Usage | None:
    """The counts of a response; None where it has none.

    A server that has cached all of a prompt leaves its count out, and so do we what is zero.
    """
    prompt, answer = _count(wire, _PROMPT), _count(wire, _ANSWER)
    if prompt is None and answer is None:
        return None
    left = {
        key: wire[key]
        for key in METRICS
        if key in wire and not (key == _PROMPT and prompt) and not (key == _ANSWER and answer)
    }
    known.update(key for key in METRICS if key in wire)
    extras = freeze_mapping({NAME: left} if left else {}, "the wire")
    return Usage(input=prompt or 0, output=answer or 0, extras=extras)


def encode_usage(usage: Usage) -> dict[str, Any]:
    """The counts, in the order in which the server writes them."""
    counts = {_PROMPT: usage.total_input, _ANSWER: usage.total_output}
    body = {**overlay.overlay(usage.extras, NAME)}
    body.update((key, count) for key, count in counts.items() if count)
    return {key: body[key] for key in (*METRICS, *body) if key in body}


def _count(wire: Mapping[str, Any], key: str) -> int | None:
    value = wire.get(key)
    return value if is_integer(value) and value >= 0 else None
