"""The tools that the page offers to models. Each call needs the user's approval."""

from __future__ import annotations

from copy import copy
from functools import cache
from typing import Any

from dragoman.agent.harmless_tools import calculate, now
from dragoman.model.functions.tool import Tool


@cache
def page_tools() -> tuple[Tool[..., Any], ...]:
    """Returns the tools; all of them require approval."""
    return tuple(_with_approval(each) for each in (now, calculate))


def _with_approval(given: Tool[..., Any]) -> Tool[..., Any]:
    made = copy(given)
    made.requires_approval = True
    return made
