"""How the answer should be made: `options`, its `format`, and whether to `think`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.requests import Output, Sampling, ThinkingConfig
from dragoman.wire.json_values import is_integer, is_list, is_object
from dragoman.wire.ollama.dialect import EFFORTS, OWN, Outgoing
from dragoman.wire.violations import is_number

_NUMBERS = ("temperature", "top_p", "presence_penalty", "frequency_penalty")
# W108. Zero and less have meanings of their own here: no limit, all tokens.
_COUNTS = {"num_predict": "max_tokens", "top_k": "top_k"}
SAMPLING = {
    "options": {
        **{key: f"sampling.{key}" for key in (*_NUMBERS, "seed", "stop")},
        **{key: f"sampling.{name}" for key, name in _COUNTS.items()},
    },
    "logprobs": "sampling.logprobs",
    "top_logprobs": "sampling.top_logprobs",
}
"""By the wire's field: the setting."""
_NEAREST = {"minimal": "low", "xhigh": "max"}


def decode_sampling(wire: Mapping[str, Any], known: set[str]) -> tuple[Sampling, dict[str, Any]]:
    """The sampling fields, and the options that are left over."""
    fields: dict[str, Any] = {}
    options = wire.get("options")
    left = dict(options) if is_object(options) else {}
    for key in _NUMBERS:
        if is_number(left.get(key)):
            fields[key] = left.pop(key)
    for key, name in _COUNTS.items():
        value = left.get(key)
        if is_integer(value) and value > 0:
            fields[name] = left.pop(key)
    if is_integer(left.get("seed")):
        fields["seed"] = left.pop("seed")
    stop = left.get("stop")
    if is_list(stop) and stop and all(isinstance(text, str) for text in stop):
        fields["stop"] = tuple(left.pop("stop"))
    if fields:
        known.add("options")
    if isinstance(wire.get("logprobs"), bool):
        fields["logprobs"] = wire["logprobs"]
        known.add("logprobs")
    if is_integer(wire.get("top_logprobs")):
        fields["top_logprobs"] = wire["top_logprobs"]
        known.add("top_logprobs")
    return Sampling(**fields), left


def encode_sampling(sampling: Sampling, body: dict[str, Any], out: Outgoing) -> None:
    """Write the sampling fields."""
    options: dict[str, Any] = {}
    names = {**{key: key for key in _NUMBERS}, **_COUNTS, "seed": "seed"}
    for key, name in names.items():
        if (value := getattr(sampling, name)) is not None:
            options[key] = value
    if sampling.stop:
        options["stop"] = list(sampling.stop)
    if options:
        body["options"] = options
    for key in ("logprobs", "top_logprobs"):
        if (value := getattr(sampling, key)) is not None:
            body[key] = value
    if sampling.choices is not None and sampling.choices > 1:
        out.lose("sampling.choices", "there is one choice only")


def decode_output(wire: Any) -> Output | None:
    """The form of the answer in `format`; None where it is free, or unknown."""
    if wire == "json":
        return Output(format="json")
    return Output(format="schema", schema=wire, origin=OWN) if is_object(wire) else None


def encode_output(output: Output, body: dict[str, Any], out: Outgoing) -> None:
    """Write the `format`: free text needs none."""
    if output.format == "text":
        return
    if output.format == "schema" and output.schema is not None:
        body["format"] = out.schemas.labelled(output.schema, output)
        return
    body["format"] = "json"
    if output.format == "schema":
        out.lose("output", "there is no schema; any JSON is asked for")
    out.schemas.lose_labels(output)


def decode_thinking_config(wire: Any) -> ThinkingConfig | None:
    """Whether to think, or how hard; None where nothing is said, or nothing that is known."""
    if isinstance(wire, bool):
        return ThinkingConfig(enabled=wire)
    return ThinkingConfig(effort=wire) if isinstance(wire, str) and wire in EFFORTS else None


def encode_thinking_config(config: ThinkingConfig, body: dict[str, Any], out: Outgoing) -> None:
    """Write `think`: a model may be told to, or how hard, and no more."""
    effort = config.effort
    if config.enabled is False or effort == "none":
        body["think"] = False
    elif effort is not None and (level := _NEAREST.get(effort, effort)) in EFFORTS:
        body["think"] = level
        if level != effort:
            out.lose("thinking.effort", "sent as the nearest effort there is")
    elif config.enabled or config.budget is not None or effort is not None:
        body["think"] = True
        if effort is not None:
            out.lose("thinking.effort", "there is no such effort here")
    for name in ("budget", "visible", "summary"):
        if getattr(config, name) is not None:
            out.lose(f"thinking.{name}", "only whether to think, or how hard, can be told here")
