"""The response headers that report losses and repairs: their number and kinds."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dragoman.wire.losses import Loss, Repair

LOSSES, REPAIRS = "x-dragoman-losses", "x-dragoman-repairs"
_MAX_LENGTH = 400  # characters
_UNSAFE = re.compile(r"[^ -~]|[;\\]")
_NUMBER = re.compile(r"\[\d+\]")


def report_headers(losses: Sequence[Loss], repairs: Sequence[Repair]) -> dict[str, str]:
    """The headers that report losses and repairs; none if there are none.

    >>> report_headers([Loss("sampling.top_k", "unsupported")], [])
    {'x-dragoman-losses': '1; sampling.top_k: unsupported'}
    """
    found: dict[str, str] = {}
    if losses:
        kinds = dict.fromkeys(f"{_place(loss.path)}: {loss.reason}" for loss in losses)
        found[LOSSES] = _summary(len(losses), kinds)
    if repairs:
        kinds = dict.fromkeys(f"{_place(fix.path)}: {fix.action} ({fix.rule})" for fix in repairs)
        found[REPAIRS] = _summary(len(repairs), kinds)
    return found


def _place(path: str) -> str:
    """A path without indexes, so that the same issue in many messages is reported once."""
    return _NUMBER.sub("[]", path)


def _summary(count: int, kinds: dict[str, None]) -> str:
    text = ", ".join(kinds)
    if len(text) > _MAX_LENGTH:
        text = f"{text[: _MAX_LENGTH - 3]}..."
    return f"{count}; {_UNSAFE.sub('?', text)}"
