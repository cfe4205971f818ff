"""Settings: sampling, thinking and output format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.requests import UNSAID, Output, Request, Sampling, ThinkingConfig
from dragoman.wire.anthropic.dialect import NAME, ORIGIN, Block, is_own
from dragoman.wire.anthropic.tools_schemas import ANTHROPIC_STRICT, MAX_OPTIONAL, MAX_UNIONS
from dragoman.wire.losses import NEAREST_EFFORT
from dragoman.wire.overlay import fields_of, overlay_of, with_overlay
from dragoman.wire.settings_table import (
    decode_settings,
    encode_settings,
    number,
    setting,
    texts,
    whole,
)
from dragoman.wire.writing import Writing

_OFF = ("disabled", "between_tools")  # with `between_tools` it only writes progress notes
_KINDS = ("enabled", "adaptive", *_OFF)
_EFFORTS = frozenset({"low", "medium", "high", "xhigh", "max"})
_VISIBLE = {"summarized": True, "omitted": False}
_FOREIGN_SAMPLING = ("seed", "presence_penalty", "frequency_penalty", "choices", "logprobs",
                     "top_logprobs")  # fmt: skip
_LEGACY = "output_format"  # held the schema before output_config.format
_SAMPLING = (
    setting("max_tokens", "max_tokens", whole),
    setting("temperature", "temperature", number),
    setting("top_p", "top_p", number),
    setting("top_k", "top_k", whole),
    setting("stop_sequences", "stop", texts),
)
SETTINGS = {
    **{key: f"sampling.{name}" for key, name, _ in _SAMPLING},
    "thinking": "thinking",
    "output_config": {"effort": "thinking.effort", "format": "output"},
    _LEGACY: "output",
}
"""Request settings by wire field."""


# --- sampling


def decode_sampling(wire: Block) -> Sampling:
    """Decode the sampling settings; invalid values stay in the request's extras."""
    found = decode_settings(wire, _SAMPLING)
    return Sampling(**found) if found else UNSAID


def _encode_sampling(sampling: Sampling, writing: Writing) -> Block:
    if sampling is UNSAID:
        return {}
    for name in _FOREIGN_SAMPLING:
        value = getattr(sampling, name)
        if value and not (name == "choices" and value == 1):
            writing.lose(f"sampling.{name}", "this setting is not supported")
    return encode_settings(sampling, _SAMPLING)


# --- thinking

MIN_TOP_P = 0.95
"""Minimum `top_p` with thinking on (W59)."""
MIN_BUDGET = 1024
"""Minimum thinking budget (W59); smaller ones are raised to it."""


def decode_thinking_config(wire: Block) -> ThinkingConfig | None:
    """Decode `thinking`, and the effort in `output_config`."""
    effort = _effort(wire.get("output_config"))
    thinking = wire.get("thinking")
    kind = thinking.get("type") if isinstance(thinking, dict) else None
    if not isinstance(thinking, dict) or kind not in _KINDS:
        return None if effort is None else ThinkingConfig(effort=effort)
    display = thinking.get("display")
    config = ThinkingConfig(
        enabled=kind not in _OFF,
        effort=effort,
        budget=whole(thinking.get("budget_tokens")) if kind == "enabled" else None,
        visible=_VISIBLE.get(display) if type(display) is str else None,
    )
    extras = overlay_of(thinking, (), NAME, _thinking(config))
    return config.replace(extras=extras) if extras else config


def _encode_thinking_config(config: ThinkingConfig, writing: Writing) -> Block:
    """Encode `thinking`, and the effort in `output_config`."""
    wire: Block = {}
    thinking = thinking_field(config)
    if thinking.get("type") == "disabled":
        thinking["type"] = writing.target.thinking.off_word
    if config.budget is not None and thinking.get("budget_tokens", config.budget) != config.budget:
        writing.lose("thinking.budget", "raised to the minimum budget")
    if thinking:
        wire["thinking"] = thinking
    if config.visible is not None and not thinking:
        writing.lose("thinking.visible", "only supported while thinking is on")
    if config.summary is not None:
        writing.lose("thinking.summary", "summaries can only be shown or hidden")
    effort = "low" if config.effort == "minimal" else config.effort
    if effort in _EFFORTS:
        wire["output_config"] = {"effort": effort}
    elif effort not in {None, "none"}:
        writing.lose("thinking.effort", "this effort is not supported")
    if effort != config.effort:
        writing.repair("thinking.effort", "W59", "retyped", NEAREST_EFFORT)
    return wire


def thinking_field(config: ThinkingConfig) -> Block:
    """The `thinking` field, including unknown fields from the wire."""
    wire = with_overlay(_thinking(config), config.extras, NAME)
    budget = wire.get("budget_tokens")
    if config.budget is not None and type(budget) is int and budget != config.budget:
        # The original may be another too small value with the same meaning.
        wire["budget_tokens"] = max(config.budget, MIN_BUDGET)
    return wire


def _effort(output_config: Any) -> str | None:
    effort = output_config.get("effort") if isinstance(output_config, dict) else None
    return effort if type(effort) is str and effort in _EFFORTS else None


def _thinking(config: ThinkingConfig) -> Block:
    enabled = config.enabled
    if enabled is None and (config.effort == "none" or config.budget is not None):
        enabled = config.effort != "none"
    if not enabled:
        return {} if enabled is None else {"type": "disabled"}
    wire: Block = {"type": "adaptive"}
    if config.budget is not None:
        wire = {"type": "enabled", "budget_tokens": max(config.budget, MIN_BUDGET)}
    if config.visible is not None:
        wire["display"] = "summarized" if config.visible else "omitted"
    return wire


# --- output format


def decode_output(wire: Block) -> Output | None:
    """Decode the output schema, from `output_config` or from the older field."""
    config, place = wire.get("output_config"), "format"
    found = config.get(place) if isinstance(config, dict) else None
    if found is None:
        found, place = wire.get(_LEGACY), _LEGACY
    if not isinstance(found, dict) or found.get("type") != "json_schema":
        return None
    schema = found.get("schema")
    if not isinstance(schema, dict):
        return None
    output = Output(format="schema", schema=schema, origin=ORIGIN)
    left = fields_of(overlay_of(found, (), NAME, _schema_format(schema)), NAME)
    if place == _LEGACY or left:
        output = output.replace(extras={NAME: {place: left}})
    return output


def _encode_output(output: Output, writing: Writing) -> Block:
    """Encode the schema as `output_config`; plain text needs no field."""
    if output.schema is None:
        if output.format != "text":
            writing.lose("output", "JSON output without a schema is not supported")
        return {}
    schema = output.schema if is_own(output.origin) else _accepted(output.schema, writing)
    if schema is None:
        return {}
    schema = writing.schemas.labelled(schema, output)
    ours = fields_of(output.extras, NAME)
    place = _LEGACY if _LEGACY in ours else "format"
    wire = with_overlay({place: _schema_format(schema)}, output.extras, NAME)
    return wire if place == _LEGACY else {"output_config": wire}


def _accepted(schema: Mapping[str, Any], writing: Writing) -> Mapping[str, Any] | None:
    """Another dialect's schema, compiled to what strict output accepts; None if not possible."""
    made = writing.schemas.projected(schema, ANTHROPIC_STRICT, "output.schema")
    if made.weight.optional > MAX_OPTIONAL or made.weight.unions > MAX_UNIONS:
        reason = f"it has more than {MAX_OPTIONAL} optional properties or {MAX_UNIONS} unions"
        writing.lose("output.schema", reason)
        return None
    writing.schemas.answer(made)
    return made.schema


def _schema_format(schema: Mapping[str, Any]) -> Block:
    return {"type": "json_schema", "schema": schema}


def encode_request_settings(request: Request, writing: Writing) -> Block:
    """Encode all settings of a request as body fields."""
    wire = _encode_sampling(request.sampling, writing)
    if request.output is not None:
        wire |= _encode_output(request.output, writing)
    if request.thinking is not None:
        thinking = _encode_thinking_config(request.thinking, writing)
        if "output_config" in wire and "output_config" in thinking:
            thinking["output_config"] |= wire["output_config"]
        wire |= thinking
    return wire


def is_on(wire: Any) -> bool:
    """Whether a `thinking` field turns thinking on with a budget."""
    return isinstance(wire, dict) and wire.get("type") == "enabled"
