"""pydantic-ai's serialisation details, and which fields are worth keeping."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

from dragoman.model.parts import Part
from dragoman.wire.overlay import overlay_of
from dragoman.wire.peers.kept_fields import Keeper

P = TypeVar("P", bound=Part)

NAME = "pydantic-ai"
KEEPER = Keeper(f"{NAME} facts")
"""For pydantic-ai's metadata of messages and parts."""
# A dump has every field of an object. Those with default values are not kept.
_DEFAULTS: dict[str, Any] = {
    "scope": "conversation",
    "state": "complete",
    "force_download": False,
    "outcome": "success",
    "kind": None,
}


def significant(given: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a dump, without defaults that we would not write."""
    return {
        key: item
        for key, item in given.items()
        if key in ours or (item is not None and _DEFAULTS.get(key, ...) != item)
    }


def fields_kept(given: Mapping[str, Any], ours: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of an object that we would not write, as extras."""
    return overlay_of(significant(given, ours), (), KEEPER.name, ours, notes_absent=False)


def with_fields(part: P, given: Mapping[str, Any], ours: Mapping[str, Any]) -> P:
    """The part with those fields of its object that we would not write."""
    return KEEPER.with_fields(part, significant(given, ours), ours)


def decode_time(text: Any) -> float | None:
    """A time in seconds; None if it is invalid."""
    if not isinstance(text, str):
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def encode_time(seconds: float) -> str | None:
    """A time as text, in UTC; None if it is out of range."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return None
