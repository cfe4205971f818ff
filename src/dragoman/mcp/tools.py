"""The tools of a server, as tools of an agent.

Everything that a server says about its tools is untrusted: a tool with an unacceptable name,
description or schema is left out, and the others are offered. None of this ends a run.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple, Protocol, TypeAlias

import mcp_types as types

from dragoman.agent.context import RunContext
from dragoman.agent.tool_results import whole_characters
from dragoman.errors import InvalidInputError
from dragoman.model.frozen import freeze_mapping, thaw
from dragoman.model.functions.signatures import Signature, signature_of
from dragoman.model.functions.tool import Tool
from dragoman.model.jsontext import dumps
from dragoman.model.tools import ToolDefinition, ToolResult, make_definition
from dragoman.model.validation.metaschema import check_schema
from dragoman.model.value import name_shown
from dragoman.wire.schemas import PROFILES
from dragoman.wire.schemas.projection import projected

MAX_TOOLS = 1_000
"""Maximum tools per server; no model accepts more."""
MAX_NAME = 1_024
"""Maximum characters of a name."""
MAX_DESCRIPTION = 20_000
MAX_SCHEMA = 100_000
"""Maximum characters of a schema as JSON."""
MAX_STEPS = 100_000
"""Maximum additional steps for encoding the schemas of all tools for any target."""

_COMPOSING = (b'"$ref"', b'"$dynamicRef"', b'Of"', b'"if"', b'"not"')
_MAX_ALIAS = 128
_HASH = 8
_IS_VALID_NAME = re.compile(rf"[A-Za-z0-9_.-]{{1,{_MAX_ALIAS}}}", re.ASCII).fullmatch
_INVALID_CHARS = re.compile(r"[^A-Za-z0-9_.-]+", re.ASCII)


class MCPTool(Tool[..., Awaitable[ToolResult], RunContext[Any]]):
    """A tool of an MCP server.

    The server's hints about its effects (`read_only`, `destructive`, …) are not verified.
    """

    def __init__(
        self,
        call: _Call,
        tool: types.Tool,
        definition: ToolDefinition,
        server: str,
        *,
        requires_approval: Approval,
    ) -> None:
        self.server = server
        """The name of the server."""
        self.original_name = tool.name
        """The server's name for it."""
        hints = tool.annotations or types.ToolAnnotations()
        self.title = tool.title or hints.title
        self.read_only = hints.read_only_hint
        """Whether the server says that it changes nothing; None if it doesn't say."""
        self.destructive = hints.destructive_hint
        """Whether the server says that it may destroy something; None if it doesn't say."""
        self.idempotent = hints.idempotent_hint
        self.open_world = hints.open_world_hint

        async def run_tool(arguments: dict[str, Any], run: RunContext[Any]) -> ToolResult:
            return await call(self, arguments, run)

        super().__init__(run_tool, definition, requires_approval=_approval(requires_approval, self))
        self.__doc__ = definition.description

    def _signature_of(self, function: Callable[..., Any]) -> Signature:
        """The common signature, computed once: that takes longer than everything else together."""
        return _signature(function)

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments for the server, validated against its schema."""
        if self._fits is None or not self._fits(arguments):
            self.definition.check_arguments(arguments)
        return {"arguments": thaw(arguments)}

    def __repr__(self) -> str:
        return f"MCPTool({', '.join(name_shown(self.name))})"


_shared: list[Signature] = []


def _signature(function: Callable[..., Any]) -> Signature:
    if not _shared:
        _shared.append(signature_of(function))
    return _shared[0]


class _Call(Protocol):
    def __call__(
        self, tool: MCPTool, arguments: dict[str, Any], run: RunContext[Any], /
    ) -> Awaitable[ToolResult]: ...


Approval: TypeAlias = bool | Collection[str] | Callable[[MCPTool, Mapping[str, Any]], bool]
"""Which calls need approval: all or none, those of the named tools (by the server's names), or as
decided by a function of the tool and its arguments."""


class Offer(NamedTuple):
    """The tools made from a server's list."""

    tools: tuple[MCPTool, ...]
    problems: tuple[str, ...]
    """Why some tools were left out."""


def offered(
    listed: Sequence[types.Tool],
    call: _Call,
    server: str,
    *,
    prefix: str = "",
    only: Collection[str] | None = None,
    requires_approval: Approval = True,
) -> Offer:
    """The tools of a list, with distinct names, and the problems of the others."""
    made: dict[str, MCPTool] = {}
    problems: list[str] = []
    work = _Work()
    for tool in listed:
        if only is not None and tool.name not in only:
            continue
        try:
            if len(made) >= MAX_TOOLS:
                problems.append(f"more than {MAX_TOOLS:,} tools: the rest are left out")
                break
            definition = _definition(tool, prefix, work)
            if definition.name in made:
                msg = "there is another tool with this name"
                raise InvalidInputError(msg)  # noqa: TRY301 - all that is wrong is told in one place
        except (InvalidInputError, RecursionError) as error:
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            problems.append(f"{_named(tool.name)}: {reason}")
            continue
        made[definition.name] = MCPTool(
            call, tool, definition, server, requires_approval=requires_approval
        )
    if only is not None and (missing := set(only) - {tool.name for tool in listed}):
        problems += [f"{_named(name)}: the server has no such tool" for name in sorted(missing)]
    return Offer(tuple(made.values()), tuple(problems))


def _definition(tool: types.Tool, prefix: str, work: _Work) -> ToolDefinition:
    name = alias(f"{prefix}_{tool.name}" if prefix else tool.name)
    if not tool.name or len(tool.name) > MAX_NAME:
        msg = f"its name has {len(tool.name):,} characters; the limit is 1 to {MAX_NAME:,}"
        raise InvalidInputError(msg)
    about = tool.description or tool.title or tool.name
    if len(about) > MAX_DESCRIPTION:
        msg = f"its description has {len(about):,} characters; the maximum is {MAX_DESCRIPTION:,}"
        raise InvalidInputError(msg)
    schema = dict(tool.input_schema)
    schema.setdefault("type", "object")
    parameters = _schema(schema, "the schema of its arguments")
    if parameters.get("type") != "object":
        msg = "the schema of its arguments does not describe an object"
        raise InvalidInputError(msg)
    work.charge(parameters)
    output = None
    if tool.output_schema is not None:
        output = _schema(tool.output_schema, "the schema of its results")
    return make_definition(
        name, whole_characters(about), parameters, strict=False, output_schema=output
    )


def _schema(schema: Mapping[str, Any], what: str) -> Mapping[str, Any]:
    frozen = freeze_mapping(schema, what)
    size = len(dumps(frozen))
    if size > MAX_SCHEMA:
        msg = f"{what} has {size:,} characters; the maximum is {MAX_SCHEMA:,}"
        raise InvalidInputError(msg)
    check_schema(frozen, what)
    return frozen


class _Work:
    """The cost of encoding a server's schemas for the most demanding target.

    Some targets don't support references, and a few lines can expand beyond any memory when they
    are inlined: one such tool would make every request of the agent fail.
    """

    def __init__(self) -> None:
        self._left = MAX_STEPS

    def charge(self, schema: Mapping[str, Any]) -> None:
        """Count a schema; raises if it is too expensive, alone or with those before it."""
        written = dumps(schema)
        if not any(word in written for word in _COMPOSING):
            return
        where = "the schema of its arguments"
        if self._left > 0:
            before, self._left = self._left, 0  # nothing is tried after one that is too expensive
            made = [projected(schema, profile, where=where) for profile in PROFILES.values()]
            self._left = before - max(each.cost.excess for each in made)
        if self._left <= 0:
            msg = f"{where} is too complex, together with those of the tools before it"
            raise InvalidInputError(msg)


def alias(name: str) -> str:
    """The name if it is valid by the specification; otherwise a valid one derived from it.

    Different names never have the same alias: the hash suffix distinguishes them. Dialects that
    allow fewer characters use their own aliases, which they reverse in responses.

    >>> alias("read_file"), alias("über prüfen")
    ('read_file', '_ber_pr_fen_ace8c79e')
    """
    if _IS_VALID_NAME(name):
        return name
    ending = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    return f"{_INVALID_CHARS.sub('_', name)[: _MAX_ALIAS - _HASH - 1]}_{ending}"


def _approval(asked: Approval, tool: MCPTool) -> bool | Callable[[Mapping[str, Any]], bool]:
    if isinstance(asked, bool):
        return asked
    if callable(asked):
        return lambda arguments: asked(tool, arguments)
    return tool.original_name in asked


def check_approval(asked: object) -> None:
    """Raise unless it is a valid approval setting."""
    is_names = isinstance(asked, Collection) and not isinstance(asked, (str, bytes))
    if not isinstance(asked, bool) and not is_names and not callable(asked):
        msg = (
            "requires_approval of an MCP server must be True, False, the names of tools, or a"
            " function of the tool and its arguments"
        )
        raise InvalidInputError(msg)


def _named(name: str) -> str:
    shown = list(name_shown(name))
    return f"`{shown[0]}`" if shown else "a tool whose name can't be shown"
