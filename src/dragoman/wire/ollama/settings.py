"""The settings of a request as rows: sampling (`options`), output format, thinking."""

from __future__ import annotations

from typing import Any

from dragoman.model.requests import Output, ThinkingConfig
from dragoman.wire.losses import NEAREST_EFFORT
from dragoman.wire.ollama.dialect import EFFORTS, ORIGIN
from dragoman.wire.overlay_edits import Places
from dragoman.wire.rows import FLAG, NUMBER, TEXTS, WHOLE, Row, Value
from dragoman.wire.settings_rows import Settings
from dragoman.wire.writing import Writing

# --- output format


def _read_output(wire: Any) -> dict[str, Any]:
    if wire == "json":
        return {"format": "json"}
    return {"format": "schema", "schema": wire, "origin": ORIGIN}


def _write_output(output: Output, writing: Writing) -> Any:
    """Encode `format`; plain text needs none."""
    if output.format == "text":
        return None
    if output.format == "schema" and output.schema is not None:
        return writing.schemas.labelled(output.schema, output)
    if output.format == "schema":
        writing.lose("output", "no schema is given; any JSON is requested")
    writing.schemas.lose_labels(output)
    return "json"


# --- thinking: W106

_NEAREST = {"minimal": "low", "xhigh": "max"}


def _read_thinking(wire: Any) -> dict[str, Any] | None:
    if isinstance(wire, bool):
        return {"enabled": wire}
    return {"effort": wire} if wire in EFFORTS else None


def _write_thinking(config: ThinkingConfig, writing: Writing) -> Any:
    """Encode `think`, which is a boolean or an effort."""
    reason = "thinking can only be switched on or off or given an effort"
    if config.budget is not None:
        writing.lose("thinking.budget", reason)
    if config.is_shown is False:
        writing.lose("thinking.visible", reason)
    writing.lose_summary(config)
    effort = config.effort
    if config.enabled is False or effort == "none":
        return False
    if effort is not None and (level := _NEAREST.get(effort, effort)) in EFFORTS:
        if level != effort:
            writing.repair("thinking.effort", "W106", "retyped", NEAREST_EFFORT)
        return level
    if effort is not None:
        writing.lose("thinking.effort", "this effort is not supported")
    return True if config.enabled or config.budget is not None or effort is not None else None


# --- all of them

# Zero and negative values mean something else: no limit, all tokens (W108).
_COUNT = Value("type(v) is int and 0 < v < 1 << 63", about="a positive integer")
_STOPS = TEXTS._replace(test=f"{TEXTS.test} and len(v) > 0", about="a list of strings")
SETTINGS = Settings(
    Row("model", "model"),
    Row("stream", "stream", FLAG),
    Row("format", "output", Value("v == 'json' or isinstance(v, dict)", _read_output,
        _write_output, "'json' or a schema"), reports=True),
    Row("think", "thinking", Value("isinstance(v, (bool, str))", _read_thinking, _write_thinking,
        "true, false or an effort"), reports=True),
    Row("options.temperature", "sampling.temperature", NUMBER),
    Row("options.top_p", "sampling.top_p", NUMBER),
    Row("options.presence_penalty", "sampling.presence_penalty", NUMBER),
    Row("options.frequency_penalty", "sampling.frequency_penalty", NUMBER),
    Row("options.num_predict", "sampling.max_tokens", _COUNT),
    Row("options.top_k", "sampling.top_k", _COUNT),
    Row("options.seed", "sampling.seed", WHOLE),
    Row("options.stop", "sampling.stop", _STOPS),
    Row("logprobs", "sampling.logprobs", FLAG),
    Row("top_logprobs", "sampling.top_logprobs", WHOLE),
)  # fmt: skip
PLACES: Places = {**SETTINGS.places, "tools": "tools"}
"""Request fields by wire field."""
