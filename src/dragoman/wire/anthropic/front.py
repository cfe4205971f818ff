"""This dialect in front of another provider: signed thinking, redacted thinking as a carrier."""

from __future__ import annotations

from dragoman.wire.anthropic.context import HERE
from dragoman.wire.fronts import Front

FRONT = Front(HERE)
