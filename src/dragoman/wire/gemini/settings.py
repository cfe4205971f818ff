"""Settings (`generationConfig`): sampling, output format and thinking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.frozen import EMPTY
from dragoman.model.requests import Output, Request, Sampling, ThinkingConfig
from dragoman.wire.gemini.dialect import NAME, ORIGIN, Writing, snake_names
from dragoman.wire.gemini.tools import OPENAPI, decode_schema, encode_schema, is_own, profiles_of
from dragoman.wire.json_values import is_list, is_object
from dragoman.wire.losses import NEAREST_EFFORT
from dragoman.wire.overlay import Overlay, note_of, with_note
from dragoman.wire.settings_table import (
    decode_settings,
    encode_settings,
    flag,
    number,
    setting,
    text,
    texts,
    whole,
)


def _count(value: Any) -> int | None:
    """An integer, which may be written as 40.0; the original form is compared later."""
    return whole(int(value) if type(value) is float and value.is_integer() else value)


_SAMPLING = (
    setting("maxOutputTokens", "max_tokens", _count),
    setting("topK", "top_k", _count),
    setting("seed", "seed", _count),
    setting("candidateCount", "choices", _count),
    setting("logprobs", "top_logprobs", _count),
    setting("temperature", "temperature", number),
    setting("topP", "top_p", number),
    setting("presencePenalty", "presence_penalty", number),
    setting("frequencyPenalty", "frequency_penalty", number),
    setting("stopSequences", "stop", texts),
    setting("responseLogprobs", "logprobs", flag),
)
_OUTPUT = ("responseMimeType", "responseSchema", "responseJsonSchema", "responseFormat")
_THINKING = ("includeThoughts", "thinkingBudget", "thinkingLevel")
_NAMES = snake_names(*(key for key, _, _ in _SAMPLING), *_OUTPUT, "thinkingConfig",
                     "responseModalities", "speechConfig")  # fmt: skip
_THINKING_NAMES = snake_names(*_THINKING)
GENERATION_CONFIG = {
    **{key: f"sampling.{name}" for key, name, _ in _SAMPLING},
    **dict.fromkeys(_OUTPUT, "output"),
    "thinkingConfig": dict.fromkeys(_THINKING, "thinking"),
}
"""Request settings by wire field."""
_LEVELS = frozenset({"minimal", "low", "medium", "high"})
_JSON = "application/json"
_JSON_NAMES = (_JSON, "APPLICATION_JSON")
_DYNAMIC = -1  # the model decides
_SWITCHES = {_DYNAMIC: True, 0: False}


def decode_generation(wire: Any, kept: Overlay) -> dict[str, Any]:
    """Decode `generationConfig` to request fields; unknown fields are kept."""
    if not is_object(wire):
        kept.fields["generationConfig"] = wire
        return {}
    config = kept.renamed(wire, _NAMES, "generationConfig")
    thinking = config.get("thinkingConfig")
    if is_object(thinking):
        thinking = kept.renamed(thinking, _THINKING_NAMES, "generationConfig", "thinkingConfig")
        config = {**config, "thinkingConfig": thinking}
    sampled = decode_settings(config, _SAMPLING)
    sampling = Sampling(**sampled)
    output, thinking = _decode_output(config), _decode_thinking(thinking)
    kept.compare(config, _encode_settings(sampling, output, thinking), "generationConfig")
    fields: dict[str, Any] = {"output": output, "thinking": thinking}
    return {**fields, "sampling": sampling} if sampled else fields


def encode_generation(request: Request, writing: Writing) -> dict[str, Any]:
    """Encode `generationConfig`; empty if no settings are given."""
    thinking, output = request.thinking, request.output
    if thinking is not None and thinking.effort not in {None, "none", *_LEVELS}:
        writing.repair("thinking.effort", "W12", "retyped", NEAREST_EFFORT)
    if thinking is not None:
        writing.lose_summary(thinking)
    if output is not None:
        output = _fitted_output(output, writing)
    return _encode_settings(request.sampling, output, thinking)


def _fitted_output(output: Output, writing: Writing) -> Output:
    """The output format with its schema compiled for this dialect."""
    if output.schema is None:
        if output.format == "schema":
            writing.lose("output", "no schema is given; any JSON is requested")
        writing.schemas.lose_labels(output)
        return output
    schema: Mapping[str, Any] = output.schema
    if not is_own(output):
        schema, _ = writing.schemas.output(output, profiles_of(writing.target, is_output=True))
        takes_json_schema = writing.target.schemas.takes_json_schema
        output = output.replace(extras=EMPTY if takes_json_schema else OPENAPI)
    return output.replace(schema=writing.schemas.labelled(schema, output))


def _encode_settings(
    sampling: Sampling, output: Output | None, thinking: ThinkingConfig | None
) -> dict[str, Any]:
    config = encode_settings(sampling, _SAMPLING)
    if output is not None:
        config |= _encode_output(output)
    if thinking is not None and (wire := _encode_thinking(thinking)):
        config["thinkingConfig"] = wire
    return config


def _decode_output(config: dict[str, Any]) -> Output | None:
    schema, openapi = config.get("responseJsonSchema"), config.get("responseSchema")
    mime = config.get("responseMimeType", "")
    if (found := _decode_format(config)) is not None:
        return found
    kept = Overlay(NAME)
    if type(mime) is str and mime != _JSON:
        kept.note("mime", mime)
    if is_object(openapi) and not is_object(schema):
        schema, form = decode_schema(openapi)
        kept.note("openapi", form)
    if is_object(schema):
        return Output(format="schema", schema=schema, extras=kept.extras(), origin=ORIGIN)
    if mime == _JSON:
        return Output(format="json")
    return Output(format="text") if mime == "text/plain" else None


def _decode_format(config: dict[str, Any]) -> Output | None:
    """Decode Vertex's newest field for the output format, if it only concerns text."""
    formats = config.get("responseFormat")
    only = formats[0] if is_list(formats) and len(formats) == 1 else None
    form = only.get("text") if is_object(only) and len(only) == 1 else None
    if not is_object(form) or any(name in config for name in _OUTPUT[:3]):
        return None
    mime, schema = form.get("mimeType"), form.get("schema")
    extras = with_note(EMPTY, NAME, "format", mime)
    if is_object(schema):
        found = Output(format="schema", schema=schema, extras=extras, origin=ORIGIN)
    else:
        found = Output(format="json" if mime in _JSON_NAMES else "text", extras=extras)
    is_whole = type(mime) is str and _encode_output(found) == {"responseFormat": formats}
    return found if is_whole else None


def _encode_output(output: Output) -> dict[str, Any]:
    mime = note_of(output.extras, NAME, "format")
    if isinstance(mime, str):
        is_json = output.format != "text"
        if is_json is not (mime in _JSON_NAMES):  # the format was changed
            mime = _JSON if is_json else "text/plain"
        schema = {} if output.schema is None else {"schema": output.schema}
        return {"responseFormat": [{"text": {"mimeType": mime, **schema}}]}
    if output.format == "text":
        return {"responseMimeType": "text/plain"}
    if output.format == "json" or output.schema is None:
        return {"responseMimeType": _JSON}
    form, mime = note_of(output.extras, NAME, "openapi"), note_of(output.extras, NAME, "mime")
    wire: dict[str, Any] = {"responseMimeType": mime if isinstance(mime, str) else _JSON}
    if mime == "":  # the original had none
        wire = {}
    if isinstance(form, str):
        return wire | {"responseSchema": encode_schema(output.schema, form)}
    return wire | {"responseJsonSchema": output.schema}


def _decode_thinking(wire: Any) -> ThinkingConfig | None:
    if not is_object(wire):
        return None
    level, budget = text(wire.get("thinkingLevel")), _count(wire.get("thinkingBudget"))
    effort = None if level is None else level.lower()
    return ThinkingConfig(
        visible=flag(wire.get("includeThoughts")),
        effort=effort if effort in _LEVELS else None,
        budget=None if budget == _DYNAMIC else budget,
        enabled=None if budget is None else _SWITCHES.get(budget),
    )


def _encode_thinking(thinking: ThinkingConfig) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if thinking.is_shown is not None:
        config["includeThoughts"] = thinking.is_shown
    if thinking.enabled is False or thinking.effort == "none":
        config["thinkingBudget"] = 0
    elif thinking.budget is not None:
        config["thinkingBudget"] = thinking.budget
    elif thinking.enabled and thinking.effort is None:
        config["thinkingBudget"] = _DYNAMIC
    if thinking.effort is not None and thinking.effort != "none":
        config["thinkingLevel"] = thinking.effort.upper() if thinking.effort in _LEVELS else "HIGH"
    return config
