"""This dialect in front of another provider: `reasoning_details`, and Gemini's field on calls.

The details are those of OpenRouter, whose clients send them back; the SDK needs their index.
"""

from __future__ import annotations

from collections.abc import Callable

from dragoman.model.parts import Thinking
from dragoman.model.tools import ToolCall
from dragoman.wire.fronts import Front
from dragoman.wire.openai_chat.spelling import OWN, extras_of
from dragoman.wire.openai_chat.thinking import DETAILS, SHOWN


def _as_detail(part: Thinking, number: int, _message_id: Callable[[], str]) -> Thinking:
    return part.replace(extras=extras_of({"index": number}, (DETAILS, SHOWN)))


FRONT = Front(OWN, native=(ToolCall,), is_flat=True, dress=_as_detail)
