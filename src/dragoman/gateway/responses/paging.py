"""Query parameters of lists and streams: pages, order, and the event to start after."""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import parse_qsl

from msgspec import Struct

from dragoman.gateway.responses.state_errors import invalid

_MAX_LIMIT, _DEFAULT_LIMIT, _MAX_QUERY = 100, 20, 32 * 1024


class Page(Struct):
    """The requested page of a list."""

    after: str | None = None
    limit: int = _DEFAULT_LIMIT
    order: Literal["asc", "desc"] = "desc"


def fields_of(query: bytes) -> dict[str, str]:
    """Returns the query parameters; of repeated ones, the last."""
    if len(query) > _MAX_QUERY:
        msg = "the query is too long"
        raise invalid(msg)
    return dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=200))


def page_in(query: bytes) -> Page:
    """Returns the page that a query requests."""
    fields = fields_of(query)
    order = fields.get("order") or "desc"
    if order not in {"asc", "desc"}:
        msg = "`order` must be asc or desc"
        raise invalid(msg, "order")
    limit = number_in(fields, "limit", _DEFAULT_LIMIT)
    if not 1 <= limit <= _MAX_LIMIT:
        msg = f"`limit` must be a number from 1 to {_MAX_LIMIT}"
        raise invalid(msg, "limit")
    return Page(fields.get("after") or None, limit, "asc" if order == "asc" else "desc")


def number_in(fields: dict[str, str], name: str, default: int) -> int:
    """Returns a whole number from a query."""
    given = fields.get(name) or str(default)
    if not (given.isascii() and given.isdigit()) or len(given) > 15:  # noqa: PLR2004 - of digits
        msg = f"`{name}` must be a whole number"
        raise invalid(msg, name)
    return int(given)


def listed(items: list[dict[str, Any]], page: Page) -> dict[str, Any]:
    """Returns a page of items in the format of OpenAI's lists."""
    ordered = items if page.order == "asc" else items[::-1]
    if page.after is not None:
        ids = [item.get("id") for item in ordered]
        if page.after not in ids:
            msg = "`after` is not the id of an item in this list"
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
