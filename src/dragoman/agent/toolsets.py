"""Tools that come from elsewhere and may change while an agent works, such as an MCP server's."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from dragoman.agent.context import RunContext
from dragoman.agent.handoffs import Handoff
from dragoman.errors import InvalidInputError
from dragoman.model.functions.tool import Tool
from dragoman.model.requests import AnyTool
from dragoman.model.tools import ToolDefinition
from dragoman.model.value import name_shown

FoundTool: TypeAlias = Tool[..., Any, Any] | Handoff[Any] | AnyTool

_log = logging.getLogger("dragoman.agent")


@runtime_checkable
class Toolset(Protocol):
    """A source of tools, given to an agent in the place of a tool: `Agent(tools=[server])`.

    It is asked before each request of a run, so that changes appear in mid-run. One that has a
    `release` method is told when an agent is closed that had it.
    """

    async def tools(self, run: RunContext[Any], /) -> Iterable[FoundTool]:
        """The tools that there are now. What this raises ends the run."""
        ...


async def found_in(
    toolsets: Sequence[Toolset], taken: set[str], run: RunContext[Any]
) -> list[FoundTool]:
    """The tools of all toolsets, each name once.

    A name that is taken stays with who had it first: what a server calls its tools must neither
    replace another tool nor end a run. The log says what was left out.
    """
    found: list[FoundTool] = []
    names = set(taken)
    for each in await _asked(toolsets, run):
        name = each.name if isinstance(each, (Tool, Handoff, ToolDefinition)) else None
        if name is None or name not in names:
            found.append(each)
        else:
            shown = "".join(name_shown(name))
            _log.warning("a second tool named `%s` was left out; a prefix keeps both", shown)
        if name is not None:
            names.add(name)
    return found


async def _asked(toolsets: Sequence[Toolset], run: RunContext[Any]) -> list[FoundTool]:
    if len(toolsets) == 1:
        answers: list[Any] = [await toolsets[0].tools(run)]
    else:
        asked = (each.tools(run) for each in toolsets)
        answers = await asyncio.gather(*asked, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return [_expected(each) for answer in answers for each in answer]


def _expected(each: object) -> FoundTool:
    if isinstance(each, Tool | Handoff | AnyTool):
        return each
    msg = f"a toolset gives tools, made by @tool, not a {type(each).__name__}"
    raise InvalidInputError(msg)


async def release(toolsets: Iterable[Toolset]) -> None:
    """Tell toolsets that an agent which had them is closed."""
    for each in toolsets:
        released = getattr(each, "release", None)
        if released is not None:
            await released()
