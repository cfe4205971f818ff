"""The default strategy."""

from __future__ import annotations

import pytest

from dragoman.errors import InvalidInputError
from dragoman.history.truncation import NOTHING_CUT, Cut, FitWindow, truncate
from dragoman.history.truncation.notes import kind_of, summary
from dragoman.model.collection import Messages
from dragoman.model.messages import Message
from dragoman.model.roles import Role
from tests.history.truncation.histories import run
from tests.history.truncation.talks import room_for, talk, words

_EXACT = FitWindow(slack=0)
_SILENT = FitWindow(slack=0, marker=False)


def _window(script: str, room: str, strategy: FitWindow = _EXACT) -> str:
    """The window of a history, with that much room."""
    history = talk(script)
    made = run(truncate(history, limit=room_for(room, history), strategy=strategy))
    return words(made.apply(history))


@pytest.mark.parametrize(
    ("script", "window"),
    [
        ("u1 a1 u2 a2", "u1 a1 u2 a2"),
        ("u1 a1 u2 a2", "* u2 a2"),
        ("u1 a1 u2 a2", "u2 a2"),
        ("s u1 a1 u2 a2 u3", "s * u3"),
        ("s u1 a1 d u2 a2 u3 a3", "s d * u3 a3"),
        ("s u1! a1 u2 a2 u3 a3", "s u1! a1 * u3 a3"),
        ("u1 a1 u2! a2 u3 a3 u4", "u2! a2 * u4"),
        ("u1 a+x t+x a1 u2 a2 u3", "* u2 a2 u3"),
        ("u1 a1 u2 a+x u3 a3 t+x u4", "* u2 a+x u3 a3 t+x u4"),
        ("a1 u1 a2 u2", "* u2"),
    ],
)
def test_window(script: str, window: str) -> None:
    """The oldest turns are omitted completely; instructions and pinned turns stay in order."""
    assert _window(script, window) == window


def test_joined_turns_go_together() -> None:
    """Turns that share a call and its result are omitted together."""
    assert _window("u1 a1 u2 a+x u3 a3 t+x u4", "* u3 a3 t+x u4") == "* u4"


def test_a_marker_says_how_many_were_omitted() -> None:
    """It is a user message, marked as ours."""
    history = talk("u1 a1 u2 a2 u3")
    made = run(truncate(history, limit=room_for("* u3", history), strategy=_EXACT))
    note = made.apply(history)[0]
    assert (note.role, note.text) == (Role.USER, "(4 earlier messages were left out here.)")
    assert note.metadata == {"dragoman": {"note": "marker"}}


def test_the_marker_can_be_turned_off() -> None:
    """The window then has no note."""
    assert _window("u1 a1 u2 a2 u3", "u2 a2 u3", _SILENT) == "u2 a2 u3"


def test_makes_room() -> None:
    """More is omitted than necessary, so that the cut stays for some turns."""
    history = talk(" ".join(f"u{n} a{n}" for n in range(40)))
    limit = room_for(" ".join(f"u{n} a{n}" for n in range(10)), history)
    made, moves = NOTHING_CUT, 0
    for end in range(2, len(history) + 1, 2):
        before, made = made, run(truncate(history[:end], limit=limit, cut=made))
        moves += made is not before
    assert 5 < moves < 20


def test_never_fails_because_of_slack() -> None:
    """If there is no room for slack, there is none."""
    assert _window("u1 a1 u2 a2", "* u2 a2", FitWindow(slack=0.9)) == "* u2 a2"


def _cut(history: Messages, room: str, cut: Cut = NOTHING_CUT, **options: bool) -> Cut:
    limit = room_for(room, history)
    return run(truncate(history, limit=limit, strategy=FitWindow(slack=0, **options), cut=cut))


def test_counts_everything_omitted() -> None:
    """Each further cut adds to the count, with one marker."""
    history = talk("u1 a1 u2 a2 u3 a3")
    made = _cut(history, "* u2 a2 u3 a3")
    made = _cut(history, "* u3 a3", made)
    assert made.left_out == 4
    assert [note.text for note in made.notes] == ["(4 earlier messages were left out here.)"]


_SUMMED_UP = Cut("u2:2", notes=(summary("so far", 2),), left_out=2, since="a3:5")


def test_keeps_a_summary() -> None:
    """An existing summary stays as long as there is room for it."""
    history = talk("u1 a1 u2 a2 u3 a3")
    made = _cut(history, "* * * u3 a3", _SUMMED_UP)
    assert [kind_of(note) for note in made.notes] == ["summary", "marker"]
    assert not _cut(history, "u3 a3", _SUMMED_UP).notes


def test_drops_notes_before_it_fails() -> None:
    """If only the notes are too much, only they are dropped."""
    history = talk("u1 a1 u2 a2")
    made = _cut(history, "u2 a2", _SUMMED_UP)
    assert (made.first, made.notes, made.left_out) == ("u2:2", (), 2)


@pytest.mark.parametrize(
    ("script", "window"),
    [
        ("u a+x t+x a+y t+y a", "u * a+y t+y a"),
        ("u a+x t+x a+y t+y a", "u * a"),
        ("u a+x t+x a+y t+y a", "u a"),
        ("u1 a1 u a+x t+x s a+y t+y", "u s * a+y t+y"),
        ("u1 a1 u a+x t+x a+y t+y", "* u a+x t+x a+y t+y"),
    ],
)
def test_rounds(script: str, window: str) -> None:
    """On request, it omits rounds of tool calls in a last turn that is too long."""
    assert _window(script, window, FitWindow(slack=0, rounds=True)) == window


def test_continues_after_rounds() -> None:
    """A turn with omitted rounds is later omitted completely."""
    history = talk("u a+x t+x a+y t+y a u2 a2")
    made = _cut(history[:6], "u * a+y t+y a", rounds=True)
    assert words(made.apply(history)) == "u * a+y t+y a u2 a2"
    made = _cut(history, "* u2 a2", made, rounds=True)
    assert (words(made.apply(history)), made.left_out) == ("* u2 a2", 6)


def test_unpinned_later() -> None:
    """Messages pinned at the time of the cut, and no longer, may be omitted."""
    history = talk("u1! a1 u2 a2 u3 a3")
    made = _cut(history, "u1! a1 * u3 a3")
    assert words(made.apply(history)) == "u1! a1 * u3 a3"
    freed = Messages.of(message.replace(metadata={}) for message in history)
    assert words(_cut(freed, "* u3 a3", made).apply(freed)) == "* u3 a3"


def test_uses_a_counter_until_it_fits() -> None:
    """If one message costs much more than others, an exact counter decides."""
    history = talk("u1 a1 u2 a2 u3 a3 u4 a4")

    def dear(messages: Messages) -> int:
        return sum(100 if message.id == "a3:5" else 1 for message in messages)

    made = run(truncate(history, limit=50, counter=dear))
    assert made.first == "u4:6"


@pytest.mark.parametrize("slack", [-0.1, 1, 7])
def test_slack_is_a_fraction(slack: float) -> None:
    """Other values are rejected."""
    with pytest.raises(InvalidInputError):
        FitWindow(slack=slack)


def test_a_users_message_is_not_a_note() -> None:
    """The developer's metadata under our name is not taken for a note."""
    assert kind_of(Message.user("hi", metadata={"dragoman": 3})) is None
