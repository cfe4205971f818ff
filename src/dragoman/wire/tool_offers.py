"""Tools that a request offers other than in its list: in groups, or in mid-conversation.

A dialect that has such offers describes them (`Description.tool_offers`, a module with `OFFERS`).
For other dialects they are merged into the list of tools (`fitting.offers`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from dragoman.model.requests import AnyTool
from dragoman.model.tools import ServerTool
from dragoman.wire.dialect import description_of


class Group(NamedTuple):
    """Tools under a common name."""

    name: str
    description: str
    tools: tuple[AnyTool, ...]


class ToolChange(NamedTuple):
    """A change of the available tools from this point on."""

    added: tuple[AnyTool, ...] = ()
    loaded: tuple[str, ...] = ()
    """The names of listed tools that the model sees from now on."""
    removed: tuple[str, ...] = ()
    """The names of tools that are no longer available."""


def no_group(_tool: ServerTool) -> Group | None:
    """For a dialect without groups."""
    return None


def no_change(_payload: Mapping[str, Any]) -> ToolChange | None:
    """For a dialect whose list of tools never changes."""
    return None


class ToolOffers(NamedTuple):
    """How a dialect offers tools outside its list."""

    group: Callable[[ServerTool], Group | None] = no_group
    """Decodes a group of tools; None if a declaration is not a group."""
    change: Callable[[Mapping[str, Any]], ToolChange | None] = no_change
    """Decodes the change of tools in an opaque part of an instruction; None if there is none."""
    group_field: str | None = None
    """The field in a call's extras that names the group of its tool."""


def offers_of(dialect: str) -> ToolOffers | None:
    """How a dialect offers tools outside its list; None if it doesn't."""
    described = description_of(dialect)
    if described is None or described.tool_offers is None:
        return None
    found: ToolOffers = import_module(described.tool_offers).OFFERS
    return found
