"""Truncation: shortens a history that is longer than the context window.

The store keeps everything; only the window that a model sees is cut. The unit is the turn: a user
message and everything that follows from it. Instructions and pinned turns (`pinned` in a message's
metadata) stay. A `Cut` records the position, and is stored with the session.
"""

from __future__ import annotations

from dragoman.history.truncation.cut import NOTHING_CUT, Chained, Counter, Cut, Room, Strategy
from dragoman.history.truncation.strategies import (
    Callback,
    FitWindow,
    LastTurns,
    Summarise,
    Summariser,
    Symbolise,
    Truncation,
)
from dragoman.history.truncation.truncating import fit, truncate

__all__ = [
    "NOTHING_CUT",
    "Callback",
    "Chained",
    "Counter",
    "Cut",
    "FitWindow",
    "LastTurns",
    "Room",
    "Strategy",
    "Summarise",
    "Summariser",
    "Symbolise",
    "Truncation",
    "fit",
    "truncate",
]
