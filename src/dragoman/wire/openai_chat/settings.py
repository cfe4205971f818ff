"""The settings of a request as rows, and fields that hosts don't support."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from msgspec.structs import asdict

from dragoman.model.requests import Output, ThinkingConfig
from dragoman.wire.json_values import is_list, is_object
from dragoman.wire.losses import UNSUPPORTED_FIELD
from dragoman.wire.openai_chat.dialect import NAME, ORIGIN, ChatWriting, is_own
from dragoman.wire.openai_rows import SERVICE
from dragoman.wire.openai_strict_schemas import openai_profiles
from dragoman.wire.overlay import extras_of, fields_of, with_overlay, words_of
from dragoman.wire.overlay_edits import Places, with_digests, without_edited
from dragoman.wire.rows import (
    FLAG,
    NUMBER,
    OBJECT,
    SILENT,
    TEXT,
    TEXTS,
    WHOLE,
    Row,
    Shape,
    Value,
)
from dragoman.wire.settings_rows import Settings
from dragoman.wire.writing import Writing

# --- sampling
#
# Overlay words of the request tell which of two fields it was, and 1.0 from 1.

_REALS = ("temperature", "top_p", "presence_penalty", "frequency_penalty")
_FIELDS = {"seed": ("seed", "random_seed"), "max_tokens": ("max_completion_tokens", "max_tokens")}
"""Settings that have two fields: `random_seed` is Mistral's, `max_tokens` older models' (W12)."""
_SUPPORTED_FIELD = "moved to the field that this host supports"


def words_in(wire: Mapping[str, Any]) -> list[str]:
    """Words for what the model doesn't have of the settings in a body."""
    words = [key for key in _REALS if type(v := wire.get(key)) is float and v.is_integer()]
    for name, keys in _FIELDS.items():
        words += [f"{name}={key}" for key in keys if WHOLE.passes(wire.get(key))][:1]
    words += ["top_k"] if WHOLE.passes(wire.get("top_k")) else []
    return words + (["stop"] if isinstance(wire.get("stop"), str) else [])


def _read_real(value: float) -> float | None:
    """A number that a float holds exactly."""
    is_exact = type(value) is float or int(float(value)) == value
    return float(value) if is_exact else None


def _write_real(key: str, value: float, writing: ChatWriting) -> float:
    is_kept = key in writing.words or key in writing.target.sampling.host_fields
    return int(value) if value == int(value) and not is_kept else value


def _write_in(name: str, key: str, value: int, writing: ChatWriting) -> int | None:
    """The value, if this is its field: the original one, or the best that the target has (W12)."""
    flags = writing.target.sampling
    known = flags.token_limit_fields if name == "max_tokens" else _FIELDS[name]
    if name == "seed" and flags.seed_field is not None:
        known = (flags.seed_field,)
    came = [field for field in _FIELDS[name] if f"{name}={field}" in writing.words]
    if key != next((field for field in known if field in came), known[0]):
        return None
    if came and came[0] not in known:
        writing.repair(f"sampling.{name}", "W12", "renamed", _SUPPORTED_FIELD)
    return value


def _write_top_k(value: int, writing: ChatWriting) -> int | None:
    if "top_k" in writing.words or "top_k" in writing.target.sampling.host_fields:
        return value
    writing.lose("sampling.top_k", "OpenAI does not support top_k")
    return None


def _read_stops(value: Any) -> tuple[str, ...] | None:
    return (value,) if isinstance(value, str) else tuple(value) or None


def _write_stops(stops: tuple[str, ...], writing: ChatWriting) -> str | list[str]:
    return stops[0] if len(stops) == 1 and "stop" in writing.words else list(stops)


def _real(key: str) -> Row:
    number = Value(NUMBER.test, _read_real, partial(_write_real, key), NUMBER.about)
    return Row(key, f"sampling.{key}", number, reports=True)


def _one_of_two(key: str, name: str) -> Row:
    value = WHOLE._replace(write=partial(_write_in, name, key))
    return Row(key, f"sampling.{name}", value, reports=True)


# --- output format

_OUTPUT: Places = {"json_schema": "format"}
_OF_SCHEMA = {"name": TEXT, "description": TEXT, "schema": OBJECT, "strict": FLAG}


def _read_output(wire: dict[str, Any]) -> dict[str, Any] | None:
    kind, spec = wire.get("type"), wire.get("json_schema")
    left = {key: value for key, value in wire.items() if key != "type"}
    if kind in ("text", "json_object"):
        made = Output(format="text" if kind == "text" else "json", extras=extras_of(left, NAME))
    elif kind == "json_schema" and is_object(spec):
        fields = {key: spec[key] for key, of in _OF_SCHEMA.items() if of.passes(spec.get(key))}
        del left["json_schema"]
        if odd := {key: value for key, value in spec.items() if key not in fields}:
            left["json_schema"] = odd
        extras = extras_of(left, NAME, () if "name" in fields else ("-name",))
        made = Output(format="schema", **fields, extras=extras, origin=ORIGIN)
    else:
        return None
    return asdict(with_digests(made, NAME, _OUTPUT))


def _write_output(output: Output, writing: Writing) -> dict[str, Any]:
    extras = without_edited(output, NAME, _OUTPUT)
    if output.format != "schema":
        kind = "text" if output.format == "text" else "json_object"
        return with_overlay({"type": kind}, extras, NAME)
    spec: dict[str, Any] = {
        name: value for name in _OF_SCHEMA if (value := getattr(output, name)) is not None
    }
    if output.schema is not None and not is_own(output.origin):
        schema, is_strict = writing.schemas.output(output, openai_profiles(writing.target))
        spec["schema"] = schema
        if output.strict and not is_strict:
            del spec["strict"]
    if "-name" not in words_of(output.extras, NAME):
        spec.setdefault("name", "response")  # OpenAI requires one
    return with_overlay({"type": "json_schema", "json_schema": spec}, extras, NAME)


# --- service and media

_SOUNDS = frozenset({"text", "audio"})
_MODALITIES = Value(
    TEXTS.test,
    lambda value: tuple(value) or None,
    lambda names: list(names) if _SOUNDS.issuperset(names) else None,
    "a list of text and audio",
)


# --- all of them

SETTINGS = Settings(
    Row("model", "model"),
    *map(_real, _REALS),
    Row("top_logprobs", "sampling.top_logprobs", WHOLE),
    Row("n", "sampling.choices", WHOLE),
    *(_one_of_two(key, name) for name, keys in _FIELDS.items() for key in keys),
    Row("top_k", "sampling.top_k", WHOLE._replace(write=_write_top_k), reports=True),
    Row("logprobs", "sampling.logprobs", FLAG),
    Row("stop", "sampling.stop", Value(f"type(v) is str or ({TEXTS.test})", _read_stops,
        _write_stops, "a string or a list of strings"), reports=True),
    Row("verbosity", "sampling.verbosity"),
    Row("response_format", "output", Value(OBJECT.test, _read_output, _write_output, "a format"),
        reports=True),
    Row("store", "state.store", FLAG),
    *SERVICE,
    Row("modalities", "media.modalities", _MODALITIES, strict=True),
    Row("audio.voice", "media.voice"),
    Row("audio.format", "media.audio_format"),
    Row("stream", "stream", FLAG),
)  # fmt: skip
PLACES: Places = {
    **SETTINGS.places,
    "tools": "tools",
    "functions": "tools",
    "web_search_options": "tools",
    "tool_choice": "tool_choice",
    "function_call": "tool_choice",
    "parallel_tool_calls": "tool_choice.parallel",
    "reasoning_effort": "thinking",
    "reasoning": dict.fromkeys(("effort", "max_tokens", "enabled", "exclude"), "thinking"),
    "thinking": "thinking",
    "chat_template_kwargs": {"enable_thinking": "thinking"},
    # Further limits of llama.cpp, TGI and vLLM.
    **dict.fromkeys(("n_predict", "max_new_tokens", "max_output_tokens"), "sampling.max_tokens"),
    **dict.fromkeys(("best_of", "n_cmpl"), "sampling.choices"),
}
"""Request fields by wire field, including those that stay in the extras."""

# --- thinking: one of several fields, depending on the host

_TEMPLATE = "chat_template_kwargs"
_SWITCHES: dict[str, tuple[str, dict[str | bool, bool]]] = {
    "thinking": ("type", {"enabled": True, "disabled": False}),
    _TEMPLATE: ("enable_thinking", {True: True, False: False}),  # vLLM, llama.cpp
}
"""Objects that turn thinking on or off: their field and its values."""
_FORM_WORDS = {"reasoning": ("reasoning",), "switch": ("thinking",), "template": (_TEMPLATE,)}
"""Overlay words by the target's form of thinking settings."""


_NOT = FLAG._replace(read=lambda value: not value, write=lambda value: not value, exact=True)
_REASONING = Shape(
    NAME, None, ThinkingConfig,
    Row("effort", "effort"), Row("max_tokens", "budget", WHOLE), Row("enabled", "enabled", FLAG),
    Row("exclude", "visible", _NOT),
)  # fmt: skip


def decode_thinking_config(wire: dict[str, Any], used: set[str]) -> ThinkingConfig | None:
    """Decode OpenAI's `reasoning_effort`, or the objects of OpenRouter, Z.ai and vLLM."""
    effort, reasoning = wire.get("reasoning_effort"), wire.get("reasoning")
    if isinstance(effort, str):
        used.add("reasoning_effort")
    elif is_object(reasoning):
        used.add("reasoning")
        config: Any = _REASONING.read(reasoning, SILENT)
        left = fields_of(config.extras, NAME)
        extras = extras_of({"reasoning": left} if left else {}, NAME, ("reasoning",))
        return config.replace(extras=extras)  # type: ignore[no-any-return]
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


def _reasoning(config: ThinkingConfig, writing: Writing) -> dict[str, Any]:
    wire: dict[str, Any] = _REASONING.body(config, writing)
    if config.is_shown is not None:
        wire["exclude"] = not config.is_shown
    if config.is_shown and len(wire) == 1 and "reasoning" not in words_of(config.extras, NAME):
        wire["enabled"] = True  # where another API is asked to show thinking, it thinks
    writing.lose_summary(config)
    return wire


def encode_thinking_config(config: ThinkingConfig, body: dict[str, Any], writing: Writing) -> None:
    """Encode thinking settings in the target's form; OpenAI's own API only has an effort."""
    form = writing.target.thinking.form
    words = words_of(config.extras, NAME) if form == "any" else _FORM_WORDS.get(form, ())
    if "reasoning" in words:
        body["reasoning"] = _reasoning(config, writing)
    else:
        if config.effort is not None:
            body["reasoning_effort"] = config.effort
        unsupported: tuple[str, ...] = ("enabled", "budget", "visible", "summary")
        for field, (key, values) in _SWITCHES.items() if config.enabled is not None else ():
            if field in words:
                body[field] = {key: next(v for v in values if values[v] is config.enabled)}
                unsupported = unsupported[1:]
        for name in unsupported:
            if getattr(config, name) is not None:
                writing.lose(f"thinking.{name}", "only an effort is supported")
    if form == "any" or _FORM_WORDS.get(form, ()) == tuple(words_of(config.extras, NAME)):
        with_overlay(body, config.extras, NAME)
    elif with_overlay({}, config.extras, NAME):
        writing.lose("thinking.extras", "thinking settings of another host are left out")


# --- unsupported fields: left out, and reported as lost (W17, W109, W111)
#
# Many hosts speak OpenAI's dialect. Some ignore unknown fields, others refuse the request.


def without_refused_fields(body: dict[str, Any], writing: ChatWriting) -> dict[str, Any]:
    """The body without fields that the target refuses; null fields are not reported."""
    fields = writing.target.fields
    for key in [key for key in body if not fields.accepts(key, fields.in_request)]:
        if body.pop(key) is not None:
            place = "thinking" if key in ("reasoning", _TEMPLATE) else PLACES.get(key)
            writing.lose(place if isinstance(place, str) else "extras", UNSUPPORTED_FIELD)
    if fields.refused and is_list(tools := body.get("tools")):
        body["tools"] = [
            _without_refused(tool, writing, f"tools[{index}].extras")
            for index, tool in enumerate(tools)
        ]
    return body


def message_without_refused_fields(wire: dict[str, Any], writing: ChatWriting) -> dict[str, Any]:
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


def _without_refused(item: Any, writing: ChatWriting, path: str) -> Any:
    """An object inside a body without fields that the target refuses."""
    refused = writing.target.fields.refused
    if not isinstance(item, Mapping) or item.keys().isdisjoint(refused):
        return item
    for key in refused:
        if item.get(key) is not None:
            writing.lose(path, UNSUPPORTED_FIELD)
    return {key: value for key, value in item.items() if key not in refused}
