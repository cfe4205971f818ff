"""How the answer should be made: sampling, form, thinking, and the fields that hosts take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.requests import Output, Sampling, State, ThinkingConfig
from dragoman.wire.json_values import is_integer, is_list, is_object
from dragoman.wire.openai_chat.dialect import NAME, OWN, is_own
from dragoman.wire.openai_strict_schemas import openai_profiles
from dragoman.wire.overlay import extras_of, with_overlay, words_of
from dragoman.wire.overlay_edits import Places, with_digests, without_edited
from dragoman.wire.writing import Writing

_TEMPLATE, _ENABLE = "chat_template_kwargs", "enable_thinking"  # vLLM, llama.cpp
_FORM_WORDS = {"reasoning": ("reasoning",), "switch": ("thinking",), "template": (_TEMPLATE,)}
"""By the target's form of asking: the word for the spelling it takes."""
_FLOATS = ("temperature", "top_p", "presence_penalty", "frequency_penalty")
# Wire field, canonical field.
_INTEGERS = (
    ("max_completion_tokens", "max_tokens"),
    ("max_tokens", "max_tokens"),  # older models and most other servers (W12)
    ("seed", "seed"),
    ("random_seed", "seed"),  # Mistral
    ("n", "choices"),
    ("top_logprobs", "top_logprobs"),
)
_OUTPUT: Places = {"json_schema": "format"}
SAMPLING = {
    key: f"sampling.{name}"
    for key, name in (*((key, key) for key in (*_FLOATS, "top_k", "logprobs", "stop")), *_INTEGERS)
}
"""By the wire's field: the setting."""
_SPELLINGS = {
    "max_tokens": ("max_completion_tokens", "max_tokens"),
    "seed": ("seed", "random_seed"),
}
_FIRST_SPELLINGS = {name: key for key, name in reversed(_INTEGERS)}


def decode_sampling(wire: dict[str, Any], used: set[str], words: list[str]) -> Sampling:
    """The sampling fields; those understood are added to `used`, their spellings to `words`."""
    fields: dict[str, Any] = {}
    for key in _FLOATS:
        value = wire.get(key)
        if type(value) is float or (is_integer(value) and int(float(value)) == value):
            fields[key] = float(value)
            if type(value) is float and value.is_integer():
                words.append(key)  # 1 and 1.0 differ on the wire, but not in the model
            used.add(key)
    for key, name in _INTEGERS:
        if name not in fields and is_integer(wire.get(key)):
            fields[name] = wire[key]
            used.add(key)
            if key in _SPELLINGS.get(name, ()):
                words.append(f"{name}={key}")
    if is_integer(wire.get("top_k")):  # other servers' own
        fields["top_k"] = wire["top_k"]
        used.add("top_k")
        words.append("top_k")
    if isinstance(wire.get("logprobs"), bool):
        fields["logprobs"] = wire["logprobs"]
        used.add("logprobs")
    return Sampling(**fields, stop=_decode_stop(wire.get("stop"), used, words))


def encode_sampling(sampling: Sampling, body: dict[str, Any], words: Any, writing: Writing) -> None:
    """Write the sampling fields."""
    for key in _FLOATS:
        if (value := getattr(sampling, key)) is not None:
            body[key] = int(value) if value == int(value) and key not in words else value
    for name, key in _FIRST_SPELLINGS.items():
        if (value := getattr(sampling, name)) is not None:
            body[_spelled(name, words, writing) if name in _SPELLINGS else key] = value
    if sampling.top_k is not None:
        if "top_k" in words:
            body["top_k"] = sampling.top_k
        else:
            writing.lose("sampling.top_k", "OpenAI knows no top_k")
    if sampling.logprobs is not None:
        body["logprobs"] = sampling.logprobs
    if sampling.stop:
        is_one = len(sampling.stop) == 1 and "stop" in words
        body["stop"] = sampling.stop[0] if is_one else list(sampling.stop)


def _spelled(name: str, words: Any, writing: Writing) -> str:
    """The field for a setting that has two: as it was spelled, if the target takes that (W12)."""
    known, own = writing.target.sampling.token_limit_fields, writing.target.sampling.seed_field
    if name == "seed":
        known = _SPELLINGS[name] if own is None else (own,)
    found = next((key for key in known if f"{name}={key}" in words), None)
    if found is None and any(f"{name}={key}" in words for key in _SPELLINGS[name]):
        writing.repair(f"sampling.{name}", "W12", "renamed", "the field that this host takes")
    return found or known[0]


def _decode_stop(wire: Any, used: set[str], words: list[str]) -> tuple[str, ...]:
    if isinstance(wire, str):
        used.add("stop")
        words.append("stop")
        return (wire,)
    if is_list(wire) and wire and all(isinstance(text, str) for text in wire):
        used.add("stop")
        return tuple(wire)
    return ()


def decode_output(wire: Any) -> Output | None:
    """The form of the answer in `response_format`; None where it is unknown."""
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
    output = Output(format="schema", **fields, extras=extras_of(left, NAME, words), origin=OWN)
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
        spec.setdefault("name", "response")  # OpenAI demands one
    return with_overlay({"type": "json_schema", "json_schema": spec}, extras, NAME)


def decode_thinking_config(wire: dict[str, Any], used: set[str]) -> ThinkingConfig | None:
    """How hard to think: OpenAI's `reasoning_effort`, OpenRouter's, Z.ai's and vLLM's objects."""
    effort, reasoning, thinking, template = (
        wire.get(key) for key in ("reasoning_effort", "reasoning", "thinking", _TEMPLATE)
    )
    if isinstance(effort, str):
        used.add("reasoning_effort")
    elif is_object(reasoning):
        used.add("reasoning")
        return _decode_reasoning(reasoning)
    else:
        effort = None
    if is_object(thinking) and thinking.get("type") in ("enabled", "disabled"):
        used.add("thinking")
        left = {key: value for key, value in thinking.items() if key != "type"}
        return ThinkingConfig(
            effort=effort,
            enabled=thinking["type"] == "enabled",
            extras=extras_of({"thinking": left} if left else {}, NAME, ("thinking",)),
        )
    if is_object(template) and isinstance(template.get(_ENABLE), bool):
        used.add(_TEMPLATE)
        left = {key: value for key, value in template.items() if key != _ENABLE}
        return ThinkingConfig(
            effort=effort,
            enabled=template[_ENABLE],
            extras=extras_of({_TEMPLATE: left} if left else {}, NAME, (_TEMPLATE,)),
        )
    return None if effort is None else ThinkingConfig(effort=effort)


def _decode_reasoning(wire: dict[str, Any]) -> ThinkingConfig:
    fields: dict[str, Any] = {}
    left: dict[str, Any] = {}
    for key, value in wire.items():
        if key == "effort" and isinstance(value, str):
            fields["effort"] = value
        elif key == "max_tokens" and is_integer(value):
            fields["budget"] = value
        elif key == "enabled" and isinstance(value, bool):
            fields["enabled"] = value
        elif key == "exclude" and isinstance(value, bool):
            fields["visible"] = not value
        else:
            left[key] = value
    extras = extras_of({"reasoning": left} if left else {}, NAME, ("reasoning",))
    return ThinkingConfig(**fields, extras=extras)


def encode_thinking_config(config: ThinkingConfig, body: dict[str, Any], writing: Writing) -> None:
    """Write how hard to think, in the target's form; OpenAI's own API knows the effort only."""
    form = writing.target.thinking.form
    words = words_of(config.extras, NAME) if form == "any" else _FORM_WORDS.get(form, ())
    if "reasoning" in words:
        exclude = None if config.visible is None else not config.visible
        found = {"effort": config.effort, "max_tokens": config.budget,
                 "enabled": config.enabled, "exclude": exclude}  # fmt: skip
        body["reasoning"] = {key: value for key, value in found.items() if value is not None}
        if config.summary is not None:
            writing.lose("thinking.summary", "only whether it is shown can be told here")
    else:
        if config.effort is not None:
            body["reasoning_effort"] = config.effort
        said: tuple[str, ...] = ()
        if "thinking" in words and config.enabled is not None:
            body["thinking"] = {"type": "enabled" if config.enabled else "disabled"}
            said = ("enabled",)
        elif _TEMPLATE in words and config.enabled is not None:
            body[_TEMPLATE] = {_ENABLE: config.enabled}
            said = ("enabled",)
        for name in ("enabled", "budget", "visible", "summary"):
            if name not in said and getattr(config, name) is not None:
                writing.lose(f"thinking.{name}", "only the effort can be told here")
    if form == "any" or _FORM_WORDS.get(form, ()) == tuple(words_of(config.extras, NAME)):
        with_overlay(body, config.extras, NAME)
    elif with_overlay({}, config.extras, NAME):
        writing.lose("thinking.extras", "settings that another host has for it")


def decode_state(wire: dict[str, Any], used: set[str]) -> State | None:
    """Whether the provider keeps the answer."""
    store = wire.get("store")
    if not isinstance(store, bool):
        return None
    used.add("store")
    return State(store=store)


def encode_state(state: State, body: dict[str, Any]) -> None:
    """Write whether the provider keeps the answer."""
    if state.store is not None:
        body["store"] = state.store


# --- fields that a host does not take: left out, and reported (W17, W109, W111)
#
# OpenAI's dialect has many speakers. Some ignore what they don't know, others refuse the request.

_STRANGE = "this host takes no such field"
# Where a field of the wire stands in the request; all others are in its extras.
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


def admit_request(body: dict[str, Any], writing: Writing) -> dict[str, Any]:
    """The body without fields that the target refuses; those that are null are not missed."""
    target = writing.target
    for key, value in list(body.items()):
        if target.fields.admits(key, target.fields.in_request):
            continue
        del body[key]
        if value is not None:
            writing.lose(_PLACES.get(key, "extras"), _STRANGE)
    tools = body.get("tools")
    if target.fields.refused and is_list(tools):
        body["tools"] = [
            _without_refused(tool, writing, f"tools[{index}].extras")
            for index, tool in enumerate(tools)
        ]
    return body


def admit_message(wire: dict[str, Any], writing: Writing, path: str) -> dict[str, Any]:
    """A message without fields that the target refuses, in it and in its parts and calls."""
    target = writing.target
    kept = wire
    if not all(target.fields.admits(key, target.fields.in_message) for key in wire):
        kept = {}
        for key, value in wire.items():
            if target.fields.admits(key, target.fields.in_message):
                kept[key] = value
            elif value is not None:
                writing.lose(f"{path}.name" if key == "name" else f"{path}.extras", _STRANGE)
    if target.fields.refused:
        for key in ("content", "tool_calls"):
            items = kept.get(key)
            if is_list(items):
                kept[key] = [_without_refused(item, writing, f"{path}.parts") for item in items]
    return kept


def _without_refused(item: Any, writing: Writing, path: str) -> Any:
    refused = writing.target.fields.refused
    if not isinstance(item, Mapping) or item.keys().isdisjoint(refused):
        return item
    for key in refused:
        if item.get(key) is not None:
            writing.lose(path, _STRANGE)
    return {key: value for key, value in item.items() if key not in refused}
