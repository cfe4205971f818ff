"""Names as people say them."""

from __future__ import annotations

import re

_UNHEARD = re.compile(r"[^a-z0-9]+")


def as_heard(name: str) -> str:
    """A name as it sounds: `LM Studio`, `lm-studio` and `lmstudio` are one."""
    return _UNHEARD.sub("", name.lower())
