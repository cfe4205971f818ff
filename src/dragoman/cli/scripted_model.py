"""A model that plays a script, and is spoken to in a dialect: for demonstrations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dragoman.model.requests import Request
from dragoman.transport.scripted import ScriptedModel
from dragoman.transport.synthetic_answers import PlayedStream
from dragoman.wire.dialect import dialect


class SpeakingModel(ScriptedModel):
    """Hears each request as the dialect has it, which is what a provider would hear."""

    def __init__(self, spoken: str, script: Iterable[Any]) -> None:
        super().__init__(script, name=f"scripted:{spoken}")
        self._dialect = dialect(spoken)

    def stream(self, request: Request | Any) -> PlayedStream:
        """The next answer, word by word."""
        encoded = self._dialect.encode_request(request)
        return super().stream(self._dialect.decode_request(encoded.body))
