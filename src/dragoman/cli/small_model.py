"""The small model that can be downloaded: how it is asked, if nobody says otherwise."""

from __future__ import annotations

from typing import Any

from dragoman.cli.provider_status import own_model

SETTINGS: dict[str, Any] = {
    # As its makers advise, and so that it does not say the same again and again.
    "temperature": 0.2,
    "top_p": 0.9,
    "frequency_penalty": 0.4,
    "max_tokens": 400,  # what it says after that, it has said before
}


def is_small(model: str) -> bool:
    """Whether a model is one of those: it can't tell when to call a tool, nor when it is done."""
    from dragoman.transport.local.catalogue import PACKAGED

    own = own_model(model)
    return own is not None and own.kind == "local" and own.rest.lower() in PACKAGED
