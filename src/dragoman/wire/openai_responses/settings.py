"""Settings: sampling, output format, reasoning, and server-side state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.frozen import EMPTY
from dragoman.model.requests import UNSAID, Output, Request, Sampling, State, ThinkingConfig
from dragoman.wire.openai_responses.content_forms import present
from dragoman.wire.openai_responses.dialect import NAME, ORIGIN
from dragoman.wire.openai_strict_schemas import openai_profiles
from dragoman.wire.overlay import note_of
from dragoman.wire.settings_table import (
    decode_settings,
    encode_settings,
    flag,
    lose_settings,
    number,
    setting,
    text,
    whole,
)
from dragoman.wire.target import Target
from dragoman.wire.writing import Writing

_LOGPROBS = "message.output_text.logprobs"
_ENCRYPTED_REASONING = "reasoning.encrypted_content"
NO_ENCRYPTED_REASONING = "unasked"
"""A note in a request's extras: see `omits_encrypted_reasoning`."""


def _exact_number(value: Any) -> float | None:
    """A number that a float holds exactly."""
    found = number(value)
    return found if found is not None and -(2**53) < found < 2**53 else None


def _id_of(value: Any) -> str | None:
    """The id of something given as an id or as an object."""
    return text(value.get("id") if isinstance(value, dict) else value)


SAMPLING = (
    setting("max_output_tokens", "max_tokens", whole),
    setting("temperature", "temperature", _exact_number),
    setting("top_p", "top_p", _exact_number),
    setting("top_logprobs", "top_logprobs", whole),
)
_UNKNOWN = ("top_k", "stop", "seed", "presence_penalty", "frequency_penalty", "choices")
_THINKING = (setting("effort", "effort", text), setting("summary", "summary", text))
_SCHEMA = (
    setting("name", "name", text),
    setting("description", "description", text),
    setting("strict", "strict", flag),
)
STATE = (
    setting("previous_response_id", "previous_response_id", text),
    setting("conversation", "conversation", _id_of),
    setting("prompt", "prompt", _id_of),
    setting("store", "store", flag),
)


# --- all settings


def decode_request_settings(wire: Mapping[str, Any]) -> dict[str, Any]:
    """Decode all settings of a request."""
    return {
        "sampling": decode_sampling(wire),
        "output": decode_output(wire),
        "thinking": decode_thinking_config(wire),
        "state": decode_state(wire),
    }


def encode_request_settings(
    request: Request, writing: Writing, conversation: Any
) -> dict[str, Any]:
    """Encode all settings of a request."""
    return {
        **encode_sampling(request.sampling, writing),
        **encode_output(request.output, writing),
        **encode_thinking_config(request.thinking, writing),
        **encode_state(request.state, conversation),
    }


# --- sampling


def decode_sampling(wire: Mapping[str, Any]) -> Sampling:
    """Decode the sampling settings."""
    found = decode_settings(wire, SAMPLING)
    include = wire.get("include")
    if isinstance(include, list) and _LOGPROBS in include:
        found["logprobs"] = True
    return Sampling(**found) if found else UNSAID


def encode_sampling(sampling: Sampling, writing: Writing) -> dict[str, Any]:
    """Encode the sampling settings."""
    lose_settings(sampling, _UNKNOWN, writing, "sampling", "this setting is not supported")
    # When stored, 1 becomes 1.0; the overlay distinguishes them.
    return {
        key: int(value) if isinstance(value, float) and value.is_integer() else value
        for key, value in encode_settings(sampling, SAMPLING).items()
    }


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


def decode_output(wire: Mapping[str, Any]) -> Output | None:
    """Decode `text.format`; None if it is unknown (then it stays in the extras)."""
    outer = wire.get("text")
    form: Any = outer.get("format") if isinstance(outer, dict) else None
    match form:
        case {"type": "text"}:
            return Output()
        case {"type": "json_object"}:
            return Output(format="json")
        case {"type": "json_schema", "schema": dict(schema), "name": str()}:
            found = decode_settings(form, _SCHEMA)
            return Output(format="schema", schema=schema, origin=ORIGIN, **found)
        case _:
            return None


def encode_output(output: Output | None, writing: Writing) -> dict[str, Any]:
    """Encode `text.format`."""
    if output is None:
        return {}
    if output.format != "schema":
        return _formatted({"type": _FORMATS[output.format]}, writing.target)
    schema: Mapping[str, Any] = output.schema or EMPTY
    strict = output.strict
    if output.origin is None or output.origin.dialect != NAME:
        schema, is_strict = writing.schemas.output(output, openai_profiles(writing.target))
        strict = None if strict and not is_strict else strict
    fields = {
        "type": "json_schema",
        "name": "answer" if output.name is None else output.name,
        "schema": schema,
        "description": output.description,
        "strict": strict,
    }
    return _formatted(present(fields), writing.target)


def _formatted(form: dict[str, Any], target: Target) -> dict[str, Any]:
    """The format in the field that the target supports."""
    body: dict[str, Any] = {"text": {"format": form}}
    if target.schemas.uses_chat_format and form["type"] != "text":
        # As in Chat: a schema in a nested object.
        inner = {key: value for key, value in form.items() if key != "type"}
        schema = {"json_schema": inner} if inner else {}
        body["response_format"] = {"type": form["type"], **schema}
    return body


# --- reasoning


def decode_thinking_config(wire: Mapping[str, Any]) -> ThinkingConfig | None:
    """Decode `reasoning`; None if it is missing or unknown."""
    reasoning = wire.get("reasoning")
    found = decode_settings(reasoning, _THINKING) if isinstance(reasoning, dict) else None
    return ThinkingConfig(**found) if found else None


def encode_thinking_config(thinking: ThinkingConfig | None, writing: Writing) -> dict[str, Any]:
    """Encode `reasoning`."""
    if thinking is None:
        return {}
    if thinking.budget is not None:
        writing.lose("thinking.budget", "budgets are not supported; only an effort is")
    body = encode_settings(thinking, _THINKING)
    if thinking.enabled is False:
        body["effort"] = "none"
    elif thinking.enabled and thinking.effort is None:
        writing.lose(
            "thinking.enabled", "thinking can't be switched on; only an effort is supported"
        )
    if thinking.visible is False:
        body.pop("summary", None)
    elif thinking.visible:
        body.setdefault("summary", "auto")
    return {"reasoning": body} if body else {}


# --- server-side state


def decode_state(wire: Mapping[str, Any]) -> State | None:
    """Decode the fields for server-side state; a conversation may be an object."""
    found = decode_settings(wire, STATE)
    return State(**found) if found else None


def encode_state(state: State | None, came: Any = None) -> dict[str, Any]:
    """Encode the fields for server-side state.

    `came` is the original conversation: one that had more than an id stays an object.
    """
    if state is None:
        return {}
    body = encode_settings(state, STATE)
    if "conversation" in body and isinstance(came, Mapping) and came.keys() != {"id"}:
        body["conversation"] = {"id": state.conversation}
    if "prompt" in body:
        body["prompt"] = {"id": state.prompt}
    return body
