"""What `generateContent` would refuse in a request."""

from __future__ import annotations

from dragoman.wire.gemini import partrules as parts
from dragoman.wire.gemini import toolrules as tools
from dragoman.wire.gemini import turnrules as turns
from dragoman.wire.gemini.target import TARGET
from dragoman.wire.gemini.view import View
from dragoman.wire.violations import Rule, Rulebook

GOOGLE = ("google", "vertex")
PAIRS = ("pairs_results", "groups_results")

RULES: tuple[Rule[View], ...] = (
    Rule(turns.shape_contents, "error", "S"),
    Rule(tools.shape_temperature, "error", "ST", GOOGLE),
    Rule(tools.shape_counts, "error", "S"),
    Rule(tools.shape_thinking, "error", "S"),
    Rule(turns.w75_there_are_contents, "error", "SR"),
    Rule(turns.w75_roles_are_known, "error", "RT", GOOGLE),
    Rule(turns.w76_contents_have_parts, "error", "E", GOOGLE, ("refuses_empty",)),
    Rule(turns.w76_parts_have_one_field, "error", "E", GOOGLE),
    Rule(turns.w77_no_call_comes_first, "error", "E", GOOGLE, ("refuses_call_first",)),
    Rule(turns.w78_responses_follow_calls, "error", "E", GOOGLE, PAIRS),
    Rule(turns.w78_calls_are_answered, "error", "E", GOOGLE, PAIRS),
    Rule(turns.w78_calls_should_be_answered, "warning", "ET"),
    Rule(turns.w79_the_user_speaks_last, "error", "ER", GOOGLE, ("prefill",)),
    Rule(turns.w79_the_user_should_speak_last, "warning", "ET"),
    Rule(parts.w80_arguments_are_an_object, "error", "S"),
    Rule(parts.w81_calls_and_responses_have_names, "error", "SR"),
    Rule(parts.w81_ids_are_echoed, "warning", "S"),
    Rule(parts.w82_responses_are_objects, "error", "S"),
    Rule(turns.w83_calls_are_signed, "error", "DE", GOOGLE, ("signs_calls",)),
    Rule(turns.w86_signatures_are_base64, "error", "E"),
    Rule(tools.w89_names_are_plain, "error", "S"),
    Rule(tools.w89_parameters_have_plain_names, "warning", "S"),
    Rule(tools.w90_keywords_are_known, "error", "E", GOOGLE),
    Rule(tools.w91_types_are_single, "error", "ER", GOOGLE),
    Rule(tools.w92_any_of_stands_alone, "warning", "E"),
    Rule(tools.w93_references_stand_alone, "warning", "R"),
    Rule(tools.w93_there_is_one_schema, "error", "S"),
    Rule(tools.w94_enums_hold_strings, "error", "SE", GOOGLE),
    Rule(tools.w94_arrays_have_items, "error", "SE", GOOGLE),
    Rule(parts.w95_responses_hold_no_references, "error", "E", GOOGLE),
    Rule(parts.w96_responses_hold_no_media, "warning", "R"),
    Rule(tools.w97_json_or_tools, "error", "ER", GOOGLE, ("refuses_json_with_tools",)),
    Rule(tools.w97_functions_or_server_tools, "error", "ER", GOOGLE, ("refuses_mixed_tools",)),
    Rule(tools.w99_modes_are_known, "error", "S"),
    Rule(tools.w99_names_go_with_their_modes, "warning", "S"),
    Rule(tools.w99_choices_need_functions, "warning", "T"),
)

RULEBOOK = Rulebook(RULES, lambda body, target, _path, _headers: View(body, target or TARGET))
