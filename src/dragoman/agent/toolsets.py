"""Toolsets: tools from elsewhere that may change during a run, such as an MCP server's."""

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
    """A source of tools, passed to an agent like a tool: `Agent(tools=[server])`.

    It is queried before each request of a run, so that changes take effect in mid-run. If it has a
    `release` method, that is called when an agent that uses it is closed.
    """

    async def tools(self, run: RunContext[Any], /) -> Iterable[FoundTool]:
        """The tools currently available. An exception ends the run."""
        ...


async def found_in(
    toolsets: Sequence[Toolset], taken: set[str], run: RunContext[Any]
) -> list[FoundTool]:
    """The tools of all toolsets, without duplicate names.

    The first tool with a name keeps it: the names of a server's tools must neither replace another
    tool nor end a run. Omitted tools are logged.
    """
    found: list[FoundTool] = []
    names = set(taken)
    for each in await _asked(toolsets, run):
        name = each.name if isinstance(each, (Tool, Handoff, ToolDefinition)) else None
        if name is None or name not in names:
            found.append(each)
        else:
            shown = "".join(name_shown(name))
            _log.warning("a second tool named `%s` was left out; set a prefix to keep both", shown)
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
    msg = f"a toolset must return tools made with @tool, not {type(each).__name__}"
    raise InvalidInputError(msg)


async def release(toolsets: Iterable[Toolset]) -> None:
    """Notify toolsets that an agent that used them is closed."""
    for each in toolsets:
        released = getattr(each, "release", None)
        if released is not None:
            await released()
