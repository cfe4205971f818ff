"""What some targets do to calls: they get other ids, or words in the place of signatures.

Mistral's ids have nine characters: no other provider's calls keep theirs there. Which ids they get
is the general path's own word (`accepted_id`). Whether they get any, and where that is reported,
is learned from a skeleton whose ids are refused as well, and of the same form.

Gemini 3 asks for a signature on the calls of the turn under way, and takes a word instead
(`Lane.vouch`).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from dragoman.wire.fitting.identifiers import accepted_id
from dragoman.wire.flags import IdFlags, is_word
from dragoman.wire.lane.plain import (
    EMPTY_BEFORE_CALLS,
    LONG_IDS,
    ODD_IDS,
    REFUSED,
    RENAMED,
    THINKING,
    VOUCHED,
    Assistant,
    Mark,
    Marks,
    Names,
    NotPlain,
    Result,
    Turns,
    User,
)
from dragoman.wire.lane.skeleton import places_of


def refused_form(names: Names, ids: IdFlags) -> int:
    """What the ids of all calls look like, as bits of a shape; raises where not all are refused."""
    forms = {
        (LONG_IDS if len(called) > ids.max_length else 0) | (0 if is_word(called) else ODD_IDS)
        for called in names
    }
    if len(forms) > 1 or any(map(ids.accepts, names)):
        raise NotPlain
    return REFUSED | forms.pop()


def with_renamed_ids(turns: Turns, names: Names, ids: IdFlags) -> Names:
    """The functions by their new ids, which the turns get in place; raises where two are alike."""
    renamed = {called: accepted_id(called, ids) for called in names}
    found = {renamed[called]: function for called, function in names.items()}
    if len(found) < len(names):
        raise NotPlain
    for turn in turns:
        if isinstance(turn, Result):
            turn.tool_call_id = renamed[turn.tool_call_id]
        else:
            for call in _calls(turn):
                call.id = renamed[call.id]
    return found


def renamed_marks(turns: Turns, marks: Marks, first: int, *, groups: bool) -> list[Mark]:
    """The marks, with those of all calls and results; the first of the turns is that message."""
    before = Counter(m for kind, m, _ in marks if kind & (THINKING | EMPTY_BEFORE_CALLS))
    found = list(marks)
    places = places_of(turns, groups_results=groups)
    for turn, (message, part) in zip(turns, places, strict=True):
        number = message + first
        if isinstance(turn, Result):
            found.append((RENAMED, number, part))
        elif calls := _calls(turn):
            texts = 1 if type(turn.content) is str else len(turn.content or ())
            start = before[number] + texts
            found += [(RENAMED, number, start + n) for n in range(len(calls))]
    return sorted(found, key=_place)


def vouched_marks(turns: Turns, marks: Marks, first: int, *, groups: bool) -> list[Mark]:
    """The marks, with those of the calls since a user last spoke."""
    found = list(marks)
    places = places_of(turns, groups_results=groups)
    for turn, (message, _) in zip(reversed(turns), reversed(places), strict=True):
        if type(turn) is User:
            break
        if _calls(turn):
            found.append((VOUCHED, message + first, 0))
    return sorted(found, key=_place)


def _calls(turn: Any) -> list[Any]:
    return (turn.tool_calls or []) if type(turn) is Assistant else []


def _place(mark: Mark) -> tuple[int, int]:
    return mark[1:]
