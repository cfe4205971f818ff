"""Rules for requests to OpenAI's Responses API: content, tools, settings, and the rulebook."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from dragoman.wire.losses import UNSUPPORTED_FIELD
from dragoman.wire.openai_responses import rules_items as items
from dragoman.wire.openai_responses.argument_names import MAX_NAME_LENGTH, has_long_names
from dragoman.wire.openai_responses.content_types import CALLS, kind_of
from dragoman.wire.openai_responses.dialect import TARGET
from dragoman.wire.openai_responses.rules_items import View
from dragoman.wire.openai_settings import SAMPLING_RANGES
from dragoman.wire.openai_strict_schemas import (
    w14_strict_objects_are_closed,
    w15_strict_schemas_keep_to_the_subset,
)
from dragoman.wire.shared_rules import (
    missing_model,
    orphaned_choice,
    out_of_range,
    refused_sampling,
    unknown_detail,
    unknown_effort,
    unlisted_model,
    wrong_counts,
    wrong_model,
)
from dragoman.wire.violations import (
    Found,
    Placed,
    Rule,
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


def shape_state(view: View) -> Found:
    """A request continues a response or a conversation, not both."""
    if view.body.get("previous_response_id") and view.body.get("conversation"):
        yield "previous_response_id", "can't be combined with conversation"


def shape_ranges(view: View) -> Found:
    """Sampling settings are numbers in their ranges."""
    yield from out_of_range(view.body, SAMPLING_RANGES)


def shape_image_data(view: View) -> Found:
    """The data of an image data URL is base64."""
    for path, part in _media(view):
        url = part.get("image_url")
        if isinstance(url, str) and not is_data(url):
            yield f"{path}.image_url", "the data is not base64"


def shape_image_details(view: View) -> Found:
    """The detail of an image is one that the target knows: OpenAI's newest models have more."""
    for path, part in _media(view):
        if part.get("type") == "input_image":
            yield from unknown_detail(part.get("detail"), f"{path}.detail", view.target)


def shape_file_data(view: View) -> Found:
    """A file is a document, not audio or video."""
    for path, part in _media(view):
        data = part.get("file_data")
        if isinstance(data, str) and data[:11].lower() in _UNREADABLE:
            yield f"{path}.file_data", "audio and video can't be sent as files"


def shape_model(view: View) -> Found:
    """The model is a string."""
    yield from wrong_model(view.body)


def shape_model_is_named(view: View) -> Found:
    """A model is given, unless a stored prompt has it."""
    if not view.body.get("prompt"):
        yield from missing_model(view.body, view.target)


def shape_model_is_listed(view: View) -> Found:
    """The model is in the provider's list, if the target has that list."""
    yield from unlisted_model(view.body, view.target)


def shape_counts(view: View) -> Found:
    """Limits are integers."""
    yield from wrong_counts(view.body, "max_output_tokens", "max_tool_calls", "top_logprobs")


def limit_output_tokens(view: View) -> Found:
    """`max_output_tokens` is at least 16."""
    least = view.target.sampling.min_output_tokens
    cap = view.body.get("max_output_tokens")
    if isinstance(cap, (int, float)) and cap < least:
        yield "max_output_tokens", f"must be at least {least}"


def w6_names_are_plain(view: View) -> Found:
    """Function names are valid, both in definitions and in calls."""
    for path, function in (*view.functions, *view.of_type("function_call")):
        name = function.get("name")
        if not (isinstance(name, str) and _NAME.fullmatch(name)):
            yield f"{path}.name", "a name must have 1 to 64 characters: letters, digits, _ and -"


def w12_reasoning_models_take_no_sampling(view: View) -> Found:
    """Reasoning models refuse sampling settings, at least while reasoning."""
    effort = field(view.body, "reasoning").get("effort")
    is_thinking = view.target.thinking.is_on_by_default if effort is None else effort != "none"
    yield from refused_sampling(view.body, view.target, is_thinking=is_thinking)


def w12_efforts_are_known(view: View) -> Found:
    """The effort is supported by the model."""
    effort = field(view.body, "reasoning").get("effort")
    yield from unknown_effort(effort, "reasoning.effort", view.target)


def w30_people_say_input(view: View) -> Found:
    """Input messages contain text, images and files."""
    media = view.target.media.kinds
    known = (*_INPUT_TYPES, "input_audio") if media is None or "audio" in media else _INPUT_TYPES
    for path, part in view.input_parts():
        if part.get("type") not in known:
            yield f"{path}.type", f"must be one of {', '.join(known)}"


def w30_the_model_says_output(view: View) -> Found:
    """Assistant messages contain text and refusals."""
    for path, part in view.output_parts():
        if part.get("type") not in _OUTPUT_TYPES:
            yield f"{path}.type", f"must be one of {', '.join(_OUTPUT_TYPES)}"


def w31_outputs_are_text_images_or_files(view: View) -> Found:
    """A tool's output is a string, or a list of texts, images and files."""
    for path, item in view.of_type(*CALLS.values()):
        if not isinstance(item.get("output"), (str, list, tuple)):
            yield f"{path}.output", "must be a string or a list of parts"
        for place, part in listed(item, "output", path):
            if part.get("type") not in _INPUT_TYPES:
                yield f"{place}.type", f"must be one of {', '.join(_INPUT_TYPES)}"


def w31_outputs_have_no_error(view: View) -> Found:
    """Outputs have no error field; an error is described in the output."""
    for path, item in view.of_type(*CALLS.values()):
        if "error" in item:
            yield f"{path}.error", "unknown field; describe the error in the output"


def w32_phases_are_known(view: View) -> Found:
    """The phase of an assistant message is known."""
    for path, item in view.of_type("message"):
        phase = item.get("phase")
        if phase is not None and phase not in _PHASES:
            yield f"{path}.phase", f"must be one of {', '.join(_PHASES)}"


def w36_tools_are_flat(view: View) -> Found:
    """A function's name and parameters are in the tool itself."""
    for path, tool in view.functions:
        if field(tool, "function"):
            yield f"{path}.function", "put name and parameters in the tool itself"


def w36_settings_have_their_own_names(view: View) -> Found:
    """Setting names of Chat Completions are refused."""
    for key, ours in _CHAT_NAMES.items():
        is_heeded = key == "response_format" and view.target.schemas.uses_chat_format
        if view.body.get(key) is not None and not is_heeded:
            yield key, f"unknown in this API; use {ours}"


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


def w109_fields_are_known(view: View) -> Found:
    """The request has no field that the host refuses."""
    refused = view.target.fields.refused
    yield from ((name, UNSUPPORTED_FIELD) for name in refused if name in view.body)


OPENAI = ("openai", "azure")
"""Providers of the same service."""
LLAMA = ("llama.cpp",)
IDS = ("ids.pattern", "ids.max_length")
VERIFIES = ("state.verifies_items",)
PAIRS = ("turns.pairs_results",)
SAMPLING = ("sampling.refused", "sampling.refused_while_thinking")
EFFORTS = ("thinking.form", "thinking.efforts")
STRICT = ("schemas.checks_strict",)

RULES: tuple[Rule[View], ...] = (
    Rule(shape_input, "error", "S"),
    Rule(shape_state, "error", "S"),
    Rule(shape_model, "error", "S"),
    Rule(shape_model_is_named, "warning", "S"),
    Rule(shape_model_is_listed, "warning", "ST", OPENAI[:1]),
    Rule(shape_counts, "error", "S"),
    Rule(shape_ranges, "error", "ST", OPENAI),
    Rule(shape_image_data, "error", "S"),
    Rule(shape_image_details, "error", "SER", (), ("media.details",)),
    Rule(shape_file_data, "error", "T", OPENAI, ("media.kinds",)),
    Rule(items.shape_answers_have_their_type, "error", "E", LLAMA, ("fields.needs_message_type",)),
    Rule(items.shape_reasoning_is_readable, "error", "E", LLAMA, ("thinking.is_plain_text",)),
    Rule(limit_output_tokens, "error", "E", OPENAI, ("sampling.min_output_tokens",)),
    Rule(items.i5_call_ids_are_unique, "warning", "R"),
    Rule(items.i8_calls_have_one_output, "warning", "R"),
    Rule(w6_names_are_plain, "error", "SE", OPENAI, ("tools.name_pattern",)),
    Rule(w12_reasoning_models_take_no_sampling, "error", "E", OPENAI, SAMPLING),
    Rule(w12_efforts_are_known, "error", "ET", OPENAI, EFFORTS),
    Rule[View](w14_strict_objects_are_closed, "error", "ERT", OPENAI, STRICT),
    Rule[View](w15_strict_schemas_keep_to_the_subset, "error", "DET", OPENAI, STRICT),
    Rule(items.w20_calls_are_paired_on_call_id, "error", "S"),
    Rule(items.w21_item_ids_are_plain, "error", "ER", OPENAI, VERIFIES),
    Rule(items.w21_item_ids_have_their_prefix, "error", "ER", OPENAI, VERIFIES),
    Rule(items.w21_reasoning_has_its_id, "error", "ER", OPENAI, VERIFIES),
    Rule(items.w22_call_ids_are_short, "error", "E", OPENAI, IDS),
    Rule(items.w23_reasoning_is_followed, "error", "ET", OPENAI, VERIFIES),
    Rule(items.w24_calls_keep_their_reasoning, "warning", "ET", OPENAI),
    Rule(items.w25_reasoning_is_sealed, "error", "E", OPENAI, VERIFIES),
    Rule(items.w28_item_ids_are_unique, "error", "E", OPENAI, VERIFIES),
    Rule(items.w29_calls_are_answered, "error", "E", OPENAI, PAIRS),
    Rule(items.w29_outputs_have_calls, "error", "E", OPENAI, PAIRS),
    Rule(items.w29_built_in_calls_are_answered, "warning", "R"),
    Rule(items.w29_built_in_outputs_have_calls, "warning", "R"),
    Rule(w30_people_say_input, "error", "E", OPENAI, VERIFIES),
    Rule(w30_the_model_says_output, "error", "E", OPENAI, VERIFIES),
    Rule(w31_outputs_are_text_images_or_files, "error", "SE", OPENAI),
    Rule(w31_outputs_have_no_error, "error", "SE", OPENAI),
    Rule(w32_phases_are_known, "error", "SR"),
    Rule(w36_tools_are_flat, "error", "S"),
    Rule(w36_settings_have_their_own_names, "error", "S"),
    Rule(w39_argument_names_are_short, "error", "E", OPENAI, ("tools.limits_argument_names",)),
    Rule(w109_fields_are_known, "error", "ET", ("xai", "mistral"), ("fields.refused",)),
    Rule(w121_choices_need_tools, "warning", "R"),
)

RULEBOOK = Rulebook(RULES, lambda body, target, _path, _headers: View(body, target or TARGET))
