"""Pagination of model lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dragoman.errors import InvalidRequest
from dragoman.model.catalogue import ModelInfo


class Page(NamedTuple):
    """One page of a model list."""

    models: Sequence[ModelInfo]
    has_more: bool
    """Whether there are more models in the direction of paging."""


def page_after(models: Sequence[ModelInfo], after: str | None, size: int) -> Page:
    """The page after the model with that id; without an id, the first page."""
    start = 0 if after is None else _place(models, after) + 1
    return Page(models[start : start + size], start + size < len(models))


def page_before(models: Sequence[ModelInfo], before: str, size: int) -> Page:
    """The page before the model with that id."""
    stop = _place(models, before)
    start = max(0, stop - size)
    return Page(models[start:stop], start > 0)


def _place(models: Sequence[ModelInfo], model_id: str) -> int:
    for place, model in enumerate(models):
        if model.id == model_id:
            return place
    msg = "the page cursor names a model that is not in the list"
    raise InvalidRequest(msg, status=400)


def page_size(query: Mapping[str, str], key: str, usual: int, most: int) -> int:
    """The requested page size, limited to `most`."""
    text = query.get(key) or str(usual)
    if not (text.isascii() and text.isdigit() and len(text) < len(str(most)) + 6):
        msg = f"{key} must be a whole number"
        raise InvalidRequest(msg, status=400)
    return min(int(text), most)
