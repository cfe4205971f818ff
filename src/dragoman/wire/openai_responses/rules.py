"""What OpenAI's Responses API would refuse in a request."""

from __future__ import annotations

from dragoman.wire.openai_responses import contentrules as contents
from dragoman.wire.openai_responses import itemrules as items
from dragoman.wire.openai_responses.target import TARGET
from dragoman.wire.openai_responses.view import View
from dragoman.wire.schemarules import (
    w14_strict_objects_are_closed,
    w15_strict_schemas_keep_to_the_subset,
)
from dragoman.wire.violations import Rule, Rulebook

OPENAI = ("openai", "azure")
"""The same service answers on both."""
PAIRS = ("pairs_results",)
SAMPLING = ("refused_sampling", "refused_sampling_thinking")
EFFORTS = ("thinking_form", "efforts")
STRICT = ("checks_strict_schemas",)

RULES: tuple[Rule[View], ...] = (
    Rule(contents.shape_input, "error", "S"),
    Rule(contents.shape_state, "error", "S"),
    Rule(contents.shape_model, "error", "S"),
    Rule(contents.shape_model_is_named, "warning", "S"),
    Rule(contents.shape_counts, "error", "S"),
    Rule(contents.shape_ranges, "error", "ST", OPENAI),
    Rule(contents.shape_image_data, "error", "S"),
    Rule(contents.shape_file_data, "error", "T", OPENAI, ("media",)),
    Rule(items.shape_answers_have_their_type, "error", "E", ("llama.cpp",), ("types_messages",)),
    Rule(items.shape_reasoning_is_readable, "error", "E", ("llama.cpp",), ("reads_reasoning",)),
    Rule(contents.limit_output_tokens, "error", "E", OPENAI, ("least_output_tokens",)),
    Rule(items.i5_call_ids_are_unique, "warning", "R"),
    Rule(items.i8_calls_have_one_output, "warning", "R"),
    Rule(contents.w6_names_are_plain, "error", "SE", OPENAI, ("tool_name",)),
    Rule(contents.w12_reasoning_models_take_no_sampling, "error", "E", OPENAI, SAMPLING),
    Rule(contents.w12_efforts_are_known, "error", "ET", OPENAI, EFFORTS),
    Rule[View](w14_strict_objects_are_closed, "error", "ERT", OPENAI, STRICT),
    Rule[View](w15_strict_schemas_keep_to_the_subset, "error", "DET", OPENAI, STRICT),
    Rule(items.w20_calls_are_paired_on_call_id, "error", "S"),
    Rule(items.w21_item_ids_are_plain, "error", "ER", OPENAI, ("verifies_items",)),
    Rule(items.w21_item_ids_have_their_prefix, "error", "ER", OPENAI, ("verifies_items",)),
    Rule(items.w21_reasoning_has_its_id, "error", "ER", OPENAI, ("verifies_items",)),
    Rule(
        items.w22_call_ids_are_short,
        "error",
        "E",
        OPENAI,
        (
            "tool_id",
            "tool_id_length",
        ),
    ),
    Rule(items.w23_reasoning_is_followed, "error", "ET", OPENAI, ("verifies_items",)),
    Rule(items.w24_calls_keep_their_reasoning, "warning", "ET", OPENAI),
    Rule(items.w25_reasoning_is_sealed, "error", "E", OPENAI, ("verifies_items",)),
    Rule(items.w28_item_ids_are_unique, "error", "E", OPENAI, ("verifies_items",)),
    Rule(items.w29_calls_are_answered, "error", "E", OPENAI, PAIRS),
    Rule(items.w29_outputs_have_calls, "error", "E", OPENAI, PAIRS),
    Rule(items.w29_built_in_calls_are_answered, "warning", "R"),
    Rule(items.w29_built_in_outputs_have_calls, "warning", "R"),
    Rule(contents.w30_people_say_input, "error", "E", OPENAI, ("verifies_items",)),
    Rule(contents.w30_the_model_says_output, "error", "E", OPENAI, ("verifies_items",)),
    Rule(contents.w31_outputs_are_text_images_or_files, "error", "SE", OPENAI),
    Rule(contents.w31_outputs_have_no_error, "error", "SE", OPENAI),
    Rule(contents.w32_phases_are_known, "error", "SR"),
    Rule(contents.w36_tools_are_flat, "error", "S"),
    Rule(contents.w36_settings_have_their_own_names, "error", "S"),
    Rule(contents.w39_argument_names_are_short, "error", "E", OPENAI, ("limits_argument_names",)),
)

RULEBOOK = Rulebook(RULES, lambda body, target, _path, _headers: View(body, target or TARGET))
