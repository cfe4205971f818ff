"""Changes that some targets need in calls: other ids, or placeholders for signatures.

Mistral's ids have nine characters, so other providers' calls can't keep their ids there. The new
ids come from the general path's function (`accepted_id`). Whether ids are replaced, and where that
is reported, is learned from a skeleton whose ids are refused too, and of the same form.

Gemini 3 requires a signature on the calls of the current turn, and accepts a placeholder
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
    """The form of all call ids, as bits of a shape; raises if some are accepted or forms differ."""
    forms = {
        (LONG_IDS if len(called) > ids.max_length else 0) | (0 if is_word(called) else ODD_IDS)
        for called in names
    }
    if len(forms) > 1 or any(map(ids.accepts, names)):
        raise NotPlain
    return REFUSED | forms.pop()


def with_renamed_ids(turns: Turns, names: Names, ids: IdFlags) -> Names:
    """Rename ids in place, and return the functions by new id; raises if two ids collide."""
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
    """Add marks for all calls and results; `first` is the message number of the first turn."""
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
    """Add marks for the calls since the last user message."""
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
