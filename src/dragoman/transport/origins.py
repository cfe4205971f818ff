"""Adds the provider to the origin of responses; the dialect only knows the model."""

from __future__ import annotations

from msgspec.structs import force_setattr

from dragoman.model.parts import Origin
from dragoman.model.responses import Response


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
