"""One look at a conversation: whether any target takes it as it is, and what there is in it.

What fitting would have to do anything about is not plain: blank texts, calls without a result,
results out of order, ids used twice, instructions amid the conversation, an answer to be gone on
with. What may matter to some targets only is noted in the shape, of which `skeleton` makes the
smallest conversation: the general path shows what becomes of that.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from dragoman.wire.lane.plain import (
    DEEP,
    Assistant,
    Developer,
    FailedResult,
    Names,
    NotPlain,
    Picture,
    Result,
    System,
    Text,
    Turn,
    Turns,
    User,
    UserBesideResults,
    check_depth,
    inline,
)

# What there is in a conversation.
CALLS = 1
SEVERAL_CALLS = 2
"""In one turn."""
TEXT_BEFORE_CALLS = 4
ANSWERS = 8
"""Texts of the model, without calls."""
ANSWERS_IN_A_ROW = 16
USERS_IN_A_ROW = 32
USER_AFTER_RESULTS = 64
USER_BESIDE_RESULTS = 128
ENDS_WITH_RESULTS = 256
USER_LISTS = 512
"""Of several texts."""
ANSWER_LISTS = 1024
INLINE_PICTURES = 2048
LINKED_PICTURES = 4096
LISTS_BESIDE_RESULTS = 8192
ENDS_WITH_USER_AFTER_RESULTS = 16384
ENDS_WITH_USER_BESIDE_RESULTS = 32768

ENDINGS = ENDS_WITH_RESULTS | ENDS_WITH_USER_AFTER_RESULTS | ENDS_WITH_USER_BESIDE_RESULTS


def surveyed(turns: Turns) -> tuple[int, Names, Turns]:
    """The shape of a conversation, the functions that it calls, and the instructions before it.

    Raises `NotPlain`. A list of one text becomes that text.
    """
    leading: Turns = []
    if turns and type(turns[0]) is not User:
        leading = _leading(turns)
    if len(leading) == len(turns) or type(turns[len(leading)]) is not User:
        raise NotPlain
    names: Names = {}
    return _shape(turns, len(leading), names), names, leading


def surveyed_more(turns: Turns, names: Names) -> int:
    """The shape of what a conversation has grown by, beginning with the model's answer.

    `names` has the functions that were called before, and learns those that are called now.
    """
    if not turns or type(turns[0]) is not Assistant:
        raise NotPlain
    return _shape(turns, 0, names)


def _leading(turns: Turns) -> Turns:
    leading: Turns = []
    for turn in turns:
        if type(turn) is not System and type(turn) is not Developer:
            break
        _settle(turn)
        leading.append(turn)
    return leading


def _shape(turns: list[Any], leading: int, names: Names) -> int:  # noqa: C901, PLR0912, PLR0915 - one pass, for speed
    shape = 0
    waiting: list[str] = []
    """The ids of calls whose results are to come, the next one last."""
    ending = 0
    """How a user spoke after results, if the model has said nothing since."""
    before: type[Turn] | None = None
    for turn in turns[leading:] if leading else turns:
        kind = type(turn)
        if kind is Result or kind is FailedResult:
            if not waiting or waiting.pop() != turn.tool_call_id:
                raise NotPlain
            if (type(turn.content) is not str or not turn.content) and type(_settle(turn)) is list:
                raise NotPlain
            before, ending = Result, ENDS_WITH_USER_AFTER_RESULTS
            continue
        if waiting:
            raise NotPlain
        if kind is Assistant:
            ending, content = 0, turn.content
            if type(content) is str:
                if not content or content.isspace():
                    raise NotPlain
            elif type(content) is list and type(_settle(turn)) is list:
                shape |= ANSWER_LISTS
            calls = turn.tool_calls
            if calls is UNSET:
                if content is None or content is UNSET:
                    raise NotPlain
                shape |= ANSWERS
            else:
                for call in calls:
                    called = call.id
                    arguments = call.function.arguments
                    if not called or called in names or arguments[:1] != "{":
                        raise NotPlain  # among others blank arguments, which stand for none
                    if len(arguments) > DEEP:
                        check_depth(arguments)
                    names[called] = call.function.name
                    waiting.append(called)
                shape |= CALLS
                if len(calls) != 1:
                    if not calls:
                        raise NotPlain
                    waiting.reverse()
                    shape |= SEVERAL_CALLS
                if content is not None and content is not UNSET:
                    shape |= TEXT_BEFORE_CALLS
            if before is Assistant:
                shape |= ANSWERS_IN_A_ROW
        elif kind is User:
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


def _settle(turn: Turn) -> str | list[Any]:
    """The content, its list of one text as that text; raises where a text is blank."""
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
    """What there is in the list that a user says."""
    shape = USER_LISTS
    for each in turn.content or ():
        if type(each) is Picture:
            shape |= LINKED_PICTURES if inline(each) is None else INLINE_PICTURES
    return shape
