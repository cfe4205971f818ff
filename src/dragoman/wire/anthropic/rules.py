"""What Anthropic's Messages API would refuse in a request."""

from __future__ import annotations

from dragoman.wire.anthropic import blockrules as blocks
from dragoman.wire.anthropic import mediarules as media
from dragoman.wire.anthropic import strictrules as strict
from dragoman.wire.anthropic import thinkingrules as thinking
from dragoman.wire.anthropic import turnrules as turns
from dragoman.wire.anthropic.target import TARGET
from dragoman.wire.anthropic.view import View
from dragoman.wire.violations import Rule, Rulebook

CLAUDE = ("anthropic", "vertex")
"""The same service answers on both."""
PAIRS = ("pairs_results", "groups_results")
SAMPLING = ("refused_sampling", "refused_sampling_thinking")

RULES: tuple[Rule[View], ...] = (
    Rule(turns.shape_messages, "error", "ST", CLAUDE),
    Rule(blocks.shape_model, "error", "S"),
    Rule(blocks.shape_model_is_named, "warning", "S"),
    Rule(blocks.shape_temperature, "error", "ST", CLAUDE),
    Rule(turns.shape_blocks_have_their_speaker, "error", "E", CLAUDE),
    Rule(strict.shape_strict_schemas_are_objects, "error", "T", CLAUDE),
    Rule(strict.shape_strict_schemas_have_an_end, "error", "T", CLAUDE),
    Rule(blocks.limit_strict_schemas, "error", "T", CLAUDE),
    Rule(turns.w40_results_follow_calls, "error", "E", CLAUDE, PAIRS),
    Rule(turns.w41_results_come_first, "error", "E", CLAUDE, PAIRS),
    Rule(turns.w42_results_have_calls, "error", "E", CLAUDE, PAIRS),
    Rule(turns.w42_server_results_have_calls, "error", "E", CLAUDE),
    Rule(turns.w43_ids_are_unique_in_a_turn, "error", "E", CLAUDE),
    Rule(turns.w43_ids_are_unique, "warning", "ET", CLAUDE),
    Rule(
        blocks.w44_ids_are_plain,
        "error",
        "SE",
        CLAUDE,
        (
            "tool_id",
            "tool_id_length",
        ),
    ),
    Rule(blocks.w45_input_is_an_object, "error", "S"),
    Rule(turns.w46_texts_are_not_empty, "error", "E", CLAUDE, ("refuses_empty_text",)),
    Rule(turns.w46_texts_are_not_blank, "warning", "ET", CLAUDE),
    Rule(turns.w47_there_are_messages, "error", "SET", CLAUDE, ("needs_message",)),
    Rule(turns.w47_the_user_begins, "warning", "ET", CLAUDE),
    Rule(
        turns.w47_messages_say_something,
        "error",
        "SET",
        CLAUDE,
        ("refuses_empty", "refuses_empty_text"),
    ),
    Rule(turns.w48_prefill_has_no_white_space_at_its_end, "error", "E", CLAUDE, ("prefill",)),
    Rule(turns.w49_system_messages_precede_the_assistant, "error", "SE", CLAUDE),
    Rule(blocks.w50_max_tokens_is_given, "error", "SE", CLAUDE, ("needs_token_limit",)),
    Rule(
        thinking.w51_a_tool_loop_begins_with_thinking,
        "error",
        "E",
        CLAUDE,
        ("thinking_begins_turns",),
    ),
    Rule(thinking.w52_thinking_comes_first, "error", "E", CLAUDE),
    Rule(
        thinking.w53_no_thinking_at_the_end_when_off,
        "error",
        "E",
        CLAUDE,
        ("refuses_prefilled_thinking",),
    ),
    Rule(thinking.w54_thinking_is_signed, "error", "E", CLAUDE, ("verifies_thinking",)),
    Rule(thinking.w57_redacted_thinking_has_its_data, "error", "S"),
    Rule(thinking.w58_thinking_forces_no_tool, "error", "ER", CLAUDE, ("forces_tools_thinking",)),
    Rule(thinking.w59_the_budget_fits, "error", "SR"),
    Rule(thinking.w59_thinking_takes_no_sampling, "error", "SR"),
    Rule(thinking.w59_thinking_takes_little_sampling, "error", "ER", CLAUDE),
    Rule(thinking.w59_the_newest_take_no_sampling, "error", "ER", CLAUDE, SAMPLING),
    Rule(
        thinking.w59_temperature_and_top_p_exclude_each_other,
        "error",
        "ER",
        CLAUDE,
        ("refuses_temperature_with_top_p",),
    ),
    Rule(
        thinking.w59_thinking_is_asked_for_as_the_model_has_it,
        "error",
        "T",
        CLAUDE,
        (
            "thinking_form",
            "efforts",
            "thinking_budgets",
        ),
    ),
    Rule(blocks.w60_four_cache_markers, "error", "E", CLAUDE, ("cache_markers",)),
    Rule(blocks.w61_cache_ttl_is_known, "warning", "R"),
    Rule(blocks.w62_input_schemas_are_objects, "error", "ET", CLAUDE),
    Rule(blocks.w63_history_needs_its_tools, "error", "ER", (), ("needs_tools_for_history",)),
    Rule(blocks.w64_results_hold_known_blocks, "error", "S"),
    Rule(media.w65_images_have_a_source, "error", "S"),
    Rule(media.w65_images_are_of_their_type, "error", "E", CLAUDE),
    Rule(media.w65_images_are_small, "warning", "R"),
    Rule(blocks.w71_server_results_are_whole, "warning", "R"),
    Rule(blocks.w74_choices_are_known, "error", "SR"),
)

RULEBOOK = Rulebook(
    RULES, lambda body, target, path, headers: View(body, target or TARGET, path, headers)
)
