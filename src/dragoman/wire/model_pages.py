"""Pages of a list of models: which of all models a client's query asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dragoman.errors import InvalidRequest
from dragoman.model.catalogue import ModelInfo


class Page(NamedTuple):
    """Some models of a list."""

    models: Sequence[ModelInfo]
    has_more: bool
    """Whether there are others, on the side where the client is going."""


def page_after(models: Sequence[ModelInfo], after: str | None, size: int) -> Page:
    """So many models behind the one of that id; without one, the first."""
    start = 0 if after is None else _place(models, after) + 1
    return Page(models[start : start + size], start + size < len(models))


def page_before(models: Sequence[ModelInfo], before: str, size: int) -> Page:
    """So many models in front of the one of that id."""
    stop = _place(models, before)
    start = max(0, stop - size)
    return Page(models[start:stop], start > 0)


def _place(models: Sequence[ModelInfo], model_id: str) -> int:
    for place, model in enumerate(models):
        if model.id == model_id:
            return place
    msg = "the page begins at a model that is not in the list"
    raise InvalidRequest(msg, status=400)


def page_size(query: Mapping[str, str], key: str, usual: int, most: int) -> int:
    """How many models a page is to have."""
    text = query.get(key) or str(usual)
    if not (text.isascii() and text.isdigit() and len(text) < len(str(most)) + 6):
        msg = f"{key} is a whole number"
        raise InvalidRequest(msg, status=400)
    return min(int(text), most)
