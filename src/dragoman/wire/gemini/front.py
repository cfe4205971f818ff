"""This dialect in front of another provider: a `thoughtSignature`, on whichever part."""

from __future__ import annotations

from dragoman.model.media import Media
from dragoman.model.parts import Origin
from dragoman.model.tools import ToolCall
from dragoman.wire.fronts import Front
from dragoman.wire.gemini.trace import NAME

FRONT = Front(Origin(dialect=NAME), carriers="signature", native=(ToolCall, Media))
