"""Rules for requests to OpenAI's Responses API: content, tools, settings, and the rulebook."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from dragoman.wire.losses import UNSUPPORTED_FIELD
from dragoman.wire.openai_responses.argument_names import MAX_NAME_LENGTH, has_long_names
from dragoman.wire.openai_responses.content_types import CALLS, kind_of
from dragoman.wire.openai_responses.dialect import TARGET
from dragoman.wire.openai_responses.rules_items import (
    EFFORTS,
    OPENAI,
    SAMPLING,
    STRICT,
    VERIFIES,
    View,
    rule,
)
from dragoman.wire.openai_responses.settings import SETTINGS
from dragoman.wire.openai_responses.tables import ITEMS
from dragoman.wire.openai_responses.tools import TOOLS
from dragoman.wire.openai_settings import SAMPLING_RANGES
from dragoman.wire.openai_strict_schemas import (
    w14_strict_objects_are_closed,
    w15_strict_schemas_keep_to_the_subset,
)
from dragoman.wire.rows import Shape
from dragoman.wire.settings_rows import Settings
from dragoman.wire.shared_rules import (
    missing_model,
    orphaned_choice,
    out_of_range,
    refused_sampling,
    unknown_detail,
    unknown_effort,
    unlisted_model,
    wrong_counts,
)
from dragoman.wire.violations import (
    Found,
    Object,
    Placed,
    Rulebook,
    field,
    is_data,
    listed,
)

# --- rules for content, tools and settings

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SOURCES = ("previous_response_id", "conversation", "prompt")
_INPUT_TYPES = ("input_text", "input_image", "input_file")
_OUTPUT_TYPES = ("output_text", "refusal")
_PHASES = ("commentary", "final_answer")
_UNREADABLE = ("data:audio/", "data:video/")
# Names in Chat Completions of settings that have another name in this dialect.
_CHAT_NAMES = {
    "messages": "input",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
    "functions": "tools",
}


@rule("error", "S")
def shape_input(view: View) -> Found:
    """There is input, and each item is an object."""
    given = view.body.get("input")
    if given is None and not any(view.body.get(key) for key in _SOURCES):
        yield "input", f"input is required, or one of {', '.join(_SOURCES)}"
    elif not isinstance(given, (str, list, tuple, type(None))):
        yield "input", "must be a string or a list of items"
    for index, item in enumerate(given if isinstance(given, (list, tuple)) else ()):
        if not isinstance(item, Mapping):
            yield f"input[{index}]", "must be an object"


@rule("error", "S")
def shape_fields(view: View) -> Found:
    """Fields are of the types that the rows give them."""
    yield from _misfits(SETTINGS, view.body)
    if view.body.get("model") == "":
        yield "model", "must not be empty"
    yield from wrong_counts(view.body, "max_tool_calls")
    for path, tool in listed(view.body, "tools"):
        yield from _misfits(TOOLS.shape_of(tool), tool, path)
    for path, item in view.items:
        yield from _misfits(ITEMS.shape_of(item), item, path)


def _misfits(shape: Shape[Any] | Settings | None, wire: Object, path: str = "") -> Found:
    found = () if shape is None else shape.misfits(wire)
    yield from ((f"{path}.{name}".lstrip("."), message) for name, message in found)


@rule("error", "S")
def shape_state(view: View) -> Found:
    """A request continues a response or a conversation, not both."""
    if view.body.get("previous_response_id") and view.body.get("conversation"):
        yield "previous_response_id", "can't be combined with conversation"


@rule("error", "ST", OPENAI)
def shape_ranges(view: View) -> Found:
    """Sampling settings are numbers in their ranges."""
    yield from out_of_range(view.body, SAMPLING_RANGES)


@rule("error", "S")
def shape_image_data(view: View) -> Found:
    """The data of an image data URL is base64."""
    for path, part in _media(view):
        url = part.get("image_url")
        if isinstance(url, str) and not is_data(url):
            yield f"{path}.image_url", "the data is not base64"


@rule("error", "SER", (), "media.details")
def shape_image_details(view: View) -> Found:
    """The detail of an image is one that the target knows: OpenAI's newest models have more."""
    for path, part in _media(view):
        if part.get("type") == "input_image":
            yield from unknown_detail(part.get("detail"), f"{path}.detail", view.target)


@rule("error", "T", OPENAI, "media.kinds")
def shape_file_data(view: View) -> Found:
    """A file is a document, not audio or video."""
    for path, part in _media(view):
        data = part.get("file_data")
        if isinstance(data, str) and data[:11].lower() in _UNREADABLE:
            yield f"{path}.file_data", "audio and video can't be sent as files"


@rule("warning", "S")
def shape_model_is_named(view: View) -> Found:
    """A model is given, unless a stored prompt has it."""
    if not view.body.get("prompt"):
        yield from missing_model(view.body, view.target)


@rule("warning", "ST", OPENAI[:1])
def shape_model_is_listed(view: View) -> Found:
    """The model is in the provider's list, if the target has that list."""
    yield from unlisted_model(view.body, view.target)


@rule("error", "E", OPENAI, "sampling.min_output_tokens")
def limit_output_tokens(view: View) -> Found:
    """`max_output_tokens` is at least 16."""
    least = view.target.sampling.min_output_tokens
    cap = view.body.get("max_output_tokens")
    if isinstance(cap, (int, float)) and cap < least:
        yield "max_output_tokens", f"must be at least {least}"


@rule("error", "SE", OPENAI, "tools.name_pattern")
def w6_names_are_plain(view: View) -> Found:
    """Function names are valid, both in definitions and in calls."""
    for path, function in (*view.functions, *view.of_type("function_call")):
        name = function.get("name")
        if not (isinstance(name, str) and _NAME.fullmatch(name)):
            yield f"{path}.name", "a name must have 1 to 64 characters: letters, digits, _ and -"


@rule("error", "E", OPENAI, *SAMPLING)
def w12_reasoning_models_take_no_sampling(view: View) -> Found:
    """Reasoning models refuse sampling settings, at least while reasoning."""
    effort = field(view.body, "reasoning").get("effort")
    is_thinking = view.target.thinking.is_on_by_default if effort is None else effort != "none"
    yield from refused_sampling(view.body, view.target, is_thinking=is_thinking)


@rule("error", "ET", OPENAI, *EFFORTS)
def w12_efforts_are_known(view: View) -> Found:
    """The effort is supported by the model."""
    effort = field(view.body, "reasoning").get("effort")
    yield from unknown_effort(effort, "reasoning.effort", view.target)


@rule("error", "E", OPENAI, *VERIFIES)
def w30_people_say_input(view: View) -> Found:
    """Input messages contain text, images and files."""
    media = view.target.media.kinds
    known = (*_INPUT_TYPES, "input_audio") if media is None or "audio" in media else _INPUT_TYPES
    for path, part in view.input_parts():
        if part.get("type") not in known:
            yield f"{path}.type", f"must be one of {', '.join(known)}"


@rule("error", "E", OPENAI, *VERIFIES)
def w30_the_model_says_output(view: View) -> Found:
    """Assistant messages contain text and refusals."""
    for path, part in view.output_parts():
        if part.get("type") not in _OUTPUT_TYPES:
            yield f"{path}.type", f"must be one of {', '.join(_OUTPUT_TYPES)}"


@rule("error", "SE", OPENAI)
def w31_outputs_are_text_images_or_files(view: View) -> Found:
    """A tool's output is a string, or a list of texts, images and files."""
    for path, item in view.of_type(*CALLS.values()):
        if not isinstance(item.get("output"), (str, list, tuple)):
            yield f"{path}.output", "must be a string or a list of parts"
        for place, part in listed(item, "output", path):
            if part.get("type") not in _INPUT_TYPES:
                yield f"{place}.type", f"must be one of {', '.join(_INPUT_TYPES)}"


@rule("error", "SE", OPENAI)
def w31_outputs_have_no_error(view: View) -> Found:
    """Outputs have no error field; an error is described in the output."""
    for path, item in view.of_type(*CALLS.values()):
        if "error" in item:
            yield f"{path}.error", "unknown field; describe the error in the output"


@rule("error", "SR")
def w32_phases_are_known(view: View) -> Found:
    """The phase of an assistant message is known."""
    for path, item in view.of_type("message"):
        phase = item.get("phase")
        if phase is not None and phase not in _PHASES:
            yield f"{path}.phase", f"must be one of {', '.join(_PHASES)}"


@rule("error", "S")
def w36_tools_are_flat(view: View) -> Found:
    """A function's name and parameters are in the tool itself."""
    for path, tool in view.functions:
        if field(tool, "function"):
            yield f"{path}.function", "put name and parameters in the tool itself"


@rule("error", "S")
def w36_settings_have_their_own_names(view: View) -> Found:
    """Setting names of Chat Completions are refused."""
    for key, ours in _CHAT_NAMES.items():
        is_heeded = key == "response_format" and view.target.schemas.uses_chat_format
        if view.body.get(key) is not None and not is_heeded:
            yield key, f"unknown in this API; use {ours}"


@rule("error", "E", OPENAI, "tools.limits_argument_names")
def w39_argument_names_are_short(view: View) -> Found:
    """Property names in a call's arguments have at most 256 characters."""
    for path, item in (
        view.of_type("function_call") if view.target.tools.limits_argument_names else ()
    ):
        arguments = item.get("arguments")
        if isinstance(arguments, str) and has_long_names(arguments):
            yield (
                f"{path}.arguments",
                f"property names can have at most {MAX_NAME_LENGTH} characters",
            )


@rule("warning", "R")
def w121_choices_need_tools(view: View) -> Found:
    """Settings about tools come with tools, which may also be in the input or the prompt."""
    if not any(view.of_type("additional_tools")) and view.body.get("prompt") is None:
        yield from orphaned_choice(view.body, "tool_choice", "parallel_tool_calls")


def _media(view: View) -> Iterator[Placed]:
    yield from view.input_parts()
    for path, item in view.items:
        if kind_of(item) in CALLS.values():
            yield from listed(item, "output", path)


# --- all rules


@rule("error", "ET", ("xai", "mistral"), "fields.refused")
def w109_fields_are_known(view: View) -> Found:
    """The request has no field that the host refuses."""
    refused = view.target.fields.refused
    yield from ((name, UNSUPPORTED_FIELD) for name in refused if name in view.body)


rule("error", "ERT", OPENAI, *STRICT)(w14_strict_objects_are_closed)
rule("error", "DET", OPENAI, *STRICT)(w15_strict_schemas_keep_to_the_subset)
RULES = sorted(rule, key=lambda each: each.place)
RULEBOOK = Rulebook(RULES, lambda body, target, _path, _headers: View(body, target or TARGET))
