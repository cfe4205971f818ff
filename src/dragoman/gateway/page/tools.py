"""The tools that the page offers to models. Each call waits until the page's user allows it."""

from __future__ import annotations

from copy import copy
from functools import cache
from typing import Any

from dragoman.agent.harmless_tools import calculate, now
from dragoman.model.functions.tool import Tool


@cache
def page_tools() -> tuple[Tool[..., Any], ...]:
    """The tools, as a model is told of them."""
    return tuple(_asking_first(each) for each in (now, calculate))


def _asking_first(given: Tool[..., Any]) -> Tool[..., Any]:
    made = copy(given)
    made.requires_approval = True
    return made
