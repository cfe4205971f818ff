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
from dragoman.wire.target import Target
from dragoman.wire.violations import Rule, Violation, checked, not_an_object, opened

RULES: tuple[Rule[View], ...] = (
    Rule(contents.shape_input),
    Rule(contents.shape_state),
    Rule(contents.shape_ranges),
    Rule(contents.shape_image_data),
    Rule(contents.shape_file_data),
    Rule(items.shape_answers_have_their_type),
    Rule(items.shape_reasoning_is_readable),
    Rule(contents.limit_output_tokens),
    Rule(items.i5_call_ids_are_unique, "warning"),
    Rule(items.i8_calls_have_one_output, "warning"),
    Rule(contents.w6_names_are_plain),
    Rule(contents.w12_reasoning_models_take_no_sampling),
    Rule(contents.w12_efforts_are_known),
    Rule[View](w14_strict_objects_are_closed),
    Rule[View](w15_strict_schemas_keep_to_the_subset),
    Rule(items.w20_calls_are_paired_on_call_id),
    Rule(items.w21_item_ids_are_plain),
    Rule(items.w21_item_ids_have_their_prefix),
    Rule(items.w21_reasoning_has_its_id),
    Rule(items.w22_call_ids_are_short),
    Rule(items.w23_reasoning_is_followed),
    Rule(items.w24_calls_keep_their_reasoning, "warning"),
    Rule(items.w25_reasoning_is_sealed),
    Rule(items.w28_item_ids_are_unique),
    Rule(items.w29_calls_are_answered),
    Rule(items.w29_outputs_have_calls),
    Rule(items.w29_built_in_calls_are_answered, "warning"),
    Rule(items.w29_built_in_outputs_have_calls, "warning"),
    Rule(contents.w30_people_say_input),
    Rule(contents.w30_the_model_says_output),
    Rule(contents.w31_outputs_are_text_images_or_files),
    Rule(contents.w31_outputs_have_no_error),
    Rule(contents.w32_phases_are_known),
    Rule(contents.w36_tools_are_flat),
    Rule(contents.w36_settings_have_their_own_names),
    Rule(contents.w39_argument_names_are_short),
)


def check(body: object, target: Target | None = None) -> list[Violation]:
    """What the target would refuse; any JSON gives a list."""
    wire = opened(body)
    return not_an_object() if wire is None else checked(View(wire, target or TARGET), RULES)
