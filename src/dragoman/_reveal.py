"""Whether content is shown in reprs and error messages, where it is hidden by default."""

from __future__ import annotations

import os
from contextvars import ContextVar

_VARIABLE = "DRAGOMAN_REVEAL"
_OFF = frozenset({"", "0", "false", "no", "off"})

here: ContextVar[bool | None] = ContextVar("dragoman_reveal", default=None)
"""Set by `with reveal()` for the code inside it."""
everywhere: list[bool | None] = [None]
"""Set by `reveal(on)` for the whole process."""


def is_revealed() -> bool:
    """Whether content is shown: set by an enclosing `with`, the process switch or the variable."""
    for said in (here.get(), everywhere[0]):
        if said is not None:
            return said
    return os.environ.get(_VARIABLE, "").strip().lower() not in _OFF
