"""What Anthropic's Messages API would refuse in a request."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.wire.anthropic import blockrules as blocks
from dragoman.wire.anthropic import mediarules as media
from dragoman.wire.anthropic import strictrules as strict
from dragoman.wire.anthropic import thinkingrules as thinking
from dragoman.wire.anthropic import turnrules as turns
from dragoman.wire.anthropic.target import TARGET
from dragoman.wire.anthropic.view import View
from dragoman.wire.target import Target
from dragoman.wire.violations import Rule, Violation, checked, not_an_object, opened

RULES: tuple[Rule[View], ...] = (
    Rule(turns.shape_messages),
    Rule(blocks.shape_temperature),
    Rule(turns.shape_blocks_have_their_speaker, "warning"),
    Rule(strict.shape_strict_schemas_are_objects),
    Rule(strict.shape_strict_schemas_have_an_end),
    Rule(blocks.limit_strict_schemas),
    Rule(turns.w40_results_follow_calls),
    Rule(turns.w41_results_come_first),
    Rule(turns.w42_results_have_calls),
    Rule(turns.w42_server_results_have_calls),
    Rule(turns.w43_ids_are_unique_in_a_turn),
    Rule(turns.w43_ids_are_unique, "warning"),
    Rule(blocks.w44_ids_are_plain),
    Rule(blocks.w45_input_is_an_object),
    Rule(turns.w46_texts_are_not_empty),
    Rule(turns.w46_texts_are_not_blank),
    Rule(turns.w47_there_are_messages),
    Rule(turns.w47_the_user_begins, "warning"),
    Rule(turns.w47_messages_say_something),
    Rule(turns.w48_prefill_has_no_white_space_at_its_end),
    Rule(turns.w49_system_messages_precede_the_assistant),
    Rule(blocks.w50_max_tokens_is_given),
    Rule(thinking.w51_a_tool_loop_begins_with_thinking),
    Rule(thinking.w52_thinking_comes_first),
    Rule(thinking.w53_no_thinking_at_the_end_when_off),
    Rule(thinking.w54_thinking_is_signed),
    Rule(thinking.w57_redacted_thinking_has_its_data),
    Rule(thinking.w58_thinking_forces_no_tool),
    Rule(thinking.w59_the_budget_fits),
    Rule(thinking.w59_thinking_takes_no_sampling),
    Rule(thinking.w59_thinking_takes_little_sampling),
    Rule(thinking.w59_the_newest_take_no_sampling),
    Rule(thinking.w59_temperature_and_top_p_exclude_each_other),
    Rule(thinking.w59_thinking_is_asked_for_as_the_model_has_it),
    Rule(blocks.w60_four_cache_markers),
    Rule(blocks.w61_cache_ttl_is_known, "warning"),
    Rule(blocks.w62_input_schemas_are_objects),
    Rule(blocks.w63_history_needs_its_tools),
    Rule(blocks.w64_results_hold_known_blocks),
    Rule(media.w65_images_have_a_source),
    Rule(media.w65_images_are_of_their_type),
    Rule(media.w65_images_are_small, "warning"),
    Rule(blocks.w71_server_results_are_whole, "warning"),
    Rule(blocks.w74_choices_are_known),
)


def check(
    body: object,
    path: str | None = None,
    headers: Mapping[str, str] | None = None,
    target: Target | None = None,
) -> list[Violation]:
    """What the target would refuse; any JSON gives a list."""
    wire = opened(body)
    if wire is None:
        return not_an_object()
    return checked(View(wire, target or TARGET, path, headers), RULES)
