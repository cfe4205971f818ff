"""The switch for the fast lane: on, unless `DRAGOMAN_LANE` is `0` or `off`."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager


class _Switch:
    __slots__ = ("is_on",)

    def __init__(self) -> None:
        self.is_on = os.environ.get("DRAGOMAN_LANE", "").strip().lower() not in ("0", "off")


SWITCH = _Switch()
"""Process-wide state, for debugging and tests."""


def is_on() -> bool:
    """Whether plain requests and streams take the fast lane."""
    return SWITCH.is_on


@contextmanager
def off() -> Generator[None, None, None]:
    """Use the general path within the block; streams that have begun are not affected."""
    with _turned(to=False):
        yield


@contextmanager
def on() -> Generator[None, None, None]:
    """Use the lane within the block, whatever the environment says."""
    with _turned(to=True):
        yield


@contextmanager
def _turned(*, to: bool) -> Generator[None, None, None]:
    before, SWITCH.is_on = SWITCH.is_on, to
    try:
        yield
    finally:
        SWITCH.is_on = before
