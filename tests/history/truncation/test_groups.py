"""Turns, and messages that must stay together."""

from __future__ import annotations

import pytest

from dragoman.history.truncation.cut import grouped, pairs, rounds
from dragoman.model.messages import make_message
from dragoman.model.roles import Role
from tests.history.truncation.talks import talk


def _shown(script: str) -> str:
    """The script with bars between its turns; those that stay are in brackets."""
    said = script.split()
    turns = [(" ".join(said[g.start : g.stop]), g.stays) for g in grouped(talk(script))]
    return " | ".join(f"[{text}]" if stays else text for text, stays in turns)


@pytest.mark.parametrize(
    ("shown", "why"),
    [
        ("", "nothing is no turn"),
        ("u a | u a", "what the user says begins a turn"),
        ("u a+x t+x a | u", "calls and results belong to it"),
        ("u a+x r+x a | u", "results that the user passes on do, too"),
        ("s | u a | u", "instructions at the beginning are on their own"),
        ("u a s | u a", "instructions amid others are of the turn before; they stay anyway"),
        ("a a+x t+x | u a", "a model that begins has a turn of its own"),
        ("u | u | u a", "a user may speak more than once"),
        ("u a+x u a t+x a | u", "a late result joins the turns since its call"),
        ("u a+x u+x a | u", "so do words beside the result"),
        ("u a+x | u a | u", "a call without a result joins nothing"),
        ("u a | u t+x a | u", "nor does a result without a call"),
        ("u a+x t+x | u a+x t+x | u t+x", "an id that is used again is another call"),
        ("u a+x | u a+x t+x | u", "and ends the one before"),
        ("u a+x+x t+x u t+x a | u", "two calls of one id have two results"),
        ("u a | [u! a] | u a", "a pinned message keeps its turn"),
        ("u a | [u a+x t+x! a] | u a", "whichever of its messages it is"),
        ("[u! a+x t+x] | [u a] | u a", "one that ends amid calls keeps how it ended"),
        ("[u! a+x] | [u a] | u a", "whether they were answered or not"),
        ("[u! a+x u a t+x] | [u a] | u", "a pin keeps turns that are joined"),
    ],
)
def test_turns(shown: str, why: str) -> None:
    """A history is divided into turns that can be omitted."""
    script = " ".join(shown.replace("|", " ").replace("[", "").replace("]", "").split())
    assert _shown(script) == shown, why


@pytest.mark.parametrize(
    ("script", "starts"),
    [
        ("u a", [1]),
        ("u a+x t+x a+y t+y a", [1, 3, 5]),
        ("u a a+x t+x a", [1, 4]),
        ("u a s a+x t+x a", [1, 5]),
        ("u a+x+y t+x a+z t+y t+z a", [1, 6]),
        ("u", []),
        ("a+x t+x a", [0, 2]),
    ],
)
def test_rounds(script: str, starts: list[int]) -> None:
    """Within a turn, a round ends when the model has its results."""
    history = talk(script)
    assert rounds(history, grouped(history)[0]) == starts


def test_pairs() -> None:
    """Each result belongs to the latest call of its id."""
    assert list(pairs(talk("u a+x+y t+y u t+x t+x"))) == [(1, 2), (1, 4)]


def test_a_note_about_started_calls_does_not_end_a_turn() -> None:
    """Agents write one in long rounds: the calls still wait for their results."""
    plain = talk("u! a+x u a")
    noted = [*plain[:2], make_message(Role.TOOL).with_metadata("begun", ["x"]), *plain[2:]]
    assert [group.stays for group in grouped(noted)] == [group.stays for group in grouped(plain)]
    assert [group.stays for group in grouped(noted)] == [True, True]
