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
    BEFORE_CALLS,
    BEFORE_TEXT,
    CACHED_CALL,
    CACHED_RESULT,
    CACHED_USER,
    DEEP,
    EMPTY_BEFORE_CALLS,
    FAILED_RESULT,
    MARKS,
    NAMED_RESULT,
    SIGNED_CALL,
    SPELLED,
    SPELLED_CALL,
    SPELLED_RESULT,
    SPELLED_USER,
    THINKING,
    Assistant,
    Call,
    Developer,
    FailedResult,
    Function,
    Mark,
    Names,
    NotPlain,
    Picture,
    PictureUrl,
    Result,
    System,
    Text,
    Turn,
    Turns,
    User,
    UserBesideResults,
    check_depth,
    inline,
    inlined,
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

_OF_RESULTS = CACHED_RESULT | FAILED_RESULT | NAMED_RESULT | SPELLED_RESULT
_OF_CALLS = BEFORE_CALLS | SIGNED_CALL | CACHED_CALL | EMPTY_BEFORE_CALLS | SPELLED_CALL
_NOT_SPELLED = sum(MARKS) & ~SPELLED


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


def skeleton(shape: int, name: str, *, groups_results: bool) -> tuple[Turns, Names, list[Mark]]:
    """The smallest conversation of a shape, whose calls are of one function; names; and marks.

    Where there are marks, all that they stand for is there twice, at the beginning and at the end:
    what is reported may depend on that. What is only spelled otherwise stands between them, so
    that nothing else is where it is.
    """
    made = _Skeleton(shape, name)
    marked = [mark for mark in MARKS if shape & mark]
    blocks = 1 if not marked else 4 if shape & SPELLED and shape & _NOT_SPELLED else 2
    for block in range(blocks):
        made.add_block(is_last=block == blocks - 1)
    return made.turns, made.names, made.marks(marked, groups_results=groups_results)


class _Skeleton:
    def __init__(self, shape: int, name: str) -> None:
        self.shape = shape
        self.turns: Turns = []
        self.names: Names = {}
        self._name = name
        self._blocks: list[int] = []
        """Where they begin."""
        self._answer: str | list[Text] = [Text("3"), Text("4")] if shape & ANSWER_LISTS else "3"

    def add_block(self, *, is_last: bool) -> None:
        """Something of everything that there is."""
        shape, turns = self.shape, self.turns
        self._blocks.append(len(turns))
        turns.append(User(self._user_list() if shape & USER_LISTS else "1"))
        if shape & USERS_IN_A_ROW:
            turns.append(User("2"))
        if shape & (ANSWERS | ANSWERS_IN_A_ROW):
            turns.append(Assistant(self._answer))
            if shape & ANSWERS_IN_A_ROW:
                turns.append(Assistant("5"))
            turns.append(User("6"))
        if shape & CALLS:
            self._add_rounds(is_last=is_last)
        elif not is_last and not shape & USERS_IN_A_ROW:
            turns.pop()  # the next block begins with a user

    def _user_list(self) -> list[Text | Picture]:
        parts: list[Text | Picture] = [Text("1"), Text("2")]
        if self.shape & INLINE_PICTURES:
            parts += [inlined("image/png", "MQ=="), Text("3"), inlined("image/jpeg", "MQ==")]
        if self.shape & LINKED_PICTURES:
            parts.append(Picture(PictureUrl("https://example.com/1")))
        return parts

    def _add_rounds(self, *, is_last: bool) -> None:
        """Calls, with all that follows results anywhere, and at the end what follows them there."""
        shape, turns = self.shape, self.turns
        beside = self._user_list() if shape & LISTS_BESIDE_RESULTS else "7"
        if shape & USER_BESIDE_RESULTS and not shape & ENDS_WITH_USER_BESIDE_RESULTS:
            self._add_round()
            turns += [UserBesideResults(beside), Assistant("9"), User("0")]
        if shape & USER_AFTER_RESULTS and not shape & ENDS_WITH_USER_AFTER_RESULTS:
            self._add_round()
            turns += [User("8"), Assistant("9"), User("0")]
        if shape & FAILED_RESULT and shape & _OF_RESULTS != FAILED_RESULT:
            self._add_round(Result)
        self._add_round()
        if not is_last:
            turns.append(Assistant("9"))
        elif shape & ENDS_WITH_USER_BESIDE_RESULTS:
            turns.append(UserBesideResults(beside))
        elif shape & ENDS_WITH_USER_AFTER_RESULTS:
            turns.append(User("8"))
        elif not shape & ENDS_WITH_RESULTS:
            turns += [Assistant("9"), User("0")]

    def _add_round(self, kind: type[Result] | None = None) -> None:
        """Calls and their results, which have failed if any have."""
        first = len(self.names)
        ids = [f"call_{first + n}" for n in range(2 if self.shape & SEVERAL_CALLS else 1)]
        self.names.update(dict.fromkeys(ids, self._name))
        calls = [Call(called, "function", Function(self._name, "{}")) for called in ids]
        said = self._answer if self.shape & TEXT_BEFORE_CALLS else UNSET
        kind = kind or (FailedResult if self.shape & FAILED_RESULT else Result)
        self.turns += [Assistant(said, calls), *(kind(called, "0") for called in ids)]

    def marks(self, kinds: list[int], *, groups_results: bool) -> list[Mark]:
        """What there is, in the first turn that can have it and in the last one."""
        chosen: dict[int, list[int]] = {}
        is_mixed = len(self._blocks) > 2  # noqa: PLR2004 - see `skeleton`
        for kind in kinds:
            fitting = [n for n, turn in enumerate(self.turns) if _may_have(turn, kind)]
            if is_mixed and kind & SPELLED:
                fitting = [n for n in fitting if self._blocks[1] <= n < self._blocks[-1]]
            if kind == SPELLED_RESULT and SPELLED_CALL in kinds:  # of the same calls
                fitting = [n + 1 for n, having in chosen.items() if SPELLED_CALL in having]
            elif kind != FAILED_RESULT and fitting:
                fitting = list(dict.fromkeys((fitting[0], fitting[-1])))
            for number in fitting:
                chosen.setdefault(number, []).append(kind)
        places = _places(self.turns, groups_results=groups_results)
        return [
            (kind, places[number][0], places[number][1] + _part(self.turns[number], kind, having))
            for number, having in sorted(chosen.items())
            for kind in having
        ]


def _may_have(turn: Turn, kind: int) -> bool:
    if kind & _OF_RESULTS:
        return type(turn) is (FailedResult if kind == FAILED_RESULT else Result)
    if kind in (CACHED_USER, SPELLED_USER):
        return type(turn) is User
    if not isinstance(turn, Assistant):
        return False
    if kind == EMPTY_BEFORE_CALLS:
        return bool(turn.tool_calls) and turn.content is UNSET
    if kind & _OF_CALLS:
        return bool(turn.tool_calls)
    return not turn.tool_calls or (not kind & BEFORE_TEXT and turn.content is not UNSET)


def _part(turn: Turn, kind: int, having: list[int]) -> int:
    """The number of the part that it is about, given what else the message has."""
    if not isinstance(turn, Assistant):
        return 0
    thoughts = [each for each in having if each & THINKING]
    if kind in thoughts:
        return thoughts.index(kind)
    first = len(thoughts)
    if kind in (SIGNED_CALL, CACHED_CALL, SPELLED_CALL):
        texts = 1 if type(turn.content) is str else len(turn.content or ())
        return first + texts + (EMPTY_BEFORE_CALLS in having)
    return first


def _places(turns: Turns, *, groups_results: bool) -> list[tuple[int, int]]:
    """The number of the message that each turn is in, and of its first part there."""
    places: list[tuple[int, int]] = []
    message, part = -1, 0
    for turn in turns:
        follows = places and groups_results and isinstance(turn, (Result, UserBesideResults))
        if follows and isinstance(turns[len(places) - 1], Result):
            part += 1
        else:
            message, part = message + 1, 0
        places.append((message, part))
    return places
