"""Rules for requests to `generateContent`: contents, their order, signatures, the rulebook."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from dragoman.wire.gemini.dialect import TARGET
from dragoman.wire.gemini.rules_tools import GOOGLE, rule
from dragoman.wire.gemini.rules_view import DATA, Content, Turn, View, is_set, spelled, value_of
from dragoman.wire.shared_rules import unlisted_model
from dragoman.wire.violations import Found, Placed, Rulebook

_ROLES = ("user", "model", "function", None)
_UNPAIRED = ("videoMetadata", "thoughtSignature")
"""Fields that a part may have alone: recorded for the first, streamed for the second."""
PAIRS = ("turns.pairs_results", "turns.groups_results")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]*={0,2}", re.ASCII)


@rule("error", "S")
def shape_contents(view: View) -> Found:
    """Contents and parts are objects."""
    contents = view.body.get("contents")
    items = contents if isinstance(contents, (list, tuple)) else ()
    if contents is not None and not isinstance(contents, (list, tuple, Mapping)):
        yield "contents", "must be a list"
    for index, item in enumerate(items):
        if not isinstance(item, Mapping):
            yield f"contents[{index}]", "must be an object"
    for content in view.contents:
        parts = content.wire.get("parts")
        listed = parts if isinstance(parts, (list, tuple)) else ()
        if any(not isinstance(part, Mapping) for part in listed):
            yield f"{content.path}.parts", "every part must be an object"


@rule("error", "SR")
def w75_there_are_contents(view: View) -> Found:
    """There is at least one content; a system instruction alone is not enough."""
    if not view.body.get("contents"):
        yield "contents", "at least one content is required"


@rule("error", "RT", GOOGLE)
def w75_roles_are_known(view: View) -> Found:
    """The role of a content is user or model; instructions are in another field."""
    for content in view.contents:
        if content.wire.get("role") not in _ROLES:
            yield f"{content.path}.role", "must be user or model"


@rule("error", "E", GOOGLE, "turns.refuses_empty_messages")
def w76_contents_have_parts(view: View) -> Found:
    """Every content has a part; recordings show that it may be a blank text."""
    for content in view.contents:
        if not content.wire.get("parts"):
            yield f"{content.path}.parts", "a content must have at least one part"


@rule("error", "E", GOOGLE)
def w76_parts_have_one_field(view: View) -> Found:
    """A part has exactly one data field."""
    for content in view.contents:
        for path, part in content.parts:
            count = sum(is_set(part, name) for name in DATA)
            if count > 1:
                yield path, "a part must not have more than one data field"
            elif not count and not any(is_set(part, name) for name in _UNPAIRED):
                yield path, "a part must have a data field"


@rule("warning", "ERT", GOOGLE, "turns.doubts_empty_text")
def w76_texts_are_not_empty(view: View) -> Found:
    """A text is not empty; Google's own API has accepted some that its clients sent."""
    for content in view.contents:
        for path, part in content.parts:
            if value_of(part, "text") == "" and not value_of(part, "thoughtSignature"):
                yield path, "an empty text may be refused; leave the part out"


@rule("error", "E", GOOGLE, "turns.refuses_call_first")
def w77_no_call_comes_first(view: View) -> Found:
    """A function call follows a user turn or a function response."""
    if view.turns and view.turns[0].role == "model":
        for path, _ in view.turns[0].calls[:1]:
            yield path, "a function call must come after a user turn"


@rule("error", "E", GOOGLE, *PAIRS)
def w78_responses_follow_calls(view: View) -> Found:
    """A function response is in the turn after its calls, unless the provider stores those."""
    if view.has_hidden_context:
        return
    for before, turn in pairwise([Turn("user"), *view.turns]):
        if turn.responses and (not before.calls or turn.role == "model"):
            path = turn.responses[0][0]
            yield path, "a function response must come right after the function calls"


@rule("error", "E", GOOGLE, *PAIRS)
def w78_calls_are_answered(view: View) -> Found:
    """A turn has as many function responses as calls, in any number of contents."""
    for calls, answers in _rounds(view):
        if answers and len(answers) != len(calls):
            yield (
                calls[0][0],
                f"{len(calls)} calls require as many responses, but there are {len(answers)}",
            )


@rule("warning", "ET")
def w78_calls_should_be_answered(view: View) -> Found:
    """Calls have responses; recordings show that text instead is accepted."""
    for calls, answers in _rounds(view):
        if not answers:
            yield calls[0][0], "the calls have no responses"


def _rounds(view: View) -> Iterator[tuple[list[Placed], list[Placed]]]:
    """The calls of each of the model's turns, and the responses in the turn after it."""
    for turn, following in pairwise([*view.turns, Turn("user")]):
        if turn.role == "model" and turn.calls:
            yield turn.calls, following.responses


@rule("error", "ER", GOOGLE, "turns.prefill")
def w79_the_user_speaks_last(view: View) -> Found:
    """The last turn is the user's (depending on the target)."""
    if view.target.turns.prefill == "refused":
        yield from _ends_with_model(view)


@rule("warning", "ET")
def w79_the_user_should_speak_last(view: View) -> Found:
    """The last turn should be the user's if the model is unknown: the newest models require it."""
    if view.target.turns.prefill == "uncertain":
        yield from _ends_with_model(view)


def _ends_with_model(view: View) -> Found:
    if view.turns and view.turns[-1].role == "model":
        yield view.contents[-1].path, "the last content must have the role user"


@rule("error", "DE", GOOGLE, "thinking.signs_calls")
def w83_calls_are_signed(view: View) -> Found:
    """The first call of each step of the current turn is signed, if the target verifies it."""
    if not view.target.thinking.signs_calls:
        return
    for turn in view.turns[_current_turn(view) :]:
        for path, part in turn.calls[:1]:
            if not value_of(part, "thoughtSignature"):
                yield path, "the first function call of a step must have its thoughtSignature"


@rule("error", "E")
def w86_signatures_are_base64(view: View) -> Found:
    """A signature is base64; only the provider can verify it."""
    for content in view.contents:
        for path, part in content.parts:
            key = spelled(part, "thoughtSignature")
            value = part.get(key)
            if value is not None and not (isinstance(value, str) and _BASE64.fullmatch(value)):
                yield f"{path}.{key}", "must be base64"


def _current_turn(view: View) -> int:
    """The index of the last turn with user content."""
    for index in range(len(view.turns) - 1, -1, -1):
        if any(map(_is_spoken, view.turns[index].contents)):
            return index
    return 0


def _is_spoken(content: Content) -> bool:
    return content.role == "user" and len(content.responses) < len(content.parts)


@rule("warning", "ST", GOOGLE[:1])
def shape_model_is_listed(view: View) -> Found:
    """The model is in the provider's list, if the target has that list."""
    yield from unlisted_model(view.body, view.target)


RULES = sorted(rule, key=lambda each: each.place)
RULEBOOK = Rulebook(RULES, lambda body, target, _path, _headers: View(body, target or TARGET))
