"""Skeletons: the smallest conversation of a shape, with everything that the shape stands for.

The general path translates it once for each head: this shows how every conversation of the shape is
translated, and what is reported (`heads`, `reports`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle

from msgspec import UNSET

from dragoman.wire.lane.attachments import sampled
from dragoman.wire.lane.plain import (
    BEFORE_CALLS,
    BEFORE_TEXT,
    CACHED_CALL,
    CACHED_RESULT,
    CACHED_USER,
    EMPTY_BEFORE_CALLS,
    FAILED_RESULT,
    FIRST_FORM,
    LONG_IDS,
    MARKS,
    NAMED_RESULT,
    NAMED_USER,
    ODD_IDS,
    REFUSED,
    SIGNED_CALL,
    SPELLED,
    SPELLED_CALL,
    SPELLED_RESULT,
    SPELLED_USER,
    THINKING,
    Assistant,
    Attachment,
    Call,
    Contents,
    FailedResult,
    Form,
    Function,
    Mark,
    Names,
    Result,
    Text,
    Turn,
    Turns,
    User,
    UserBesideResults,
)
from dragoman.wire.lane.survey import (
    ANSWER_FIRST,
    ANSWER_LISTS,
    ANSWERS,
    ANSWERS_IN_A_ROW,
    CALLS,
    CALLS_FIRST,
    ENDS_WITH_RESULTS,
    ENDS_WITH_USER_AFTER_RESULTS,
    ENDS_WITH_USER_BESIDE_RESULTS,
    LISTS_BESIDE_RESULTS,
    ONLY_ROUNDS,
    RESULT_ATTACHMENTS,
    RESULT_LISTS,
    SEVERAL_CALLS,
    TEXT_BEFORE_CALLS,
    USER_AFTER_RESULTS,
    USER_ATTACHMENTS,
    USER_BESIDE_RESULTS,
    USER_LISTS,
    USERS_IN_A_ROW,
)

_OF_RESULTS = CACHED_RESULT | FAILED_RESULT | NAMED_RESULT | SPELLED_RESULT
_OF_CALLS = BEFORE_CALLS | SIGNED_CALL | CACHED_CALL | EMPTY_BEFORE_CALLS | SPELLED_CALL
_NOT_SPELLED = sum(MARKS) & ~SPELLED


def skeleton(
    shape: int, functions: Sequence[str], forms: tuple[Form, ...] = (), *, groups_results: bool
) -> tuple[Turns, Names, list[Mark]]:
    """The smallest conversation of a shape, with calls of these functions; names; and marks.

    Everything marked occurs twice, at the beginning and at the end, as reports may depend on that.
    Mere spelling differences are in between, so that nothing else is at their position.
    """
    made = _Skeleton(shape, functions, forms)
    marked = [mark for mark in MARKS if shape & mark]
    is_told = bool(shape & _NOT_SPELLED or forms)
    blocks = 1 if not marked and not forms else 4 if shape & SPELLED and is_told else 2
    made.add_opening()
    for block in range(blocks):
        made.add_block(is_last=block == blocks - 1)
    return made.turns, made.names, made.marks(marked, groups_results=groups_results)


class _Skeleton:
    def __init__(self, shape: int, functions: Sequence[str], forms: tuple[Form, ...]) -> None:
        self.shape = shape
        self._forms = forms
        self.turns: Turns = []
        self.names: Names = {}
        self._functions = cycle(functions or ("",))
        self._blocks: list[int] = []
        """The indices of their first turns."""
        self._answer: str | list[Text] = [Text("3"), Text("4")] if shape & ANSWER_LISTS else "3"

    def add_opening(self) -> None:
        """Add what precedes the first user message."""
        if self.shape & ONLY_ROUNDS:
            return
        if self.shape & CALLS_FIRST:
            self._add_round()
            self.turns.append(Assistant("9"))
        elif self.shape & ANSWER_FIRST:
            self.turns.append(Assistant(self._answer))

    def add_block(self, *, is_last: bool) -> None:
        """Add one of everything in the shape."""
        shape, turns = self.shape, self.turns
        self._blocks.append(len(turns))
        if shape & ONLY_ROUNDS:
            self._add_rounds(is_last=is_last)
            return
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
            turns.pop()  # the next block begins with a user message

    def _user_list(self) -> Contents:
        return self._list(USER_ATTACHMENTS)

    def _list(self, attached: int) -> Contents:
        """Texts, with all attachments between them."""
        parts: Contents = [Text("1"), Text("2")]
        for form in self._forms if self.shape & attached else ():
            parts += [sampled(form, 0), Text("3"), sampled(form, 1), Text("4")]
        return parts

    def _add_rounds(self, *, is_last: bool) -> None:
        """Add calls with everything that may follow results and, in the last block, the ending."""
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
        if shape & RESULT_LISTS:
            self._add_round(Result, self._list(RESULT_ATTACHMENTS))
        self._add_round()
        if shape & ONLY_ROUNDS:
            return
        if not is_last:
            turns.append(Assistant("9"))
        elif shape & ENDS_WITH_USER_BESIDE_RESULTS:
            turns.append(UserBesideResults(beside))
        elif shape & ENDS_WITH_USER_AFTER_RESULTS:
            turns.append(User("8"))
        elif not shape & ENDS_WITH_RESULTS:
            turns += [Assistant("9"), User("0")]

    def _add_round(self, kind: type[Result] | None = None, result: str | Contents = "0") -> None:
        """Add calls and their results, failed ones if the shape has such."""
        first = len(self.names)
        ids = [_id(first + n, self.shape) for n in range(2 if self.shape & SEVERAL_CALLS else 1)]
        self.names.update(zip(ids, self._functions, strict=False))
        calls = [Call(each, "function", Function(self.names[each], "{}")) for each in ids]
        said = self._answer if self.shape & TEXT_BEFORE_CALLS else UNSET
        kind = kind or (FailedResult if self.shape & FAILED_RESULT else Result)
        self.turns += [Assistant(said, calls), *(kind(called, result) for called in ids)]

    def marks(self, kinds: list[int], *, groups_results: bool) -> list[Mark]:
        """The marks, for the first and the last turn that can have each."""
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
        places = places_of(self.turns, groups_results=groups_results)
        marks: list[Mark] = []
        for number, (message, part) in enumerate(places):
            turn, having = self.turns[number], chosen.get(number, ())
            marks += [(kind, message, part + _part(turn, kind, having)) for kind in having]
            marks += [(kind, message, part + place) for kind, place in self._attached(turn)]
        return marks

    def _attached(self, turn: Turn) -> Iterator[tuple[int, int]]:
        """The attachments in a turn: their kinds, and the indices of their parts."""
        for place, part in enumerate(turn.content if type(turn.content) is list else ()):
            if type(part) is Attachment:
                is_result = isinstance(turn, Result)
                yield FIRST_FORM << self._forms.index(part.form), 0 if is_result else place


def _id(number: int, shape: int) -> str:
    """An id that every target accepts, or one of a form that some refuse."""
    if not shape & REFUSED:
        return f"lane{number:05}"
    return f"l{'.' if shape & ODD_IDS else ''}{number:05}{'x' * 64 if shape & LONG_IDS else ''}"


def _may_have(turn: Turn, kind: int) -> bool:
    if kind & _OF_RESULTS:
        return type(turn) is (FailedResult if kind == FAILED_RESULT else Result)
    if kind in (CACHED_USER, SPELLED_USER, NAMED_USER):
        return type(turn) is User
    if not isinstance(turn, Assistant):
        return False
    if kind == EMPTY_BEFORE_CALLS:
        return bool(turn.tool_calls) and turn.content is UNSET
    if kind & _OF_CALLS:
        return bool(turn.tool_calls)
    return not turn.tool_calls or (not kind & BEFORE_TEXT and turn.content is not UNSET)


def _part(turn: Turn, kind: int, having: Sequence[int]) -> int:
    """The index of the part that a mark is about, given the message's other marks."""
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


def messages_in(turns: Turns, *, groups_results: bool) -> int:
    """The number of messages in a skeleton."""
    return places_of(turns, groups_results=groups_results)[-1][0] + 1


def places_of(turns: Turns, *, groups_results: bool) -> list[tuple[int, int]]:
    """The message index of each turn, and the index of its first part there."""
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
