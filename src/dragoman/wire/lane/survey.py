"""Surveys a conversation in one pass: whether any target accepts it as it is, and its content.

Whatever fitting would have to repair is not plain: blank texts, calls without a result, results out
of order, duplicate ids, instructions within the conversation, a prefill. What may matter to some
targets only is recorded in the shape, from which `skeleton` makes the smallest such conversation;
the general path shows how that is translated.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import length_hint
from typing import Any

from msgspec import UNSET

from dragoman.wire.lane.plain import (
    DEEP,
    Assistant,
    Attachment,
    Developer,
    FailedResult,
    Names,
    NotPlain,
    Result,
    System,
    Text,
    Turn,
    Turns,
    User,
    UserBesideResults,
    check_depth,
)

# The content of a conversation.
CALLS = 1
SEVERAL_CALLS = 2
"""In one turn."""
TEXT_BEFORE_CALLS = 4
ANSWERS = 8
"""Assistant messages without calls."""
ANSWERS_IN_A_ROW = 16
USERS_IN_A_ROW = 32
USER_AFTER_RESULTS = 64
USER_BESIDE_RESULTS = 128
ENDS_WITH_RESULTS = 256
USER_LISTS = 512
"""Messages of several texts."""
ANSWER_LISTS = 1024
USER_ATTACHMENTS = 2048
RESULT_LISTS = 4096
LISTS_BESIDE_RESULTS = 8192
ENDS_WITH_USER_AFTER_RESULTS = 16384
ENDS_WITH_USER_BESIDE_RESULTS = 32768

RESULT_ATTACHMENTS = 1 << 38  # the bits in between, and those up to 41, are marks
ANSWER_FIRST = 1 << 42
"""It begins with an assistant message."""
CALLS_FIRST = 1 << 43
"""It begins with calls."""
ONLY_ROUNDS = 1 << 44
"""It has calls and results, but no user message."""

ATTACHMENTS = USER_ATTACHMENTS | RESULT_ATTACHMENTS
BEHIND = 1 << 45
"""It follows a part of the conversation that the lane doesn't translate."""

OPENINGS = ANSWER_FIRST | CALLS_FIRST | ONLY_ROUNDS
ENDINGS = ENDS_WITH_RESULTS | ENDS_WITH_USER_AFTER_RESULTS | ENDS_WITH_USER_BESIDE_RESULTS


INSTRUCTIONS = (System, Developer)
"""The types of plain instructions."""
Survey = tuple[int, Names, Turns]
"""The shape of a conversation, its functions by call id, and the instructions before it."""


def surveyed(turns: Turns) -> Survey:
    """Survey a conversation.

    Raises `NotPlain`. A list of a single text is replaced by that text.
    """
    leading = [] if turns and type(turns[0]) is User else _leading(turns)
    said = turns[len(leading) :] if leading else turns
    if not said:
        raise NotPlain
    names: Names = {}
    coming = iter(said)
    try:
        shape = _shape(coming, names)
    except NotPlain as odd:
        odd.number = len(turns) - length_hint(coming) - 1
        raise
    if type(said[0]) is not User:
        shape |= _opening(said, shape)
    return shape, names, leading


def surveyed_more(turns: Turns, names: Names) -> int:
    """The shape of what was added to a conversation, which must begin with an assistant message.

    `names` has the functions called before, and is extended.
    """
    if not turns or type(turns[0]) is not Assistant:
        raise NotPlain
    return _shape(iter(turns), names)


def _opening(turns: Turns, shape: int) -> int:
    """How a conversation begins that doesn't begin with a user message."""
    first, *others = turns
    if type(first) is not Assistant or type(others[0]) is Assistant:
        raise NotPlain  # consecutive messages may be merged, which changes the beginning
    opening = CALLS_FIRST if first.tool_calls else ANSWER_FIRST
    if any(isinstance(turn, User) for turn in others):
        return opening
    if shape & ANSWERS:
        raise NotPlain
    return opening | ONLY_ROUNDS


def _leading(turns: Turns) -> Turns:
    leading: Turns = []
    for turn in turns:
        if not isinstance(turn, (System, Developer)):
            break
        if type(turn) in INSTRUCTIONS:
            _settle(turn)  # otherwise it stays as received: only the general path encodes it
        leading.append(turn)
    return leading


def _shape(turns: Iterator[Any], names: Names) -> int:  # noqa: C901, PLR0912, PLR0915 - one pass, for speed
    shape = 0
    waiting: list[str] = []
    """The ids of calls whose results must follow, the next one last."""
    ending = 0
    """How a user message followed results, if no assistant message came since."""
    before: type[Turn] | None = None
    for turn in turns:
        kind = type(turn)
        if waiting:
            if kind is not Result and kind is not FailedResult:
                raise NotPlain
            if waiting.pop() != turn.tool_call_id:
                raise NotPlain
            content = turn.content
            if type(content) is not str or not content:
                shape |= _of_result(turn)
            before, ending = Result, ENDS_WITH_USER_AFTER_RESULTS
            continue
        if kind is User:
            content = turn.content
            if type(content) is str:
                if not content or content.isspace():
                    raise NotPlain
            elif type(_settle(turn)) is list:
                shape |= _of_list(turn)
            if before is Result:
                shape |= USER_AFTER_RESULTS
            elif before is User or before is UserBesideResults:
                shape |= USERS_IN_A_ROW
        elif kind is Assistant:
            ending = 0
            content, calls = turn.content, turn.tool_calls
            if type(content) is str:
                if not content or content.isspace():
                    raise NotPlain
            elif type(content) is list and type(_settle(turn)) is list:
                shape |= ANSWER_LISTS
            if calls is not UNSET:
                shape |= CALLS
                for call in calls:
                    called, function = call.id, call.function
                    arguments = function.arguments
                    if not called or called in names or not arguments or arguments[0] != "{":
                        raise NotPlain  # blank arguments, for instance, which mean none
                    if len(arguments) > DEEP:
                        check_depth(arguments)
                    names[called] = function.name
                    waiting.append(called)
                if len(waiting) != 1:
                    if not waiting:
                        raise NotPlain
                    waiting.reverse()
                    shape |= SEVERAL_CALLS
                if content is not None and content is not UNSET:
                    shape |= TEXT_BEFORE_CALLS
            elif content is None or content is UNSET:
                raise NotPlain
            else:
                shape |= ANSWERS
            if before is Assistant:
                shape |= ANSWERS_IN_A_ROW
        elif kind is UserBesideResults and before is Result:
            shape |= USER_BESIDE_RESULTS
            ending = ENDS_WITH_USER_BESIDE_RESULTS
            if type(_settle(turn)) is list:
                shape |= _of_list(turn) | LISTS_BESIDE_RESULTS
        else:
            raise NotPlain
        before = kind
    if waiting or before is Assistant:
        raise NotPlain
    return shape | (ENDS_WITH_RESULTS if before is Result else ending)


def _of_result(turn: Result) -> int:
    """The shape of a result whose content may be a list."""
    if type(_settle(turn)) is not list:
        return 0
    if type(turn) is FailedResult:
        raise NotPlain
    if any(type(each) is Attachment for each in turn.content):
        return RESULT_LISTS | RESULT_ATTACHMENTS
    return RESULT_LISTS


def _settle(turn: Turn) -> str | list[Any]:
    """The content, with a list of a single text replaced by that text; raises for blank texts."""
    content = turn.content
    if type(content) is str:
        if not content or content.isspace():
            raise NotPlain
        return content
    if not isinstance(content, list) or not content:
        raise NotPlain
    for each in content:
        if type(each) is Text and (not each.text or each.text.isspace()):
            raise NotPlain
    if len(content) > 1 or type(content[0]) is not Text:
        return content
    turn.content = content[0].text
    return content[0].text


def _of_list(turn: Turn) -> int:
    """The shape of a user message whose content is a list."""
    shape = USER_LISTS
    if any(type(each) is Attachment for each in turn.content or ()):
        shape |= USER_ATTACHMENTS
    return shape
