"""Decodes whole bodies with status 200: responses, but also errors, web pages and streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import force_setattr

from dragoman.errors import DragomanError, ProviderError, WireError
from dragoman.model.events import (
    ChoiceFinish,
    Event,
    PartStart,
    PartStop,
    ResponseEnd,
    ResponseStart,
    UsageUpdate,
)
from dragoman.model.parts import Origin
from dragoman.model.responses import Choice, Response
from dragoman.model.usage import FinishReason
from dragoman.wire.context import Context
from dragoman.wire.cut_calls import ends_within_part
from dragoman.wire.dialect import Dialect


def made_at(provider: str, response: Response) -> Response:
    """A newly decoded response, with the provider added to its messages' origins.

    Sealed state is only valid where it was made, and several providers share a dialect.
    """
    for choice in response.choices:
        # Nobody else has it yet, so it can be changed in place.
        force_setattr(choice.message, "origin", origin_at(provider, choice.message.origin))
    return response


def origin_at(provider: str, origin: Origin | None) -> Origin | None:
    """The origin with the provider."""
    if origin is None or origin.provider is not None:
        return origin
    return Origin(
        dialect=origin.dialect,
        provider=provider,
        model=origin.model,
        response_id=origin.response_id,
    )


def read_answer(
    dialect: Dialect, body: bytes, context: Context, headers: Mapping[str, str]
) -> Response:
    """Decode the response in a body; raises the error it contains, or that it is not a response."""
    problem: DragomanError
    try:
        return dialect.decode_response(body, context)
    except ProviderError:
        problem = dialect.decode_error(None, body, headers)  # including what the headers tell
    except WireError as error:
        problem = error
    found = _otherwise(dialect, body, context, problem)
    if not isinstance(found, DragomanError):
        return found
    try:
        raise found
    finally:
        del found, problem  # they refer to this frame, which would keep them and the body


def _otherwise(
    dialect: Dialect, body: bytes, context: Context, problem: DragomanError
) -> Response | DragomanError:
    """The response or error in a body that is not a plain response."""
    if isinstance(problem, ProviderError):
        return problem
    if body.lstrip()[:1] == b"<":
        msg = "the server returned a web page; check the base_url"
        return WireError(msg, dialect=dialect.name)
    return _streamed(dialect, body, context) or problem


def _streamed(dialect: Dialect, body: bytes, context: Context) -> Response | None:
    """The response in an unrequested stream; None if it isn't one."""
    decoder = dialect.stream_decoder(context)
    try:
        decoder.feed(body)
        decoder.close()
    except WireError:
        return None
    return decoder.response if decoder.is_complete else None


def events_of(response: Response) -> Iterator[Event]:
    """The events of a response that came in one piece; no end if it ends within a part."""
    origin = response.choices[0].message.origin if response.choices else None
    yield ResponseStart(
        id=response.id,
        model=response.model,
        created_at=response.created_at,
        origin=origin,
        extras=response.extras,
    )
    for choice in response.choices:
        for index, part in enumerate(choice.message.parts):
            yield PartStart(index, part, choice.index)
            yield PartStop(index, choice=choice.index)
    if response.usage is not None:
        yield UsageUpdate(response.usage)
    if ends_within_part(response):
        return
    for choice in response.choices:
        yield ChoiceFinish(
            choice.finish or _finish_of(choice),
            choice.finish_raw,
            choice.index,
            choice.logprobs,
            choice.extras,
            choice.message.extras,
        )
    yield ResponseEnd()


def _finish_of(choice: Choice) -> FinishReason:
    """The finish reason of a complete choice whose provider told none."""
    return FinishReason.TOOL_CALLS if choice.message.tool_calls else FinishReason.STOP
