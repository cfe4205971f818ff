"""Where an answer was made: its dialect says which model, the client which provider."""

from __future__ import annotations

from msgspec.structs import force_setattr

from dragoman.model.parts import Origin
from dragoman.model.responses import Response


def made_at(provider: str, response: Response) -> Response:
    """A response, read just now, whose messages name the provider.

    Seals are good only where they were made, and several places speak one dialect.
    """
    for choice in response.choices:
        # Nobody else has it yet: a copy of all of its fields would say the same.
        force_setattr(choice.message, "origin", origin_at(provider, choice.message.origin))
    return response


def origin_at(provider: str, origin: Origin | None) -> Origin | None:
    """An origin with the provider in it."""
    if origin is None or origin.provider is not None:
        return origin
    return Origin(
        dialect=origin.dialect,
        provider=provider,
        model=origin.model,
        response_id=origin.response_id,
    )
