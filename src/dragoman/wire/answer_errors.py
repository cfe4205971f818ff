"""Errors that a provider reports inside a response, whose status is 200.

A failed response has one, a choice of OpenRouter's, a last line of Ollama's; Gemini tells beside
the candidates why it blocked a prompt (W88). Decoded, they are among the extras.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from dragoman.errors import ProviderError, ServerError
from dragoman.model.events import StreamError
from dragoman.model.responses import Response
from dragoman.model.usage import FinishReason
from dragoman.wire.dialect import dialect, is_dialect
from dragoman.wire.stream_decoding import stream_error

FAILED = "the model failed to produce a response"
_BLOCKED = ("promptFeedback", "prompt_feedback")
_REASONS = ("blockReason", "block_reason")
_SENTENCES = ("blockReasonMessage", "block_reason_message")


class Told(NamedTuple):
    """An error as a provider told it."""

    field: str
    """The field that holds it."""
    error: Any
    """The error object, as in a body of its own."""

    @property
    def event(self) -> StreamError:
        """The same as a stream's event."""
        fields = self.error if isinstance(self.error, Mapping) else {"message": self.error}
        code = fields.get("code") or fields.get("type")
        status = code if type(code) is int else fields.get("status")
        return stream_error(fields.get("message"), code, status, {})


def errors_among(fields: Mapping[str, Any]) -> Iterator[Told]:
    """The errors among the fields of a response, a choice or a stream's frame."""
    if error := fields.get("error"):
        yield Told("error", error)
    for name in _BLOCKED:
        told = fields.get(name)
        if isinstance(told, Mapping) and _first(told, _REASONS):
            yield Told(name, {"message": _first(told, _SENTENCES), "code": "content_filter"})


def error_in(extras: Mapping[str, Any]) -> Told | None:
    """The first error among the extras of a response, a choice or an event."""
    for fields in extras.values():
        if isinstance(fields, Mapping):
            for told in errors_among(fields):
                return told
    return None


def failure_in(response: Response) -> ProviderError | None:
    """The error in a response; None if it holds none."""
    given = (response.extras, *(choice.extras for choice in response.choices))
    if (found := failure_among(*given)) is not None:
        return found
    if any(choice.finish is FinishReason.ERROR for choice in response.choices):
        return ServerError(FAILED)
    return None


def failure_among(*given: Mapping[str, Any]) -> ProviderError | None:
    """The first error among such extras, decoded by its own dialect."""
    for extras in given:
        for source, fields in extras.items():
            if isinstance(fields, Mapping) and is_dialect(source):
                for told in errors_among(fields):
                    return dialect(source).decode_error(None, {"error": told.error})
    return None


def _first(fields: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((fields[name] for name in names if fields.get(name)), None)
