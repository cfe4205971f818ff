"""Tools that a request offers otherwise than in its list: in groups, or in mid-conversation.

A dialect that has such says what they are (`Description.tool_offers`, a module with `OFFERS`).
Others are told all of it in their one list of tools (`fitting.offers`).
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
    """What becomes of the tools from here on."""

    added: tuple[AnyTool, ...] = ()
    loaded: tuple[str, ...] = ()
    """The names of tools of the list that the model sees from now on."""
    removed: tuple[str, ...] = ()
    """The names of tools that the model no longer has."""


def no_group(_tool: ServerTool) -> Group | None:
    """In a dialect without groups."""
    return None


def no_change(_payload: Mapping[str, Any]) -> ToolChange | None:
    """In a dialect whose list of tools stands."""
    return None


class ToolOffers(NamedTuple):
    """How a dialect offers tools besides."""

    group: Callable[[ServerTool], Group | None] = no_group
    """The tools in a declaration; None where it is not one of a group."""
    change: Callable[[Mapping[str, Any]], ToolChange | None] = no_change
    """What an opaque part of an instruction says of the tools; None: nothing."""
    group_field: str | None = None
    """The field of a call, in its extras, that names the group of its tool."""


def offers_of(dialect: str) -> ToolOffers | None:
    """What a dialect says of it; None where its list of tools is all there is."""
    described = description_of(dialect)
    if described is None or described.tool_offers is None:
        return None
    found: ToolOffers = import_module(described.tool_offers).OFFERS
    return found
