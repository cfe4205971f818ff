"""The settings of a request as rows: sampling, output format, reasoning, state, service."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from dragoman.model.frozen import EMPTY
from dragoman.model.requests import Output, Request, ThinkingConfig
from dragoman.wire.openai_responses.dialect import NAME, ORIGIN
from dragoman.wire.openai_rows import SERVICE, TIER
from dragoman.wire.openai_strict_schemas import openai_profiles
from dragoman.wire.overlay import note_of
from dragoman.wire.overlay_edits import PartlyRead, Places
from dragoman.wire.rows import FLAG, LIST, NUMBER, OBJECT, TEXT, WHOLE, Row, Value
from dragoman.wire.settings_rows import Settings
from dragoman.wire.shared_settings import NEAREST_TIERS
from dragoman.wire.writing import Writing

_LOGPROBS = "message.output_text.logprobs"
_ENCRYPTED_REASONING = "reasoning.encrypted_content"
NO_ENCRYPTED_REASONING = "unasked"
"""A note in a request's extras: see `omits_encrypted_reasoning`."""


# --- `include`: what a response has besides the usual


def omits_encrypted_reasoning(wire: Mapping[str, Any]) -> bool:
    """Whether a body has `store: false` but does not request encrypted reasoning."""
    include = wire.get("include")
    is_requested = isinstance(include, list) and _ENCRYPTED_REASONING in include
    return wire.get("store") is False and not is_requested


def is_stored(request: Request, own: Mapping[str, Any]) -> bool:
    """Whether the provider stores the request; `store` in the extras (`own`) takes precedence."""
    store = request.state.store if request.state is not None else None
    return own.get("store", store) is not False


def encode_include(request: Request, own: Mapping[str, Any]) -> dict[str, Any]:
    """Encode `include`; `own` has the original value.

    With `store: false`, reasoning can only be replayed if it is encrypted (W25, W26).
    """
    given = own.get("include")
    known = list(given) if isinstance(given, (list, tuple)) else []
    wanted = [_LOGPROBS] if request.sampling.logprobs else []
    if not is_stored(request, own) and not note_of(request.extras, NAME, NO_ENCRYPTED_REASONING):
        wanted.append(_ENCRYPTED_REASONING)
    kept = [name for name in known if name != _LOGPROBS or name in wanted]
    requested = [*kept, *(name for name in wanted if name not in known)]
    return {"include": requested} if requested or known else {}


# --- output format

_FORMATS = {"text": "text", "json": "json_object"}
_OF_SCHEMA = {"name": TEXT, "description": TEXT, "strict": FLAG}


def _read_output(wire: dict[str, Any]) -> dict[str, Any] | None:
    """Decode `text.format`; an unknown one stays in the extras."""
    match wire:
        case {"type": "text"}:
            return {"format": "text"}
        case {"type": "json_object"}:
            return {"format": "json"}
        case {"type": "json_schema", "schema": dict(schema), "name": str()}:
            found = {key: wire[key] for key, of in _OF_SCHEMA.items() if of.passes(wire.get(key))}
            return {"format": "schema", "schema": schema, "origin": ORIGIN, **found}
        case _:
            return None


def _write_output(output: Output, writing: Writing) -> dict[str, Any]:
    if output.format != "schema":
        return {"type": _FORMATS[output.format]}
    schema: Mapping[str, Any] = output.schema or EMPTY
    strict = output.strict
    if output.origin is None or output.origin.dialect != NAME:
        schema, is_strict = writing.schemas.output(output, openai_profiles(writing.target))
        strict = None if strict and not is_strict else strict
    form = {"type": "json_schema", "name": "answer" if output.name is None else output.name,
            "schema": schema, "description": output.description, "strict": strict}  # fmt: skip
    return {key: value for key, value in form.items() if value is not None}


def as_in_chat(form: Mapping[str, Any]) -> dict[str, Any]:
    """The format as some hosts want it, in `response_format`: a schema in a nested object."""
    inner = {key: value for key, value in form.items() if key != "type"}
    return {"type": form["type"], **({"json_schema": inner} if inner else {})}


# --- reasoning

_REASONING = ("effort", "summary")


def _read_reasoning(wire: dict[str, Any]) -> dict[str, Any] | None:
    return {key: wire[key] for key in _REASONING if type(wire.get(key)) is str} or None


def _write_reasoning(config: ThinkingConfig, writing: Writing) -> dict[str, Any] | None:
    if config.budget is not None:
        writing.lose("thinking.budget", "budgets are not supported; only an effort is")
    body = {key: value for key in _REASONING if (value := getattr(config, key)) is not None}
    if config.enabled is False:
        body["effort"] = "none"
    elif config.enabled and config.effort is None:
        reason = "thinking can't be switched on; only an effort is supported"
        writing.lose("thinking.enabled", reason)
    if config.visible is False:
        body.pop("summary", None)
    elif config.visible:
        body.setdefault("summary", "auto")
    return body or None


# --- types of values


def _id_of(value: Any) -> str | None:
    """The id of something given as an id or as an object."""
    found = value.get("id") if isinstance(value, dict) else value
    return found if type(found) is str else None


def _compact_at(value: Any) -> int | None:
    first = value[0] if len(value) == 1 and isinstance(value[0], dict) else {}
    found = first.get("compact_threshold")
    return found if type(found) is int else None


def _as_given(value: Any) -> Any:
    """When stored, 1 becomes 1.0; the overlay distinguishes them."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_EXACT = Value(f"({NUMBER.test}) and -(1 << 53) < v < 1 << 53", None, _as_given, NUMBER.about)
"""A number that a float holds exactly."""
_ID = Value("isinstance(v, (str, dict))", _id_of, str, "an id")
_NEW_ID = _ID._replace(write=lambda value: {"id": value})
_COMPACTION = Value(
    "isinstance(v, list)", _compact_at,
    lambda tokens: [{"type": "compaction", "compact_threshold": tokens}], "a list of one edit",
)  # fmt: skip
_TRUNCATION = Value(
    "v in ('auto', 'disabled')", lambda word: word == "auto",
    lambda is_on: "auto" if is_on else "disabled", "auto or disabled",
)  # fmt: skip
_ASKS_LOGPROBS = Value(
    LIST.test, lambda names: True if _LOGPROBS in names else None, lambda _is_on, _writing: None
)
"""See `encode_include`."""


# --- all of them

_service = partial(Row, strict=True)


def _write_tier(tier: str) -> Any:
    """Encode a tier: Responses has one more than Chat."""
    if tier == "fast" or TIER.write is None:
        return tier
    return TIER.write(NEAREST_TIERS.get(tier, tier))


_TIER = TIER._replace(write=_write_tier)
SETTINGS = Settings(
    Row("model", "model"),
    Row("stream", "stream", FLAG),
    Row("max_output_tokens", "sampling.max_tokens", WHOLE),
    Row("temperature", "sampling.temperature", _EXACT),
    Row("top_p", "sampling.top_p", _EXACT),
    Row("top_logprobs", "sampling.top_logprobs", WHOLE),
    Row("include", "sampling.logprobs", _ASKS_LOGPROBS, reports=True),
    _service("text.verbosity", "sampling.verbosity"),
    Row("text.format", "output", Value(OBJECT.test, _read_output, _write_output, "a format"),
        reports=True),
    Row("reasoning", "thinking", Value(OBJECT.test, _read_reasoning, _write_reasoning,
        "an effort and a kind of summary"), reports=True),
    Row("previous_response_id", "state.previous_response_id"),
    Row("conversation", "state.conversation", _ID),
    Row("prompt", "state.prompt", _NEW_ID),
    Row("store", "state.store", FLAG),
    *(row._replace(value=_TIER) if row.value is TIER else row for row in SERVICE),
    _service("context_management", "context_management.compact_at", _COMPACTION),
    _service("truncation", "context_management.truncate", _TRUNCATION),
)  # fmt: skip
PLACES: Places = {
    **{key: place for key, place in SETTINGS.places.items() if key != "include"},
    "instructions": "system",
    "tools": "tools",
    "tool_choice": "tool_choice",
    "parallel_tool_calls": "tool_choice.parallel",
    "text": {**SETTINGS.places["text"], "format": PartlyRead("output")},
    "response_format": "output",
    "reasoning": dict.fromkeys(_REASONING, "thinking"),
    "conversation": PartlyRead("state.conversation"),
    "prompt": PartlyRead("state.prompt"),
}
"""Request fields by wire field."""
