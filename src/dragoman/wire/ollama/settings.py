"""Settings: sampling (`options`), output format (`format`) and thinking (`think`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.requests import Output, Sampling, ThinkingConfig
from dragoman.wire.json_values import is_object
from dragoman.wire.losses import NEAREST_EFFORT
from dragoman.wire.ollama.dialect import EFFORTS, ORIGIN
from dragoman.wire.settings_table import (
    decode_settings,
    encode_settings,
    flag,
    lose_settings,
    number,
    setting,
    texts,
    whole,
)
from dragoman.wire.writing import Writing

# --- sampling settings, W108


def _count(value: Any) -> int | None:
    """A positive integer. Zero and negative values mean something else: no limit, all tokens."""
    return found if (found := whole(value)) and found > 0 else None


_OPTIONS = (
    setting("temperature", "temperature", number),
    setting("top_p", "top_p", number),
    setting("presence_penalty", "presence_penalty", number),
    setting("frequency_penalty", "frequency_penalty", number),
    setting("num_predict", "max_tokens", _count),
    setting("top_k", "top_k", _count),
    setting("seed", "seed", whole),
    setting("stop", "stop", lambda value: texts(value) or None),
)
_BESIDE_OPTIONS = (
    setting("logprobs", "logprobs", flag),
    setting("top_logprobs", "top_logprobs", whole),
)
SAMPLING = {
    "options": {key: f"sampling.{name}" for key, name, _ in _OPTIONS},
    **{key: f"sampling.{name}" for key, name, _ in _BESIDE_OPTIONS},
}
"""Request settings by wire field."""
_NAMES = {key: name for key, name, _ in _OPTIONS}


def decode_sampling(wire: Mapping[str, Any], known: set[str]) -> tuple[Sampling, dict[str, Any]]:
    """Decode the sampling settings; also returns the remaining options."""
    options = wire.get("options")
    options = options if is_object(options) else {}
    read = decode_settings(options, _OPTIONS) if options else {}
    beside = decode_settings(wire, _BESIDE_OPTIONS)
    known.update(beside, ("options",) if read else ())
    left = {key: value for key, value in options.items() if _NAMES.get(key) not in read}
    return Sampling(**read, **beside), left


def encode_sampling(sampling: Sampling, body: dict[str, Any], writing: Writing) -> None:
    """Encode the sampling settings."""
    if options := encode_settings(sampling, _OPTIONS):
        body["options"] = options
    body |= encode_settings(sampling, _BESIDE_OPTIONS)
    if sampling.choices is not None and sampling.choices > 1:
        writing.lose("sampling.choices", "only one choice is supported")


# --- output format


def decode_output(wire: Any) -> Output | None:
    """Decode `format`; None if it is missing or unknown."""
    if wire == "json":
        return Output(format="json")
    return Output(format="schema", schema=wire, origin=ORIGIN) if is_object(wire) else None


def encode_output(output: Output, body: dict[str, Any], writing: Writing) -> None:
    """Encode `format`; plain text needs none."""
    if output.format == "text":
        return
    if output.format == "schema" and output.schema is not None:
        body["format"] = writing.schemas.labelled(output.schema, output)
        return
    body["format"] = "json"
    if output.format == "schema":
        writing.lose("output", "no schema is given; any JSON is requested")
    writing.schemas.lose_labels(output)


# --- thinking: W106

_NEAREST = {"minimal": "low", "xhigh": "max"}


def decode_thinking_config(wire: Any) -> ThinkingConfig | None:
    """Decode `think`; None if it is missing or unknown."""
    if isinstance(wire, bool):
        return ThinkingConfig(enabled=wire)
    return ThinkingConfig(effort=wire) if isinstance(wire, str) and wire in EFFORTS else None


def encode_thinking_config(config: ThinkingConfig, body: dict[str, Any], writing: Writing) -> None:
    """Encode `think`, which is a boolean or an effort."""
    effort = config.effort
    if config.enabled is False or effort == "none":
        body["think"] = False
    elif effort is not None and (level := _NEAREST.get(effort, effort)) in EFFORTS:
        body["think"] = level
        if level != effort:
            writing.repair("thinking.effort", "W106", "retyped", NEAREST_EFFORT)
    elif config.enabled or config.budget is not None or effort is not None:
        body["think"] = True
        if effort is not None:
            writing.lose("thinking.effort", "this effort is not supported")
    reason = "thinking can only be switched on or off or given an effort"
    lose_settings(config, ("budget", "visible", "summary"), writing, "thinking", reason)
