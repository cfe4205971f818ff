"""Rules for requests to Anthropic's Messages API."""

from __future__ import annotations

from dragoman.wire.anthropic import rules_content as content
from dragoman.wire.anthropic import rules_turns as turns
from dragoman.wire.anthropic.dialect import TARGET
from dragoman.wire.anthropic.rules_view import View
from dragoman.wire.violations import Rule, Rulebook

CLAUDE = ("anthropic", "vertex")
"""Providers of the same service."""
PAIRS = ("turns.pairs_results", "turns.groups_results")
SAMPLING = ("sampling.refused", "sampling.refused_while_thinking")

RULES: tuple[Rule[View], ...] = (
    Rule(turns.shape_messages, "error", "ST", CLAUDE),
    Rule(content.shape_model, "error", "S"),
    Rule(content.shape_model_is_named, "warning", "S"),
    Rule(content.shape_model_is_listed, "warning", "ST", CLAUDE[:1]),
    Rule(content.shape_temperature, "error", "ST", CLAUDE),
    Rule(turns.shape_blocks_have_their_speaker, "error", "E", CLAUDE),
    Rule(content.shape_strict_schemas_are_objects, "error", "T", CLAUDE),
    Rule(content.shape_strict_schemas_have_an_end, "error", "T", CLAUDE),
    Rule(content.limit_strict_schemas, "error", "T", CLAUDE),
    Rule(turns.w40_results_follow_calls, "error", "E", CLAUDE, PAIRS),
    Rule(turns.w41_results_come_first, "error", "E", CLAUDE, PAIRS),
    Rule(turns.w42_results_have_calls, "error", "E", CLAUDE, PAIRS),
    Rule(turns.w42_server_results_have_calls, "error", "E", CLAUDE),
    Rule(turns.w43_ids_are_unique_in_a_turn, "error", "E", CLAUDE),
    Rule(turns.w43_ids_are_unique, "warning", "ET", CLAUDE),
    Rule(content.w44_ids_are_plain, "error", "SE", CLAUDE, ("ids.pattern", "ids.max_length")),
    Rule(content.w45_input_is_an_object, "error", "S"),
    Rule(turns.w46_texts_are_not_empty, "error", "E", CLAUDE, ("turns.refuses_empty_text",)),
    Rule(turns.w46_texts_are_not_blank, "warning", "ET", CLAUDE),
    Rule(turns.w47_there_are_messages, "error", "SET", CLAUDE, ("turns.needs_message",)),
    Rule(turns.w47_the_user_begins, "warning", "ET", CLAUDE),
    Rule(
        turns.w47_messages_say_something,
        "error",
        "SET",
        CLAUDE,
        ("turns.refuses_empty_messages", "turns.refuses_empty_text"),
    ),
    Rule(turns.w48_prefill_has_no_white_space_at_its_end, "error", "E", CLAUDE, ("turns.prefill",)),
    Rule(turns.w49_system_messages_precede_the_assistant, "error", "SE", CLAUDE),
    Rule(content.w50_max_tokens_is_given, "error", "SE", CLAUDE, ("sampling.needs_token_limit",)),
    Rule(
        turns.w51_a_tool_loop_begins_with_thinking, "error", "E", CLAUDE, ("thinking.begins_turns",)
    ),
    Rule(turns.w52_thinking_comes_first, "error", "E", CLAUDE),
    Rule(
        turns.w53_no_thinking_at_the_end_when_off,
        "error",
        "E",
        CLAUDE,
        ("thinking.is_refused_in_prefill",),
    ),
    Rule(turns.w54_thinking_is_signed, "error", "E", CLAUDE, ("thinking.verifies_signatures",)),
    Rule(turns.w57_redacted_thinking_has_its_data, "error", "S"),
    Rule(
        turns.w58_thinking_forces_no_tool, "error", "ER", CLAUDE, ("thinking.allows_forced_tools",)
    ),
    Rule(turns.w59_the_budget_fits, "error", "SR"),
    Rule(turns.w59_thinking_takes_no_sampling, "error", "SR"),
    Rule(turns.w59_thinking_takes_little_sampling, "error", "ER", CLAUDE),
    Rule(turns.w59_the_newest_take_no_sampling, "error", "ER", CLAUDE, SAMPLING),
    Rule(
        turns.w59_temperature_and_top_p_exclude_each_other,
        "error",
        "ER",
        CLAUDE,
        ("sampling.refuses_temperature_with_top_p",),
    ),
    Rule(
        turns.w59_thinking_is_asked_for_as_the_model_has_it,
        "error",
        "T",
        CLAUDE,
        ("thinking.form", "thinking.efforts", "thinking.budget_range"),
    ),
    Rule(turns.w59_thinking_can_be_turned_off, "warning", "R"),
    Rule(content.w60_four_cache_markers, "error", "E", CLAUDE, ("cache.max_hints",)),
    Rule(content.w61_cache_ttl_is_known, "warning", "R"),
    Rule(content.w62_input_schemas_are_objects, "error", "ET", CLAUDE),
    Rule(content.w63_history_needs_its_tools, "error", "ER", (), ("tools.must_be_declared",)),
    Rule(content.w64_results_hold_known_blocks, "error", "S"),
    Rule(content.w65_images_have_a_source, "error", "S"),
    Rule(content.w65_images_are_of_their_type, "error", "E", CLAUDE),
    Rule(content.w65_images_are_small, "warning", "R"),
    Rule(content.w71_server_results_are_whole, "warning", "R"),
    Rule(content.w74_choices_are_known, "error", "SR"),
    Rule(content.w74_tools_can_be_forced, "error", "D", (), ("tools.takes_forced_choice",)),
    Rule(content.w121_choices_need_tools, "warning", "R"),
)

RULEBOOK = Rulebook(
    RULES, lambda body, target, path, headers: View(body, target or TARGET, path, headers)
)
