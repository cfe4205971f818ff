"""A scripted model that encodes each request in a dialect: for demonstrations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dragoman.model.requests import Request
from dragoman.transport.scripted import ScriptedModel
from dragoman.transport.synthetic_answers import PlayedStream
from dragoman.wire.dialect import dialect


class SpeakingModel(ScriptedModel):
    """Plays a script, but round-trips each request through a dialect first."""

    def __init__(self, spoken: str, script: Iterable[Any]) -> None:
        super().__init__(script, name=f"scripted:{spoken}")
        self._dialect = dialect(spoken)

    def stream(self, request: Request | Any) -> PlayedStream:
        """The next scripted answer, word by word."""
        encoded = self._dialect.encode_request(request)
        return super().stream(self._dialect.decode_request(encoded.body))
