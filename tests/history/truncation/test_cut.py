"""Cuts, and the windows they give."""

from __future__ import annotations

from dragoman.history.truncation import NOTHING_CUT, Cut
from dragoman.history.truncation.notes import marker
from dragoman.model.collection import Messages
from tests.history.truncation.talks import talk, words

_TALK = talk("s u a d u! a u a")
_CUT = Cut(
    first="u:6", kept=("s:0", "d:3", "u!:4", "a:5"), notes=(marker(2),), left_out=2, since="a:7"
)


def test_nothing_is_cut() -> None:
    """Without a first message, everything is in the window."""
    assert NOTHING_CUT.apply(_TALK) == _TALK
    assert not NOTHING_CUT.left_out


def test_window() -> None:
    """The window has the kept messages, the notes, and everything after the cut."""
    assert words(_CUT.apply(_TALK)) == "s d u! a * u a"


def test_window_of_the_remaining_messages() -> None:
    """Omitted messages need not be there."""
    left = Messages.of(message for message in _TALK if message.id not in {"u:1", "a:2"})
    assert list(_CUT.apply(left)) == list(_CUT.apply(_TALK))


def test_first_message_is_gone() -> None:
    """If the message at the cut was removed, nothing is cut."""
    assert words(_CUT.apply(_TALK[:6])) == "s u a d u! a"


def test_is_stored() -> None:
    """A cut is the same after writing and reading, including the ids of notes."""
    assert Cut.from_json(_CUT.to_json()).identical(_CUT)


def test_shows_no_content() -> None:
    """Its `repr` has sizes only."""
    assert repr(_CUT) == "Cut(2 left out, 4 kept, 1 notes)"
