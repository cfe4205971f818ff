"""Queries of lists and streams: which part of a list, from which event on."""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import parse_qsl

from msgspec import Struct

from dragoman.gateway.responses.refusals import invalid

_MOST, _USUAL, _LONGEST = 100, 20, 32 * 1024


class Page(Struct):
    """A part of a list."""

    after: str | None = None
    limit: int = _USUAL
    order: Literal["asc", "desc"] = "desc"


def fields_of(query: bytes) -> dict[str, str]:
    """The fields of a query; of those that are there twice, the last."""
    if len(query) > _LONGEST:
        msg = "the query is too long"
        raise invalid(msg)
    return dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=200))


def page_in(query: bytes) -> Page:
    """Which part of a list is asked for."""
    fields = fields_of(query)
    order = fields.get("order") or "desc"
    if order not in {"asc", "desc"}:
        msg = "`order` must be asc or desc"
        raise invalid(msg, "order")
    limit = number_in(fields, "limit", _USUAL)
    if not 1 <= limit <= _MOST:
        msg = f"`limit` must be a number from 1 to {_MOST}"
        raise invalid(msg, "limit")
    return Page(fields.get("after") or None, limit, "asc" if order == "asc" else "desc")


def number_in(fields: dict[str, str], name: str, usual: int) -> int:
    """A whole number of a query."""
    given = fields.get(name) or str(usual)
    if not (given.isascii() and given.isdigit()) or len(given) > 15:  # noqa: PLR2004 - of digits
        msg = f"`{name}` must be a whole number"
        raise invalid(msg, name)
    return int(given)


def listed(items: list[dict[str, Any]], page: Page) -> dict[str, Any]:
    """A part of a list, as OpenAI's lists are."""
    ordered = items if page.order == "asc" else items[::-1]
    if page.after is not None:
        ids = [item.get("id") for item in ordered]
        if page.after not in ids:
            msg = "`after` names no item of this list"
            raise invalid(msg, "after")
        ordered = ordered[ids.index(page.after) + 1 :]
    data = ordered[: page.limit]
    return {
        "object": "list",
        "data": data,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
        "has_more": len(ordered) > len(data),
    }
