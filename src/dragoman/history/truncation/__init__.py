"""Truncation: a history that is longer than the window, cut so that it fits.

The store keeps everything; what is cut is the window that a model gets to see. The unit is the
turn: what the user says and all that follows from it. Instructions and pinned turns (`pinned` in
a message's metadata) stay. A `Cut` says where, and is stored with the session.
"""

from __future__ import annotations

from dragoman.history.truncation.callback import Callback, Truncation
from dragoman.history.truncation.chained import Chained
from dragoman.history.truncation.cut import NOTHING_CUT, Cut
from dragoman.history.truncation.fit_window import FitWindow
from dragoman.history.truncation.last_turns import LastTurns
from dragoman.history.truncation.strategy import Counter, Room, Strategy
from dragoman.history.truncation.summarise import Summarise, Summariser
from dragoman.history.truncation.symbolise import Symbolise
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
