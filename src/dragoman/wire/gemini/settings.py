"""The settings of a request as rows, most in `generationConfig`; the output format by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from dragoman.model.frozen import EMPTY
from dragoman.model.requests import UNSAID, Output, Request, ThinkingConfig
from dragoman.model.tools import ToolChoice
from dragoman.wire.gemini.dialect import NAME, ORIGIN, TARGET, Writing
from dragoman.wire.gemini.tools import OPENAPI, decode_schema, encode_schema, is_own, profiles_of
from dragoman.wire.json_values import is_list, is_object
from dragoman.wire.losses import NEAREST_EFFORT
from dragoman.wire.overlay import Overlay, note_of, with_note
from dragoman.wire.rows import FLAG, NUMBER, OBJECT, TEXT, TEXTS, WHOLE, Row, Value
from dragoman.wire.settings_rows import Settings
from dragoman.wire.shared_settings import tiers

# --- thinking

_LEVELS = frozenset({"minimal", "low", "medium", "high"})
_DYNAMIC = -1  # the model decides
_SWITCHES = {_DYNAMIC: True, 0: False}


def _whole(value: float) -> int | None:
    """An integer, which may be written as 40.0."""
    whole = int(value)
    return whole if -(1 << 63) <= whole < 1 << 63 else None


_COUNT = Value("type(v) is int or type(v) is float and v.is_integer()", _whole, about=WHOLE.about)


def _read_thinking(wire: dict[str, Any]) -> dict[str, Any]:
    level, budget = wire.get("thinkingLevel"), wire.get("thinkingBudget")
    visible = wire.get("includeThoughts")
    effort = level.lower() if type(level) is str else None
    budget = _whole(budget or 0) if _COUNT.passes(budget) else None
    return {
        "visible": visible if type(visible) is bool else None,
        "effort": effort if effort in _LEVELS else None,
        "budget": None if budget == _DYNAMIC else budget,
        "enabled": None if budget is None else _SWITCHES.get(budget),
    }


def _write_thinking(thinking: ThinkingConfig, writing: Writing) -> dict[str, Any] | None:
    effort = thinking.effort
    if effort not in {None, "none", *_LEVELS}:
        writing.repair("thinking.effort", "W12", "retyped", NEAREST_EFFORT)
    writing.lose_summary(thinking)
    config: dict[str, Any] = {}
    if thinking.is_shown is not None:
        config["includeThoughts"] = thinking.is_shown
    if thinking.enabled is False or effort == "none":
        config["thinkingBudget"] = 0
    elif thinking.budget is not None:
        config["thinkingBudget"] = thinking.budget
    elif thinking.enabled and effort is None:
        config["thinkingBudget"] = _DYNAMIC
    if effort is not None and effort != "none":
        config["thinkingLevel"] = effort.upper() if effort in _LEVELS else "HIGH"
    return config or None


# --- tool choice: `toolConfig`

# VALIDATED lets the model choose, and enforces the schemas of calls.
_CHOICES: dict[str, Literal["auto", "none", "required"]] = {
    "AUTO": "auto",
    "VALIDATED": "auto",
    "NONE": "none",
    "ANY": "required",
}
_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY", "named": "ANY", "allowed": "ANY"}


def _read_choice(wire: dict[str, Any]) -> ToolChoice | None:
    mode, listed = wire.get("mode"), wire.get("allowedFunctionNames")
    if type(mode) is not str or mode not in _CHOICES:
        return None
    names = tuple(listed or ()) if TEXTS.passes(listed) else ()
    if not names or mode == "NONE":
        return ToolChoice(_CHOICES[mode])
    if mode == "ANY" and len(names) == 1:
        return ToolChoice("named", names)
    return ToolChoice("allowed", names, is_required=mode == "ANY")


def _write_choice(choice: ToolChoice, writing: Writing) -> dict[str, Any]:
    """Encode the choice; no choice needs no field (W99)."""
    if choice.parallel is False:
        writing.lose("tool_choice.parallel", "parallel tool calls can't be turned off")
    # Names are only allowed with ANY and VALIDATED; the latter lets the model choose.
    is_free = choice.mode == "allowed" and not choice.is_required
    calling: dict[str, Any] = {"mode": "VALIDATED" if is_free else _MODES[choice.mode]}
    if choice.mode in {"named", "allowed"}:
        calling["allowedFunctionNames"] = list(choice.names)
    return calling


# --- all of them

_G, _CALLING = "generationConfig.", "toolConfig.functionCallingConfig"
_VOICE = f"{_G}speechConfig.voiceConfig.prebuiltVoiceConfig."
_LABELS = OBJECT._replace(read=lambda labels: labels or None)
_TIER = Value(
    TEXT.test, *tiers(standard="standard", flex="flex", priority="priority"), about="a tier"
)
_MODALITIES = Value(
    TEXTS.test,
    lambda names: tuple([name.lower() for name in names]) or None,
    lambda names: [name.upper() for name in names],
    "a list of modalities",
)
_THINKING = ("includeThoughts", "thinkingBudget", "thinkingLevel")
_OUTPUT = ("responseMimeType", "responseSchema", "responseJsonSchema", "responseFormat")
SETTINGS = Settings(
    Row(f"{_G}maxOutputTokens", "sampling.max_tokens", _COUNT),
    Row(f"{_G}topK", "sampling.top_k", _COUNT),
    Row(f"{_G}seed", "sampling.seed", _COUNT),
    Row(f"{_G}candidateCount", "sampling.choices", _COUNT),
    Row(f"{_G}logprobs", "sampling.top_logprobs", _COUNT),
    Row(f"{_G}temperature", "sampling.temperature", NUMBER),
    Row(f"{_G}topP", "sampling.top_p", NUMBER),
    Row(f"{_G}presencePenalty", "sampling.presence_penalty", NUMBER),
    Row(f"{_G}frequencyPenalty", "sampling.frequency_penalty", NUMBER),
    Row(f"{_G}stopSequences", "sampling.stop", TEXTS),
    Row(f"{_G}responseLogprobs", "sampling.logprobs", FLAG),
    Row(
        f"{_G}thinkingConfig",
        "thinking",
        Value(OBJECT.test, _read_thinking, _write_thinking, OBJECT.about),
        reports=True,
    ),
    Row(f"{_G}responseModalities", "media.modalities", _MODALITIES, strict=True),
    Row(f"{_VOICE}voiceName", "media.voice"),
    Row("labels", "service.labels", _LABELS),
    Row("serviceTier", "service.tier", _TIER, strict=True),
    Row("cachedContent", "state.cached_content"),
    Row("continuationToken", "state.continuation_token"),
    Row("store", "state.store", FLAG),
    Row(
        _CALLING,
        "tool_choice",
        Value(OBJECT.test, _read_choice, _write_choice, OBJECT.about),
        reports=True,
    ),
    twins=True,
    beside={
        "model": "model",
        "contents": "messages",
        "systemInstruction.parts": "system",
        "tools": "tools",
        **dict.fromkeys((f"{_CALLING}.mode", f"{_CALLING}.allowedFunctionNames"), "tool_choice"),
        **{f"{_G}{name}": "output" for name in _OUTPUT},
        **{f"{_G}thinkingConfig.{name}": "thinking" for name in _THINKING},
    },
)


def decode_settings(wire: dict[str, Any]) -> dict[str, Any]:
    """The settings of a body, as fields of a request."""
    fields, config = SETTINGS.read(wire), wire.get("generationConfig")
    if fields["sampling"] is UNSAID:
        del fields["sampling"]
    output = _decode_output(config) if is_object(config) else None
    return fields if output is None else {**fields, "output": output}


def encode_settings(request: Request, writing: Writing | None = None) -> dict[str, Any]:
    """The settings of a request as a body; without a writing, as they came."""
    output = request.output
    if output is not None and writing is not None:
        output = _fitted_output(output, writing)
    body = SETTINGS.write(request, writing or Writing(TARGET))
    if output is not None:
        body.setdefault("generationConfig", {}).update(_encode_output(output))
    return body


# --- the output format: several fields for one value

_JSON = "application/json"
_JSON_NAMES = (_JSON, "APPLICATION_JSON")


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
