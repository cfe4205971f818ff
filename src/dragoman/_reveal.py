"""Whether content is shown where it is hidden by default: in reprs and in the texts of errors."""

from __future__ import annotations

import os
from contextvars import ContextVar

_VARIABLE = "DRAGOMAN_REVEAL"
_OFF = frozenset({"", "0", "false", "no", "off"})

here: ContextVar[bool | None] = ContextVar("dragoman_reveal", default=None)
"""What a `with reveal()` around the code says."""
everywhere: list[bool | None] = [None]
"""What the switch says, in all of the process."""


def is_revealed() -> bool:
    """Whether content is to be shown: by a `with` around this code, a switch, or the variable."""
    for said in (here.get(), everywhere[0]):
        if said is not None:
            return said
    return os.environ.get(_VARIABLE, "").strip().lower() not in _OFF
