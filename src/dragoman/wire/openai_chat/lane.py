"""Plain conversations: the plain form is that of this dialect."""

from __future__ import annotations

from typing import Any

from msgspec.json import Decoder

from dragoman.wire.lane.plain import (
    Assistant,
    Developer,
    Lane,
    Names,
    Result,
    System,
    Turns,
    User,
    UserBesideResults,
)

_read = Decoder(list[System | Developer | User | Assistant | Result]).decode


def _write(turns: Turns, _names: Names) -> list[Any]:
    return [User(turn.content) if type(turn) is UserBesideResults else turn for turn in turns]


LANE = Lane("messages", _read, _write)
