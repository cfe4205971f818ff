"""The address of a request: it names the model, and says whether the answer is streamed."""

from __future__ import annotations

from urllib.parse import quote, unquote

from dragoman.errors import InvalidInputError

_COLLECTIONS = frozenset({"models", "tunedModels", "endpoints", "publishers", "projects"})
_METHODS = {"generateContent": False, "streamGenerateContent": True}


def decode_path(path: str | None) -> tuple[str | None, bool | None]:
    """The model, and whether to stream.

    >>> decode_path("/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse")
    ('gemini-2.5-pro', True)

    Vertex AI's longer paths name the model in the same way.
    """
    if path is None:
        return None, None
    place, _, method = path.partition("?")[0].rpartition(":")
    stream = _METHODS.get(method)
    return (None if stream is None else bare_model(unquote(place)) or None), stream


def encode_path(model: str, *, stream: bool) -> str:
    """Where a request for that model goes.

    >>> encode_path("gemini-2.5-pro", stream=False)
    '/v1beta/models/gemini-2.5-pro:generateContent'

    Raises where the name can't be one: it must not lead anywhere else.
    """
    steps = model.split("/")
    if any(step in {"", ".", ".."} for step in steps) or not model.isprintable():
        msg = "the name of the model is empty, or leads elsewhere"
        raise InvalidInputError(msg)
    # Only a resource's name has steps; a slash in any other name is part of it.
    place = quote(model) if steps[0] in _COLLECTIONS else f"models/{quote(model, safe='')}"
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return f"/v1beta/{place}:{method}"


def bare_model(name: str) -> str:
    """A resource name without what stands before the model: `models/x` is `x`."""
    _, found, model = f"/{name}".rpartition("/models/")
    return model if found else "/".join(name.split("/")[-2:])  # tunedModels/…, endpoints/…
