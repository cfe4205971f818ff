"""Whether the fast lane is used: it is, unless `DRAGOMAN_LANE=0` or `off` says otherwise."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager


class _Switch:
    """One for the process; for debugging and for tests."""

    is_on = os.environ.get("DRAGOMAN_LANE", "").strip().lower() not in ("0", "off")


def is_on() -> bool:
    """Whether plain requests and streams take the fast lane."""
    return _Switch.is_on


@contextmanager
def off() -> Generator[None, None, None]:
    """Everything goes the general way within the block; what was begun before stays as it is."""
    with _turned(to=False):
        yield


@contextmanager
def on() -> Generator[None, None, None]:
    """The lane is used within the block, whatever the environment says."""
    with _turned(to=True):
        yield


@contextmanager
def _turned(*, to: bool) -> Generator[None, None, None]:
    before, _Switch.is_on = _Switch.is_on, to
    try:
        yield
    finally:
        _Switch.is_on = before
