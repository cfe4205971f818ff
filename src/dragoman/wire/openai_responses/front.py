"""This dialect in front of another provider: reasoning items and their encrypted content."""

from __future__ import annotations

from collections.abc import Callable

from dragoman.model.parts import Thinking
from dragoman.wire.fronts import Front
from dragoman.wire.openai_responses.forms import ORIGIN


def _as_item(part: Thinking, number: int, message_id: Callable[[], str]) -> Thinking:
    """Each thought is an item of its own: an item holds one seal."""
    return part.replace(item_id=f"rs_{message_id().removeprefix('msg_')}_{number}")


FRONT = Front(ORIGIN, thoughts="data", dress=_as_item)
