"""One look at a conversation: whether any target takes it as it is, and what there is in it.

What fitting would have to do anything about is not plain: blank texts, calls without a result,
results out of order, ids used twice, instructions amid the conversation, an answer to be gone on
with. What may matter to some targets only is noted in the shape, of which `skeleton` makes the
smallest conversation: the general path shows what becomes of that.
"""

from __future__ import annotations

from msgspec import UNSET

from dragoman.wire.lane.plain import (
    Assistant,
    Call,
    Developer,
    Function,
    Names,
    NotPlain,
    Result,
    System,
    Text,
    Turn,
    Turns,
    User,
    UserBesideResults,
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


def surveyed(turns: Turns) -> tuple[int, Names, Turns]:
    """The shape of a conversation, the functions that it calls, and the instructions before it.

    Raises `NotPlain`. A list of one text becomes that text.
    """
    leading: Turns = []
    if turns and type(turns[0]) is not User:
        leading = _leading(turns)
    names: Names = {}
    return _shape(turns, len(leading), names), names, leading


def _leading(turns: Turns) -> Turns:
    leading: Turns = []
    for turn in turns:
        if type(turn) is not System and type(turn) is not Developer:
            break
        _settle(turn)
        leading.append(turn)
    return leading


def _shape(turns: Turns, leading: int, names: Names) -> int:  # noqa: C901, PLR0912 - one pass, for speed
    shape = 0
    waiting: list[str] = []
    """The ids of calls whose results are to come, the next one last."""
    before: type[Turn] | None = None
    if leading == len(turns) or type(turns[leading]) is not User:
        raise NotPlain
    for turn in turns[leading:] if leading else turns:
        kind = type(turn)
        if kind is Result:
            if not waiting or waiting.pop() != turn.tool_call_id:  # type: ignore[union-attr]  # a Result
                raise NotPlain
            if (type(turn.content) is not str or not turn.content) and type(_settle(turn)) is list:
                raise NotPlain
        elif waiting:
            raise NotPlain
        elif kind is Assistant:
            content = turn.content
            if type(content) is str:
                if not content or content.isspace():
                    raise NotPlain
            elif type(content) is list and type(_settle(turn)) is list:
                shape |= ANSWER_LISTS
            calls = turn.tool_calls  # type: ignore[union-attr]  # an Assistant
            if calls is UNSET:
                if content is None or content is UNSET:
                    raise NotPlain
                shape |= ANSWERS
            else:
                for call in calls:
                    called = call.id
                    if not called or called in names or call.function.arguments[:1] != "{":
                        raise NotPlain  # among others blank arguments, which stand for none
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
                shape |= USER_LISTS
            if before is Result:
                shape |= USER_AFTER_RESULTS
            elif before is User or before is UserBesideResults:
                shape |= USERS_IN_A_ROW
        elif kind is UserBesideResults and before is Result:
            shape |= USER_BESIDE_RESULTS
            if type(_settle(turn)) is list:
                shape |= USER_LISTS
        else:
            raise NotPlain
        before = kind
    if waiting or before is Assistant:
        raise NotPlain
    return shape | ENDS_WITH_RESULTS if before is Result else shape


def _settle(turn: Turn) -> str | list[Text]:
    """The content, its list of one text as that text; raises where a text is blank."""
    content = turn.content
    if type(content) is str:
        if not content or content.isspace():
            raise NotPlain
        return content
    if not isinstance(content, list) or not content:
        raise NotPlain
    for each in content:
        if not each.text or each.text.isspace():
            raise NotPlain
    if len(content) > 1:
        return content
    turn.content = content[0].text
    return content[0].text


def skeleton(shape: int, name: str) -> tuple[Turns, Names]:
    """The smallest conversation of a shape, whose calls are of one function; and their names."""
    names: Names = {}
    user: str | list[Text] = [Text("1"), Text("2")] if shape & USER_LISTS else "1"
    answer: str | list[Text] = [Text("3"), Text("4")] if shape & ANSWER_LISTS else "3"
    turns: Turns = [User(user)]
    if shape & USERS_IN_A_ROW:
        turns.append(User("2"))
    if shape & (ANSWERS | ANSWERS_IN_A_ROW):
        turns.append(Assistant(answer))
        if shape & ANSWERS_IN_A_ROW:
            turns.append(Assistant("5"))
        turns.append(User("6"))
    if shape & CALLS:
        turns += _round(shape, name, answer, names)
        if shape & USER_BESIDE_RESULTS:
            turns.append(UserBesideResults("7"))
        elif not shape & ENDS_WITH_RESULTS or shape & USER_AFTER_RESULTS:
            turns += [User("8")] if shape & USER_AFTER_RESULTS else [Assistant("9"), User("0")]
        if shape & USER_BESIDE_RESULTS and shape & USER_AFTER_RESULTS:
            turns += [*_round(shape, name, answer, names), User("8")]
        if shape & ENDS_WITH_RESULTS and type(turns[-1]) is not Result:
            turns += _round(shape, name, answer, names)
    return turns, names


def _round(shape: int, name: str, text: str | list[Text], names: Names) -> Turns:
    """Calls and their results."""
    ids = [f"call_{len(names) + place}" for place in range(2 if shape & SEVERAL_CALLS else 1)]
    names.update(dict.fromkeys(ids, name))
    calls = [Call(called, "function", Function(name, "{}")) for called in ids]
    said = text if shape & TEXT_BEFORE_CALLS else UNSET
    return [Assistant(said, calls), *(Result(called, "0") for called in ids)]
