"""Ollama's own server."""

from __future__ import annotations

from dragoman.wire.ollama.settings import EFFORTS
from dragoman.wire.ollama.spelling import NAME
from dragoman.wire.target import Target

_ANY_LENGTH = 1_000_000

TARGET = Target(
    dialect=NAME,
    provider="ollama",
    needs_model=True,
    tool_id_length=_ANY_LENGTH,
    tool_name=r"[\s\S]*",  # neither ids nor names are looked at
    tool_name_length=_ANY_LENGTH,
    state_fields=(),
    orders_results=True,  # W103
    media=("image", "audio"),
    nowhere=(
        "Image.signature",
        "Image.cache",
        "Image.name",
        "Image.detail",
        "Audio.signature",
        "Audio.cache",
        "Audio.name",
        "Audio.detail",
        "Audio.transcript",
        "Text.signature",
        "Text.citations",
        "Opaque.signature",
        "Opaque.cache",
    ),
    takes_image_urls=False,  # W105
    media_in_results=True,
    thinking_form="switch",  # W106
    efforts=EFFORTS,
    takes_strict_tools=False,
    takes_parallel_choice=False,
)
