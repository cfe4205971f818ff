"""A server's tools as tools of an agent.

Everything that a server says of its tools is hostile: a tool whose name, description or schema is
not acceptable is left out, and the others are offered. None of them ends a run.
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
"""How many tools of one server are offered; no model takes more."""
MAX_NAME = 1_024
"""Characters of a name; a longer one is no name."""
MAX_DESCRIPTION = 20_000
MAX_SCHEMA = 100_000
"""Characters of a schema as JSON."""
MAX_STEPS = 100_000
"""Steps that it takes to write the schemas of all tools for any target, beyond the usual."""

_COMPOSING = (b'"$ref"', b'"$dynamicRef"', b'Of"', b'"if"', b'"not"')
_LONGEST = 128
_HASH = 8
_FITS = re.compile(rf"[A-Za-z0-9_.-]{{1,{_LONGEST}}}", re.ASCII).fullmatch
_MISFIT = re.compile(r"[^A-Za-z0-9_.-]+", re.ASCII)


class MCPTool(Tool[..., Awaitable[ToolResult], RunContext[Any]]):
    """A tool of an MCP server, as an agent has it.

    What the server says of its effects (`read_only`, `destructive`, …) is a hint: nobody has
    checked it.
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
        """What the server calls it."""
        hints = tool.annotations or types.ToolAnnotations()
        self.title = tool.title or hints.title
        self.read_only = hints.read_only_hint
        """Whether the server says that it changes nothing; None: it does not say."""
        self.destructive = hints.destructive_hint
        """Whether the server says that it may destroy something; None: it does not say."""
        self.idempotent = hints.idempotent_hint
        self.open_world = hints.open_world_hint

        async def run_tool(arguments: dict[str, Any], run: RunContext[Any]) -> ToolResult:
            return await call(self, arguments, run)

        super().__init__(run_tool, definition, requires_approval=_approval(requires_approval, self))
        self.__doc__ = definition.description

    def _signature_of(self, function: Callable[..., Any]) -> Signature:
        """That of all of them, read once: it takes longer than all else together."""
        return _signature(function)

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the server gets them, checked against its own schema."""
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
"""Which calls need approval: all or none, those of the tools named (as the server names them), or
as a function says of the tool and its arguments."""


class Offer(NamedTuple):
    """What is made of a server's list of tools."""

    tools: tuple[MCPTool, ...]
    problems: tuple[str, ...]
    """Why some were left out."""


def offered(
    listed: Sequence[types.Tool],
    call: _Call,
    server: str,
    *,
    prefix: str = "",
    only: Collection[str] | None = None,
    requires_approval: Approval = True,
) -> Offer:
    """The tools of a list, each under a name of its own, and what is wrong with the others."""
    made: dict[str, MCPTool] = {}
    problems: list[str] = []
    work = _Work()
    for tool in listed:
        if only is not None and tool.name not in only:
            continue
        try:
            if len(made) >= MAX_TOOLS:
                problems.append(f"more than {MAX_TOOLS:,} tools: the rest is left out")
                break
            definition = _definition(tool, prefix, work)
            if definition.name in made:
                msg = "there is another one of that name"
                raise InvalidInputError(msg)  # noqa: TRY301 - all that is wrong is told in one place
        except (InvalidInputError, RecursionError) as error:
            reason = "it nests too deeply" if isinstance(error, RecursionError) else str(error)
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
        msg = f"its name has {len(tool.name):,} characters"
        raise InvalidInputError(msg)
    about = tool.description or tool.title or tool.name
    if len(about) > MAX_DESCRIPTION:
        msg = f"its description has {len(about):,} characters; {MAX_DESCRIPTION:,} are the limit"
        raise InvalidInputError(msg)
    schema = dict(tool.input_schema)
    schema.setdefault("type", "object")
    parameters = _schema(schema, "the schema of its arguments")
    if parameters.get("type") != "object":
        msg = "the schema of its arguments is none of an object"
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
        msg = f"{what} has {size:,} characters; {MAX_SCHEMA:,} are the limit"
        raise InvalidInputError(msg)
    check_schema(frozen, what)
    return frozen


class _Work:
    """What the schemas of a server cost when they are written for the most demanding target.

    Some targets take no references, and few lines can be made to grow beyond any memory when they
    are written out: one such tool would make every request of the agent fail.
    """

    def __init__(self) -> None:
        self._left = MAX_STEPS

    def charge(self, schema: Mapping[str, Any]) -> None:
        """Count a schema; raise where it is too much, alone or with those before it."""
        written = dumps(schema)
        if not any(word in written for word in _COMPOSING):
            return
        where = "the schema of its arguments"
        if self._left > 0:
            before, self._left = self._left, 0  # no more is tried where one is too much
            made = [projected(schema, profile, where=where) for profile in PROFILES.values()]
            self._left = before - max(each.cost.excess for each in made)
        if self._left <= 0:
            msg = f"{where} takes too much work to write, with those of the tools before it"
            raise InvalidInputError(msg)


def alias(name: str) -> str:
    """The name, where it is like the specification has them; or one made of it.

    Two names never have the same alias: the ending tells them apart. Dialects that allow fewer
    characters have aliases of their own for it, which they undo in answers.

    >>> alias("read_file"), alias("über prüfen")
    ('read_file', '_ber_pr_fen_ace8c79e')
    """
    if _FITS(name):
        return name
    ending = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    return f"{_MISFIT.sub('_', name)[: _LONGEST - _HASH - 1]}_{ending}"


def _approval(asked: Approval, tool: MCPTool) -> bool | Callable[[Mapping[str, Any]], bool]:
    if isinstance(asked, bool):
        return asked
    if callable(asked):
        return lambda arguments: asked(tool, arguments)
    return tool.original_name in asked


def check_approval(asked: object) -> None:
    """Raise unless it says which calls need approval."""
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
