"""Default settings of the small downloadable model."""

from __future__ import annotations

from typing import Any

from dragoman.cli.provider_status import own_model

SETTINGS: dict[str, Any] = {
    # As its makers recommend, and to keep it from repeating itself.
    "temperature": 0.2,
    "top_p": 0.9,
    "frequency_penalty": 0.4,
    "max_tokens": 400,  # after that it only repeats itself
}


def is_small(model: str) -> bool:
    """Whether a model is too small to know when to call a tool, or when to stop."""
    from dragoman.transport.local.catalogue import PACKAGED

    own = own_model(model)
    return own is not None and own.kind == "local" and own.rest.lower() in PACKAGED
