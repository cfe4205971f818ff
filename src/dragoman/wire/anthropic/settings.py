"""The settings of a request as rows: sampling, thinking, output format, service."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from dragoman.model.requests import Output, ThinkingConfig
from dragoman.wire.anthropic.dialect import NAME, ORIGIN, Block, is_own
from dragoman.wire.anthropic.tools import ANTHROPIC_STRICT, MAX_OPTIONAL, MAX_UNIONS
from dragoman.wire.losses import NEAREST_EFFORT
from dragoman.wire.overlay import fields_of, overlay_of, with_overlay
from dragoman.wire.overlay_edits import PartlyRead, Places
from dragoman.wire.rows import FLAG, NUMBER, OBJECT, TEXT, TEXTS, WHOLE, Row, Value
from dragoman.wire.settings_rows import Settings
from dragoman.wire.shared_settings import tiers
from dragoman.wire.writing import Writing

# --- thinking

MIN_TOP_P = 0.95
"""Minimum `top_p` with thinking on (W59)."""
MIN_BUDGET = 1024
"""Minimum thinking budget (W59); smaller ones are raised to it."""
_OFF = ("disabled", "between_tools")  # with `between_tools` it only writes progress notes
_KINDS = ("enabled", "adaptive", *_OFF)
_EFFORTS = frozenset({"low", "medium", "high", "xhigh", "max"})
_VISIBLE = {"summarized": True, "omitted": False}


def _read_thinking(wire: Block) -> dict[str, Any] | None:
    kind, display, budget = wire.get("type"), wire.get("display"), wire.get("budget_tokens")
    if kind not in _KINDS:
        return None
    fields: dict[str, Any] = {
        "enabled": kind not in _OFF,
        "budget": budget if kind == "enabled" and WHOLE.passes(budget) else None,
        "visible": _VISIBLE.get(display) if type(display) is str else None,
    }
    extras = overlay_of(wire, (), NAME, _thinking(ThinkingConfig(**fields)))
    return {**fields, "extras": extras} if extras else fields


def _write_thinking(config: ThinkingConfig, writing: Writing) -> Block | None:
    wire = thinking_field(config)
    if wire.get("type") == "disabled":
        wire["type"] = writing.target.thinking.off_word
    if config.budget is not None and wire.get("budget_tokens", config.budget) != config.budget:
        writing.lose("thinking.budget", "raised to the minimum budget")
    if config.is_shown is not None and not wire:
        name = "summary" if config.visible is None else "visible"
        writing.lose(f"thinking.{name}", "only supported while thinking is on")
    else:
        writing.lose_summary(config)
    return wire or None


def thinking_field(config: ThinkingConfig) -> Block:
    """The `thinking` field, including unknown fields from the wire."""
    wire = with_overlay(_thinking(config), config.extras, NAME)
    budget = wire.get("budget_tokens")
    if config.budget is not None and type(budget) is int and budget != config.budget:
        # The original may be another too small value with the same meaning.
        wire["budget_tokens"] = max(config.budget, MIN_BUDGET)
    return wire


def _thinking(config: ThinkingConfig) -> Block:
    enabled = config.enabled
    if enabled is None and (config.effort == "none" or config.budget is not None):
        enabled = config.effort != "none"
    if not enabled:
        return {} if enabled is None else {"type": "disabled"}
    wire: Block = {"type": "adaptive"}
    if config.budget is not None:
        wire = {"type": "enabled", "budget_tokens": max(config.budget, MIN_BUDGET)}
    if config.is_shown is not None:
        wire["display"] = "summarized" if config.is_shown else "omitted"
    return wire


def is_on(wire: Any) -> bool:
    """Whether a `thinking` field turns thinking on with a budget."""
    return isinstance(wire, dict) and wire.get("type") == "enabled"


def may_think(wire: Any) -> bool:
    """Whether a `thinking` field turns thinking on, with a budget or adaptive."""
    return isinstance(wire, dict) and wire.get("type") in ("enabled", "adaptive")


def _read_effort(effort: str) -> str | None:
    return effort if effort in _EFFORTS else None


def _write_effort(effort: str, writing: Writing) -> str | None:
    nearest = "low" if effort == "minimal" else effort
    if nearest not in _EFFORTS and nearest != "none":
        writing.lose("thinking.effort", "this effort is not supported")
    if nearest != effort:
        writing.repair("thinking.effort", "W59", "retyped", NEAREST_EFFORT)
    return _read_effort(nearest)


# --- output format

_LEGACY = "output_format"  # held the schema before output_config.format


def _read_output(place: str, found: Block) -> dict[str, Any] | None:
    schema = found.get("schema")
    if found.get("type") != "json_schema" or not isinstance(schema, dict):
        return None
    output = {"format": "schema", "schema": schema, "origin": ORIGIN}
    left = fields_of(overlay_of(found, (), NAME, _schema_format(schema)), NAME)
    is_noted = place == _LEGACY or left
    return {**output, "extras": {NAME: {place: left}}} if is_noted else output


def _write_output(place: str, output: Output, writing: Writing) -> Block | None:
    """Encode the schema; plain text needs no field."""
    if (place == _LEGACY) is not (_LEGACY in fields_of(output.extras, NAME)):
        return None
    if output.format == "text":
        return None
    if output.format == "json" or output.schema is None:
        writing.lose("output", "JSON output without a schema is not supported")
        return None
    schema = output.schema if is_own(output.origin) else _accepted(output.schema, writing)
    if schema is None:
        return None
    wire = {place: _schema_format(writing.schemas.labelled(schema, output))}
    found: Block = with_overlay(wire, output.extras, NAME)[place]
    return found


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


def _output(wire: str) -> Row:
    place = wire.rpartition(".")[2]
    read, write = partial(_read_output, place), partial(_write_output, place)
    return Row(wire, "output", Value(OBJECT.test, read, write, "a JSON schema"), reports=True)


# --- service

_COMPACT = "compact_20260112"
_FAST = ("priority", "performance", "fast")
"""The tiers of other providers that Claude's fast mode is the nearest to."""
_TTLS = (None, "5m", "1h")


def _read_compaction(value: Block) -> int | None:
    match value:
        case {"edits": [{"trigger": {"value": int(found)}}]}:
            return found
        case _:
            return None


def _write_compaction(tokens: int) -> Block:
    return {"edits": [{"type": _COMPACT, "trigger": {"type": "input_tokens", "value": tokens}}]}


def _read_cache_options(value: Block) -> Block | None:
    """Decode top-level `cache_control`: caches the whole prompt, `implicit` in OpenAI's terms."""
    if value.get("type") != "ephemeral":
        return None
    return {"mode": "implicit", **{key: value[key] for key in value if key != "type"}}


def _write_cache_options(options: Mapping[str, Any]) -> Block | None:
    left = {key: value for key, value in options.items() if key != "mode"}
    is_supported = options.get("mode", "implicit") == "implicit" and left.get("ttl") in _TTLS
    return {"type": "ephemeral", **left} if is_supported and left.keys() <= {"ttl"} else None


def _read_thread(thread: Any) -> str | None:
    """Decode the server-side state: the id of the previous message, or of the thread."""
    if isinstance(thread, dict):
        thread = thread.get("previous_message_id", thread.get("id"))
    return thread if type(thread) is str else None


def _service(wire: str, field: str, value: Value) -> Row:
    return Row(wire, field, value, strict=True)


_TIER = Value(TEXT.test, *tiers(auto="auto", standard_only="standard"), about="a tier")
_SPEED = Value(
    TEXT.test,
    lambda speed: "priority" if speed == "fast" else None,
    lambda tier: "fast" if tier in _FAST else None,
    "a speed",
)
SETTINGS = Settings(
    Row("model", "model"),
    Row("max_tokens", "sampling.max_tokens", WHOLE),
    Row("temperature", "sampling.temperature", NUMBER),
    Row("top_p", "sampling.top_p", NUMBER),
    Row("top_k", "sampling.top_k", WHOLE),
    Row("stop_sequences", "sampling.stop", TEXTS),
    Row("thinking", "thinking", Value(OBJECT.test, _read_thinking, _write_thinking, "an object"),
        reports=True),
    Row("output_config.effort", "thinking.effort",
        Value(TEXT.test, _read_effort, _write_effort, "an effort"), reports=True),
    _output("output_config.format"), _output(_LEGACY),
    Row("stream", "stream", FLAG),
    Row("thread", "state.thread", Value("isinstance(v, (str, dict))", _read_thread,
        lambda thread: {"type": "continue", "previous_message_id": thread}, "a thread")),
    _service("metadata.user_id", "service.user", TEXT),
    _service("metadata.user_id", "service.safety_identifier", TEXT),
    _service("service_tier", "service.tier", _TIER),
    _service("speed", "service.tier", _SPEED),
    _service("cache_control", "service.cache_options",
             Value(OBJECT.test, _read_cache_options, _write_cache_options, "a cache control")),
    _service("context_management", "context_management.compact_at",
             Value(OBJECT.test, _read_compaction, _write_compaction, "an edit that compacts")),
)  # fmt: skip
PLACES: Places = {
    **SETTINGS.places,
    "thread": PartlyRead("state.thread"),
    "system": "system",
    "tools": "tools",
    "tool_choice": "tool_choice",
}
"""Request fields by wire field."""
