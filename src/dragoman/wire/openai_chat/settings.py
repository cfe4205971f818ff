"""Settings: sampling, output format, thinking, and fields that hosts don't support."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.requests import UNSAID, Output, Sampling, State, ThinkingConfig
from dragoman.wire.json_values import is_integer, is_list, is_object
from dragoman.wire.losses import UNSUPPORTED_FIELD
from dragoman.wire.openai_chat.dialect import NAME, ORIGIN, is_own
from dragoman.wire.openai_strict_schemas import openai_profiles
from dragoman.wire.overlay import extras_of, with_overlay, words_of
from dragoman.wire.overlay_edits import Places, with_digests, without_edited
from dragoman.wire.settings_table import (
    Setting,
    decode_settings,
    encode_settings,
    flag,
    lose_settings,
    setting,
    text,
    texts,
    whole,
)
from dragoman.wire.target import Target
from dragoman.wire.writing import Writing

# --- sampling

_REALS = frozenset({"temperature", "top_p", "presence_penalty", "frequency_penalty"})


def _real(value: Any) -> float | None:
    """A number that a float holds exactly."""
    if type(value) is float:
        return value
    return float(value) if is_integer(value) and int(float(value)) == value else None


def _is_whole_float(value: Any) -> bool:
    return type(value) is float and value.is_integer()


def _stops(value: Any) -> tuple[str, ...] | None:
    return (value,) if isinstance(value, str) else texts(value) or None


_SAMPLING = (
    setting("temperature", "temperature", _real),
    setting("top_p", "top_p", _real),
    setting("presence_penalty", "presence_penalty", _real),
    setting("frequency_penalty", "frequency_penalty", _real),
    setting("top_logprobs", "top_logprobs", whole),
    setting("n", "choices", whole),
    setting("seed", "seed", whole),
    setting("random_seed", "seed", whole),  # Mistral
    setting("max_completion_tokens", "max_tokens", whole),
    setting("max_tokens", "max_tokens", whole),  # older models and most other servers (W12)
    setting("top_k", "top_k", whole),  # an extension of other servers
    setting("logprobs", "logprobs", flag),
    setting("stop", "stop", _stops),
)
_ROWS = {row[0]: row for row in _SAMPLING}
_PLACES_OF_ROWS = {row[0]: place for place, row in enumerate(_SAMPLING)}
_WRITTEN = [one for one in _SAMPLING if one[0] not in ("max_tokens", "random_seed")]
SAMPLING = {key: f"sampling.{name}" for key, name, _ in _SAMPLING}
"""Request settings by wire field."""
FIELDS = {"max_tokens": ("max_completion_tokens", "max_tokens"), "seed": ("seed", "random_seed")}
"""Settings that have two fields; an overlay word like `seed=random_seed` records which."""
_FIELD_WORDS = {key: f"{name}={key}" for name in FIELDS for key in FIELDS[name]}


def accepted_fields(name: str, target: Target) -> tuple[str, ...]:
    """The fields for a setting that the target supports, best first (W12)."""
    if name == "max_tokens":
        return target.sampling.token_limit_fields
    return FIELDS[name] if target.sampling.seed_field is None else (target.sampling.seed_field,)


def decode_sampling(wire: dict[str, Any], used: set[str], words: list[str]) -> Sampling:
    """Decode the sampling settings; adds decoded fields to `used` and overlay words to `words`."""
    rows = [_ROWS[key] for key in wire if key in _ROWS]
    if not rows:
        return UNSAID
    if len(rows) > 1:
        rows.sort(key=_row_place)  # if two fields have one setting, the first of the table wins
    found: set[str] = set()
    values = decode_settings(wire, rows, found)
    for key, _, _ in rows:
        if key in found and (word := _word(key, wire[key])) is not None:
            words.append(word)
    used |= found
    # The other readers return only what the model takes.
    return UNSAID.replace_trusted(**values) if _REALS.isdisjoint(found) else Sampling(**values)


def _row_place(row: Setting) -> int:
    return _PLACES_OF_ROWS[row[0]]


def _word(key: str, value: Any) -> str | None:
    """A word for what the model doesn't have: which of two fields it was; 1.0 rather than 1."""
    is_spelled = (
        key == "top_k"
        or (key == "stop" and isinstance(value, str))
        or (key in _REALS and _is_whole_float(value))
    )
    return key if is_spelled else _FIELD_WORDS.get(key)


def encode_sampling(sampling: Sampling, body: dict[str, Any], words: Any, writing: Writing) -> None:
    """Encode the sampling settings."""
    if sampling is UNSAID:
        return
    for key, name, _ in _WRITTEN:
        value = getattr(sampling, name)
        if value is None or value == ():
            continue
        if name in FIELDS:
            known = accepted_fields(name, writing.target)
            body[next((key for key in known if f"{name}={key}" in words), known[0])] = value
        elif key == "stop":
            body[key] = value[0] if len(value) == 1 and key in words else list(value)
        elif key in words or name in writing.target.sampling.host_fields:
            body[key] = value  # the original field, or the host's
        elif key == "top_k":
            writing.lose("sampling.top_k", "OpenAI does not support top_k")
        else:
            body[key] = int(value) if _is_whole_float(value) else value


# --- output format

_OUTPUT: Places = {"json_schema": "format"}


def decode_output(wire: Any) -> Output | None:
    """Decode `response_format`; None if it is unknown."""
    kind = wire.get("type") if is_object(wire) else None
    if not is_object(wire) or kind not in ("text", "json_object", "json_schema"):
        return None
    left = {key: value for key, value in wire.items() if key not in ("type", "json_schema")}
    if kind != "json_schema":
        left |= {key: wire[key] for key in ("json_schema",) if key in wire}
        output = Output(format="text" if kind == "text" else "json", extras=extras_of(left, NAME))
        return with_digests(output, NAME, _OUTPUT)
    spec = wire.get("json_schema")
    if not is_object(spec):
        return None
    kinds = {"name": str, "description": str, "schema": dict, "strict": bool}
    fields = {name: spec[name] for name, kind in kinds.items() if isinstance(spec.get(name), kind)}
    odd = {key: value for key, value in spec.items() if key not in fields}
    if odd:
        left["json_schema"] = odd
    words = () if "name" in fields else ("-name",)
    output = Output(format="schema", **fields, extras=extras_of(left, NAME, words), origin=ORIGIN)
    return with_digests(output, NAME, _OUTPUT)


def encode_output(output: Output, writing: Writing) -> dict[str, Any]:
    """The `response_format`."""
    extras = without_edited(output, NAME, _OUTPUT)
    if output.format != "schema":
        kind = "text" if output.format == "text" else "json_object"
        return with_overlay({"type": kind}, extras, NAME)
    spec: dict[str, Any] = {}
    for name in ("name", "description", "schema", "strict"):
        if (value := getattr(output, name)) is not None:
            spec[name] = value
    if output.schema is not None and not is_own(output.origin):
        schema, is_strict = writing.schemas.output(output, openai_profiles(writing.target))
        spec["schema"] = schema
        if output.strict and not is_strict:
            del spec["strict"]
    if "-name" not in words_of(output.extras, NAME):
        spec.setdefault("name", "response")  # OpenAI requires one
    return with_overlay({"type": "json_schema", "json_schema": spec}, extras, NAME)


# --- thinking

_TEMPLATE = "chat_template_kwargs"
_SWITCHES: dict[str, tuple[str, dict[str | bool, bool]]] = {
    "thinking": ("type", {"enabled": True, "disabled": False}),
    _TEMPLATE: ("enable_thinking", {True: True, False: False}),  # vLLM, llama.cpp
}
"""Objects that turn thinking on or off: their field and its values."""
_FORM_WORDS = {"reasoning": ("reasoning",), "switch": ("thinking",), "template": (_TEMPLATE,)}
"""Overlay words by the target's form of thinking settings."""


def _inverted(value: Any) -> bool | None:
    return not value if isinstance(value, bool) else None


_REASONING = (
    setting("effort", "effort", text),
    setting("max_tokens", "budget", whole),
    setting("enabled", "enabled", flag),
    setting("exclude", "visible", _inverted),
)


def decode_thinking_config(wire: dict[str, Any], used: set[str]) -> ThinkingConfig | None:
    """Decode OpenAI's `reasoning_effort`, or the objects of OpenRouter, Z.ai and vLLM."""
    effort, reasoning = wire.get("reasoning_effort"), wire.get("reasoning")
    if isinstance(effort, str):
        used.add("reasoning_effort")
    elif is_object(reasoning):
        used.add("reasoning")
        return _decode_reasoning(reasoning)
    else:
        effort = None
    for field, (key, values) in _SWITCHES.items():
        inner = wire.get(field)
        value = inner.get(key) if is_object(inner) else None
        if is_object(inner) and isinstance(value, str | bool) and value in values:
            used.add(field)
            left = {name: inner[name] for name in inner if name != key}
            extras = extras_of({field: left} if left else {}, NAME, (field,))
            return ThinkingConfig(effort=effort, enabled=values[value], extras=extras)
    return None if effort is None else ThinkingConfig(effort=effort)


def _decode_reasoning(wire: dict[str, Any]) -> ThinkingConfig:
    known: set[str] = set()
    fields = decode_settings(wire, _REASONING, known)
    left = {key: value for key, value in wire.items() if key not in known}
    extras = extras_of({"reasoning": left} if left else {}, NAME, ("reasoning",))
    return ThinkingConfig(**fields, extras=extras)


def encode_thinking_config(config: ThinkingConfig, body: dict[str, Any], writing: Writing) -> None:
    """Encode thinking settings in the target's form; OpenAI's own API only has an effort."""
    form = writing.target.thinking.form
    words = words_of(config.extras, NAME) if form == "any" else _FORM_WORDS.get(form, ())
    if "reasoning" in words:
        body["reasoning"] = found = encode_settings(config, _REASONING)
        if config.is_shown is not None:
            found["exclude"] = not config.is_shown
        if config.is_shown and len(found) == 1 and "reasoning" not in words_of(config.extras, NAME):
            found["enabled"] = True  # another API thinks if it is asked to show it
        writing.lose_summary(config)
    else:
        if config.effort is not None:
            body["reasoning_effort"] = config.effort
        unsupported: tuple[str, ...] = ("enabled", "budget", "visible", "summary")
        for field, (key, values) in _SWITCHES.items() if config.enabled is not None else ():
            if field in words:
                body[field] = {key: next(v for v in values if values[v] is config.enabled)}
                unsupported = unsupported[1:]
        lose_settings(config, unsupported, writing, "thinking", "only an effort is supported")
    if form == "any" or _FORM_WORDS.get(form, ()) == tuple(words_of(config.extras, NAME)):
        with_overlay(body, config.extras, NAME)
    elif with_overlay({}, config.extras, NAME):
        writing.lose("thinking.extras", "thinking settings of another host are left out")


def decode_state(wire: dict[str, Any], used: set[str]) -> State | None:
    """Decode `store`."""
    store = wire.get("store")
    if not isinstance(store, bool):
        return None
    used.add("store")
    return State(store=store)


def encode_state(state: State, body: dict[str, Any]) -> None:
    """Encode `store`."""
    if state.store is not None:
        body["store"] = state.store


# --- unsupported fields: left out, and reported as lost (W17, W109, W111)
#
# Many hosts speak OpenAI's dialect. Some ignore unknown fields, others refuse the request.

# Request paths of wire fields; all other fields are in the extras.
_PLACES = {
    "store": "state.store",
    "parallel_tool_calls": "tool_choice.parallel",
    "response_format": "output",
    "reasoning_effort": "thinking.effort",
    "reasoning": "thinking",
    "thinking": "thinking",
    "chat_template_kwargs": "thinking",
    "web_search_options": "tools",
    "functions": "tools",
}


def without_refused_fields(body: dict[str, Any], writing: Writing) -> dict[str, Any]:
    """The body without fields that the target refuses; null fields are not reported."""
    fields = writing.target.fields
    for key in [key for key in body if not fields.accepts(key, fields.in_request)]:
        if body.pop(key) is not None:
            writing.lose(_PLACES.get(key, "extras"), UNSUPPORTED_FIELD)
    if fields.refused and is_list(tools := body.get("tools")):
        body["tools"] = [
            _without_refused(tool, writing, f"tools[{index}].extras")
            for index, tool in enumerate(tools)
        ]
    return body


def message_without_refused_fields(wire: dict[str, Any], writing: Writing) -> dict[str, Any]:
    """The message without fields that the target refuses, also in its parts and calls."""
    fields, path, kept = writing.target.fields, f"messages[{writing.message}]", dict(wire)
    known = fields.in_message_of(wire.get("role"))
    for key in wire:
        if not fields.accepts(key, known) and kept.pop(key) is not None:
            place = f"{path}.name" if key == "name" else f"{path}.extras"
            writing.lose(place, UNSUPPORTED_FIELD)
    for key in ("content", "tool_calls") if fields.refused else ():
        if is_list(items := kept.get(key)):
            kept[key] = [_without_refused(item, writing, f"{path}.parts") for item in items]
    return kept


def _without_refused(item: Any, writing: Writing, path: str) -> Any:
    refused = writing.target.fields.refused
    if not isinstance(item, Mapping) or item.keys().isdisjoint(refused):
        return item
    for key in refused:
        if item.get(key) is not None:
            writing.lose(path, UNSUPPORTED_FIELD)
    return {key: value for key, value in item.items() if key not in refused}
