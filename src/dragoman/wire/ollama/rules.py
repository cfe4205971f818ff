"""Rules for Ollama requests: what the server would refuse or silently ignore.

The server parses bodies into typed structs: a value of the wrong type fails the whole request,
an unknown field is silently ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from dragoman.wire.ollama.dialect import EFFORTS, RANGES, TARGET
from dragoman.wire.shared_rules import missing_model, wrong_model
from dragoman.wire.target import Target
from dragoman.wire.violations import (
    Found,
    Object,
    Placed,
    Rule,
    Rulebook,
    field,
    is_number,
    listed,
    word,
)

# --- the view of a request body that the rules work on


class Round(NamedTuple):
    """A message's calls and the tool messages right after it."""

    calls: list[Placed]
    results: list[Placed]


class View:
    """A request body and the lists in it."""

    def __init__(self, body: Object, target: Target | None = None) -> None:
        self.body = body
        self.target = target
        self.options = field(body, "options")
        self.messages = listed(body, "messages")

    @cached_property
    def calls(self) -> list[Placed]:
        """The functions of all calls."""
        return [
            (f"{place}.function", field(call, "function"))
            for path, message in self.messages
            for place, call in listed(message, "tool_calls", path)
        ]

    @cached_property
    def rounds(self) -> list[Round]:
        """Each non-tool message with the tool messages that follow it."""
        rounds = [Round([], [])]
        for path, message in self.messages:
            if message.get("role") == "tool":
                rounds[-1].results.append((path, message))
            else:
                rounds.append(Round(listed(message, "tool_calls", path), []))
        return rounds

    def functions(self) -> Iterator[Placed]:
        """The declared functions."""
        for path, tool in listed(self.body, "tools"):
            yield f"{path}.function", field(tool, "function")


# --- rules for `options` and `format`

_NUMBERS = (
    "draft_num_predict", "frequency_penalty", "main_gpu", "min_p", "num_batch", "num_ctx",
    "num_gpu", "num_keep", "num_predict", "num_thread", "presence_penalty", "repeat_last_n",
    "repeat_penalty", "seed", "temperature", "top_k", "top_p", "typical_p",
)  # fmt: skip
# Other dialects' names for an option; the server ignores them in `options` and at the top level.
_FOREIGN_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


def w107_the_window_is_an_option(view: View) -> Found:
    """The context window size is set in `options`.

    Elsewhere it is ignored, and the start of a long conversation is silently dropped.
    """
    if view.body.get("num_ctx") is not None:
        yield "num_ctx", "ignored at the top level; set it in options"


def w108_options_are_of_their_types(view: View) -> Found:
    """`options` is an object of numbers, booleans, and a list of stop strings."""
    options = view.body.get("options")
    if options is not None and not isinstance(options, Mapping):
        yield "options", "must be an object"
        return
    for key in _NUMBERS:
        value = view.options.get(key)
        if value is not None and not is_number(value):
            yield f"options.{key}", "must be a number"
    if not isinstance(view.options.get("use_mmap"), (bool, type(None))):
        yield "options.use_mmap", "must be true or false"
    stop = view.options.get("stop")
    is_list = isinstance(stop, (list, tuple)) and all(isinstance(text, str) for text in stop)
    if stop is not None and not is_list:
        yield "options.stop", "must be a list of strings"


def w108_sampling_is_in_the_options(view: View) -> Found:
    """Sampling settings belong in `options`; at the top level they are ignored."""
    for key in (*_NUMBERS, "stop", *_FOREIGN_LIMITS):
        if key != "num_ctx" and view.body.get(key) is not None:
            yield key, "ignored at the top level; set it in options"
    for key in _FOREIGN_LIMITS:
        if view.options.get(key) is not None:
            yield f"options.{key}", "ignored; use num_predict"


def w108_formats_are_json_or_a_schema(view: View) -> Found:
    """`format` is `json` or a JSON schema."""
    form = view.body.get("format")
    if form is not None and form not in ("", "json") and not isinstance(form, Mapping):
        yield "format", 'must be "json" or a JSON schema'


# --- the rules

ROLES = ("system", "user", "assistant", "tool")
_BASE64 = re.compile(r"[A-Za-z0-9+/\r\n]*={0,2}")
_TEXTS = ("thinking", "tool_name", "tool_call_id")
_DURATION = re.compile(r"[+-]?(?:0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)")


def shape_messages(view: View) -> Found:
    """`messages` is a list of objects with a role; without messages the model is only loaded."""
    messages = view.body.get("messages")
    if messages is not None and not isinstance(messages, (list, tuple)):
        yield "messages", "must be a list"
        return
    for index, message in enumerate(messages or ()):
        if not isinstance(message, Mapping):
            yield f"messages[{index}]", "must be an object"
        elif not isinstance(role := message.get("role"), str) or role.lower() not in ROLES:
            yield f"messages[{index}].role", f"must be one of {', '.join(ROLES)}"


def shape_model(view: View) -> Found:
    """The model is a string."""
    yield from wrong_model(view.body)


def shape_model_is_named(view: View) -> Found:
    """A model is given."""
    yield from missing_model(view.body, view.target or TARGET)


def shape_texts(view: View) -> Found:
    """Text fields are strings."""
    for path, message in view.messages:
        for key in _TEXTS:
            if not isinstance(message.get(key, ""), (str, type(None))):
                yield f"{path}.{key}", "must be a string"


def shape_tools(view: View) -> Found:
    """Tools have names, and schemas that the server can parse."""
    tools = view.body.get("tools")
    if tools is not None and not isinstance(tools, (list, tuple)):
        yield "tools", "must be a list"
    for path, function in view.functions():
        if not isinstance(function.get("name"), str):
            yield f"{path}.name", "a function must have a name"
        parameters = function.get("parameters")
        if parameters is not None and not isinstance(parameters, Mapping):
            yield f"{path}.parameters", "must be an object"
        elif parameters is not None and not _is_readable(parameters):
            yield f"{path}.parameters", "the server can't parse this schema"


def shape_keep_alive(view: View) -> Found:
    """`keep_alive` is a number of seconds, or a duration such as 5m."""
    value = view.body.get("keep_alive")
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return
    if not isinstance(value, str) or not _DURATION.fullmatch(value):
        yield "keep_alive", "must be a number of seconds, or a duration with a unit, such as 5m"


def limit_logprobs(view: View) -> Found:
    """`top_logprobs` is at most 20."""
    value, (least, most) = view.body.get("top_logprobs"), RANGES["top_logprobs"]
    if value is not None and not (type(value) is int and least <= value <= most):
        yield "top_logprobs", f"must be an integer from {least} to {most}"


def w101_stream_is_yes_or_no(view: View) -> Found:
    """`stream` is a boolean; the default is true."""
    if not isinstance(view.body.get("stream"), (bool, type(None))):
        yield "stream", "must be true or false"


def w102_arguments_are_objects(view: View) -> Found:
    """The arguments of a call are an object, not a JSON string."""
    for path, function in view.calls:
        arguments = function.get("arguments")
        if arguments is not None and not isinstance(arguments, Mapping):
            yield f"{path}.arguments", "must be an object, not a JSON string"


def w103_results_name_their_tool(view: View) -> Found:
    """A tool message names its tool or its call."""
    for round_ in view.rounds:
        for path, message in round_.results:
            if not (message.get("tool_name") or message.get("tool_call_id")):
                yield path, "a tool message must have tool_name or tool_call_id"


def w103_results_are_in_order(view: View) -> Found:
    """Results of one tool are in the order of its calls: older servers match by name only."""
    for round_ in view.rounds:
        calls = {
            word(call, "id"): (place, word(field(call, "function"), "name"))
            for place, (_, call) in enumerate(round_.calls)
        }
        latest: dict[str, int] = {}
        for path, message in round_.results:
            call_id = word(message, "tool_call_id")
            if not call_id or call_id not in calls:
                continue
            place, name = calls[call_id]
            if place < latest.get(name, place):
                yield (
                    f"{path}.tool_call_id",
                    "results of the same tool must be in the order of its calls",
                )
            latest[name] = place


def w105_content_is_one_text(view: View) -> Found:
    """The content of a message is a string, never a list of parts."""
    for path, message in view.messages:
        if not isinstance(message.get("content"), (str, type(None))):
            yield f"{path}.content", "must be a string; put images in the images field"


def w105_images_are_base64(view: View) -> Found:
    """Images are plain base64: no URL, no data URL."""
    for path, message in view.messages:
        images = message.get("images")
        if images is not None and not isinstance(images, (list, tuple)):
            yield f"{path}.images", "must be a list"
            continue
        for index, image in enumerate(images or ()):
            if not isinstance(image, str) or not _is_base64(image):
                yield f"{path}.images[{index}]", "must be plain base64, not a URL or data URL"


def w106_thinking_is_known(view: View) -> Found:
    """`think` is a boolean or an effort."""
    think = view.body.get("think")
    if think is not None and not isinstance(think, bool) and think not in EFFORTS:
        yield "think", f"must be true, false, or one of {', '.join(EFFORTS)}"


def _is_base64(text: str) -> bool:
    bare = len(text) - text.count("\n") - text.count("\r")
    return bare % 4 == 0 and _BASE64.fullmatch(text.rstrip("\r\n")) is not None


def _is_readable(parameters: Mapping[str, Any]) -> bool:
    """Whether every schema in the parameters is an object whose keywords have valid types."""
    if not isinstance(parameters.get("type", ""), (str, type(None))):
        return False
    pending: list[object] = [parameters]
    while pending:
        schema = pending.pop()
        if not isinstance(schema, Mapping):
            return False
        if not all(_is_of_type(key, value) for key, value in schema.items()):
            return False
        inner, branches = schema.get("properties"), schema.get("anyOf")
        if not isinstance(inner, (Mapping, type(None))):
            return False
        if not isinstance(branches, (list, tuple, type(None))):
            return False
        pending += [*(inner or {}).values(), *(branches or ())]
    return True


def _is_of_type(key: str, value: object) -> bool:
    """Whether the server can parse the value of a keyword."""
    if value is None:
        return True
    if key == "type":
        return isinstance(value, str) or _are_strings(value)
    if key == "required":
        return _are_strings(value)
    if key == "description":
        return isinstance(value, str)
    return key != "enum" or isinstance(value, (list, tuple))


def _are_strings(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value)


RULES: tuple[Rule[View], ...] = (
    Rule(shape_messages, "error", "S"),
    Rule(shape_model, "error", "S"),
    Rule(shape_model_is_named, "warning", "S"),
    Rule(shape_texts, "error", "S"),
    Rule(shape_tools, "error", "S"),
    Rule(shape_keep_alive, "error", "S"),
    Rule(limit_logprobs, "error", "S"),
    Rule(w101_stream_is_yes_or_no, "error", "SD"),
    Rule(w102_arguments_are_objects, "error", "SR"),
    Rule(w103_results_name_their_tool, "warning", "SRT"),
    Rule(w103_results_are_in_order, "warning", "SR"),
    Rule(w105_content_is_one_text, "error", "SE"),
    Rule(w105_images_are_base64, "error", "SE", ("ollama",)),
    Rule(w106_thinking_is_known, "error", "S"),
    Rule(w107_the_window_is_an_option, "warning", "S"),
    Rule(w108_options_are_of_their_types, "error", "S"),
    Rule(w108_sampling_is_in_the_options, "warning", "ST"),
    Rule(w108_formats_are_json_or_a_schema, "error", "S"),
)

RULEBOOK = Rulebook(RULES, lambda body, target, _path, _headers: View(body, target))
