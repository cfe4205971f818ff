"""What `generateContent` would refuse in a request."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.wire.gemini import partrules as parts
from dragoman.wire.gemini import toolrules as tools
from dragoman.wire.gemini import turnrules as turns
from dragoman.wire.gemini.target import TARGET
from dragoman.wire.gemini.view import View
from dragoman.wire.target import Target
from dragoman.wire.violations import Rule, Violation, checked, not_an_object, opened

RULES: tuple[Rule[View], ...] = (
    Rule(turns.shape_contents),
    Rule(tools.shape_temperature),
    Rule(tools.shape_thinking),
    Rule(turns.w75_there_are_contents),
    Rule(turns.w75_roles_are_known),
    Rule(turns.w76_contents_have_parts),
    Rule(turns.w76_parts_have_one_field),
    Rule(turns.w77_no_call_comes_first),
    Rule(turns.w78_responses_follow_calls),
    Rule(turns.w78_calls_are_answered),
    Rule(turns.w79_the_user_speaks_last),
    Rule(parts.w80_arguments_are_an_object),
    Rule(parts.w81_calls_and_responses_have_names),
    Rule(parts.w81_ids_are_echoed, "warning"),
    Rule(parts.w82_responses_are_objects),
    Rule(turns.w83_calls_are_signed),
    Rule(turns.w86_signatures_are_base64),
    Rule(tools.w89_names_are_plain),
    Rule(tools.w89_parameters_have_plain_names, "warning"),
    Rule(tools.w90_keywords_are_known),
    Rule(tools.w91_types_are_single),
    Rule(tools.w92_any_of_stands_alone, "warning"),
    Rule(tools.w93_references_stand_alone, "warning"),
    Rule(tools.w93_there_is_one_schema),
    Rule(tools.w94_enums_hold_strings),
    Rule(tools.w94_arrays_have_items),
    Rule(parts.w95_responses_hold_no_references),
    Rule(parts.w96_responses_hold_no_media, "warning"),
    Rule(tools.w97_json_or_tools),
    Rule(tools.w97_functions_or_server_tools),
    Rule(tools.w99_modes_are_known),
    Rule(tools.w99_names_go_with_their_modes, "warning"),
    Rule(tools.w99_choices_need_functions, "warning"),
)


def check(
    body: object,
    path: str | None = None,
    headers: Mapping[str, str] | None = None,
    target: Target | None = None,
) -> list[Violation]:
    """What the target would refuse; any JSON gives a list."""
    del path, headers  # nothing in them is judged
    wire = opened(body)
    if wire is None:
        return not_an_object()
    return checked(View(wire, target or TARGET), RULES)
