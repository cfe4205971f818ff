"""`MCPServer`: a server whose tools an agent uses, and what else it has."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Mapping
from functools import partial
from inspect import isawaitable
from os import PathLike, fspath
from typing import Any, Literal, Self, TypedDict, TypeVar, Unpack

import mcp_types as types
from mcp import Client
from msgspec import UNSET, UnsetType

from dragoman.agent.context import RunContext
from dragoman.errors import InvalidInputError, ProviderError, TimeoutError, TransportError  # noqa: A004 - ours is one of Python's
from dragoman.mcp import listing
from dragoman.mcp.connection import Connection, Timer
from dragoman.mcp.connections import Connections
from dragoman.mcp.content import error_result, tool_result
from dragoman.mcp.failures import answer_problem, is_lost, is_refused, status_problem
from dragoman.mcp.notifications import Notifications, OnChange, OnLog
from dragoman.mcp.questions import Elicit, Questions, RootLike, root_of
from dragoman.mcp.sampling import Sampling
from dragoman.mcp.subscriptions import updates
from dragoman.mcp.tools import Approval, MCPTool, Offer, alias, check_approval, offered
from dragoman.mcp.transports import (
    Custom,
    Http,
    OpenTransport,
    Stdio,
    Transport,
    checked_headers,
)
from dragoman.mcp.values import Progress, Prompt, Resource, ResourceTemplate, ServerInfo
from dragoman.model import portal
from dragoman.model.collection import Messages
from dragoman.model.frozen import EMPTY
from dragoman.model.tools import ResultPart, ToolResult
from dragoman.model.value import expect, expect_number

T = TypeVar("T")
OnProgress = Callable[[Progress], Any]

_log = logging.getLogger("dragoman.mcp")
_MODES = {"auto": "auto", "handshake": "legacy"}


class ServerOptions(TypedDict, total=False):
    """What every `MCPServer` may be told, however it is reached."""

    name: str
    """What errors, questions and `MCPTool.server` call it; by default, its command or host."""
    prefix: str
    """Put before the names of its tools, with an underscore: for several servers."""
    only: Collection[str] | None
    """The tools that are offered, as the server names them; None: all."""
    requires_approval: Approval
    """Which calls somebody has to approve first: all (the default), none, those of the tools named,
    or as a function of the tool and its arguments says."""
    timeout: float | None
    """Seconds that the server may take for an answer; None: any. By default 60. While the server
    waits for us (sampling, elicitation), no time passes."""
    timeouts: Mapping[str, float | None]
    """The same for single tools, as the server names them."""
    start_timeout: float
    """Seconds that it may take until the server is ready. By default 60."""
    protocol: Literal["auto", "handshake"]
    """`handshake`: agree on a version before 2026-07-28, even where the server has a newer one.
    Some servers ask questions (elicitation, sampling, roots) only then."""
    elicit: Elicit | None
    """Asks the user what the server wants to know; without it, the server can't ask."""
    sampling: Sampling | None
    """Lets the server ask a model; without it, it can't."""
    roots: Iterable[RootLike] | None
    """Folders that the server is told of when it asks; None: it can't ask."""
    on_progress: OnProgress | None
    on_log: OnLog | None
    log_level: str | None
    """From which level on the server should log: debug, info, notice, warning, error, …"""
    on_change: OnChange | None
    """Told of what has changed: `tools`, `prompts`, `resources`, or `resource` and its address."""


class MCPServer:
    """A server of the Model Context Protocol, for the `tools` of an agent.

    ```python
    files = MCPServer.stdio("npx", "-y", "@modelcontextprotocol/server-filesystem", "/srv/docs")
    agent = Agent("anthropic:claude-sonnet-4-5", tools=[files], approve=ask_me)
    ```

    It is connected to when it is first needed, and again when the connection was lost. `async with`
    and `close` end the connection, as does the end of the event loop, or of the program. Any number
    of runs, agents and event loops may use one at a time; each loop has a connection of its own.

    By default every call needs approval (`requires_approval`): what a server says about its tools
    is not trusted.
    """

    def __init__(  # noqa: PLR0913 - all but the transport by keyword, and optional
        self,
        transport: Transport | OpenTransport,
        *,
        name: str | None = None,
        prefix: str = "",
        only: Collection[str] | None = None,
        requires_approval: Approval = True,
        timeout: float | None = 60.0,
        timeouts: Mapping[str, float | None] = EMPTY,
        start_timeout: float = 60.0,
        protocol: Literal["auto", "handshake"] = "auto",
        elicit: Elicit | None = None,
        sampling: Sampling | None = None,
        roots: Iterable[RootLike] | None = None,
        on_progress: OnProgress | None = None,
        on_log: OnLog | None = None,
        log_level: str | None = None,
        on_change: OnChange | None = None,
    ) -> None:
        if not isinstance(transport, (Stdio, Http, Custom)):
            transport = Custom(transport)  # type: ignore[arg-type]  # it says what is wrong
        check_approval(requires_approval)
        _check_names(name, prefix, only)
        for seconds in (timeout, start_timeout, *timeouts.values()):
            _check_seconds(seconds)
        if protocol not in _MODES:
            msg = "protocol of an MCP server must be auto or handshake"
            raise InvalidInputError(msg)
        expect(sampling, (Sampling, type(None)), "sampling of an MCP server")
        self.name: str = name or transport.place
        self.prefix = prefix
        self._only = only
        self._requires_approval = requires_approval
        self._timeout = timeout
        self._timeouts = dict(timeouts)
        self._on_progress = on_progress
        self._questions = Questions(self.name, elicit=elicit, sampling=sampling, roots=roots)
        self._told = Notifications(self.name, on_log, log_level, on_change)
        options = partial(_options, self._questions, self._told, protocol)
        self._connections = Connections(self.name, transport, options, start_timeout)
        self._connections.close_with(self)
        self._offer: Offer | None = None  # the last that was heard
        self._entered = 0

    @classmethod
    def stdio(
        cls,
        command: str | PathLike[str],
        *args: str,
        env: Mapping[str, str] = EMPTY,
        cwd: str | PathLike[str] | None = None,
        **options: Unpack[ServerOptions],
    ) -> Self:
        """A program on this machine, started when it is needed.

        Of our environment it gets only what programs can't do without (PATH, HOME, …), and what
        `env` says. What it writes to stderr is shown only in errors.
        """
        folder = None if cwd is None else fspath(cwd)
        return cls(Stdio(fspath(command), tuple(map(str, args)), dict(env), folder), **options)

    @classmethod
    def http(
        cls,
        url: str,
        *,
        headers: Mapping[str, str] = EMPTY,
        auth: Any = None,
        **options: Unpack[ServerOptions],
    ) -> Self:
        """A server at an address, by streamable HTTP.

        `auth` is an `httpx2.Auth`, such as the SDK's `mcp.client.auth.OAuthClientProvider`.
        """
        return cls(Http(url, checked_headers(headers), auth), **options)

    @classmethod
    def sse(
        cls,
        url: str,
        *,
        headers: Mapping[str, str] = EMPTY,
        auth: Any = None,
        **options: Unpack[ServerOptions],
    ) -> Self:
        """A server at an address, by the older transport: HTTP with server-sent events."""
        return cls(Http(url, checked_headers(headers), auth, is_sse=True), **options)

    def __repr__(self) -> str:
        return f"MCPServer({self.name})"

    # --- the connection

    async def open(self) -> ServerInfo:
        """Connect, if that has not been done; what the server says of itself."""
        connection = await self._connections.current()
        return listing.server_info(connection.client)

    async def close(self) -> None:
        """End the connection; a process is stopped. Using the server again connects again."""
        await self._connections.close()
        if self._questions.sampling is not None:
            await self._questions.sampling.close()

    async def release(self) -> None:
        """An agent that had the server was closed: close, if nobody else has it open."""
        if not self._entered and not self._connections.in_flight:
            await self.close()

    async def __aenter__(self) -> Self:
        self._entered += 1
        try:
            await self.open()
        except BaseException:
            self._entered -= 1
            raise
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._entered -= 1
        if not self._entered:
            await self.close()

    def close_sync(self) -> None:
        """See `close`."""
        portal.run(self.close())

    def __enter__(self) -> Self:
        return portal.run(self.__aenter__())

    def __exit__(self, *error: object) -> None:
        portal.run(self.__aexit__(*error))

    # --- tools

    @property
    def problems(self) -> tuple[str, ...]:
        """Why some of the server's tools were left out, when they were last listed."""
        return () if self._offer is None else self._offer.problems

    async def tools(self, run: RunContext[Any] | None = None, /) -> tuple[MCPTool, ...]:
        """The server's tools. A list is asked for again when the server says that it changed.

        Servers that tell of no changes are asked once in a run. Where a server that was there can't
        be reached any more, these are the last that it had: calls of them are error results.
        """
        try:
            self._offer = await self._offered(run)
        except TransportError:
            if self._offer is None:
                raise
            _log.warning("an MCP server can't be reached; its tools are those that it had last")
        return self._offer.tools

    async def _offered(self, run: RunContext[Any] | None) -> Offer:
        connection = await self._connections.current()
        known: listing.Listed | None = connection.listed.get("tools")
        if known is not None and known.is_fresh(connection, run):
            return known.made  # type: ignore[no-any-return]  # made below
        changes = connection.changes
        listed = await self._ask(listing.tools)
        offer = offered(
            listed.items, self._run_tool, self.name, prefix=self.prefix, only=self._only,
            requires_approval=self._requires_approval,
        )  # fmt: skip
        for problem in set(offer.problems) - set(self.problems):
            _log.warning("a tool of an MCP server was left out: %s", problem)
        if connection.changes == changes:  # otherwise this may be the list from before
            connection.listed["tools"] = listed._replace(made=offer)
        return offer

    async def call_tool(self, name: str, arguments: Mapping[str, Any] = EMPTY) -> ToolResult:
        """Call a tool by the server's own name for it, without approval.

        What goes wrong at the server is a result with `is_error`; what goes wrong on the way there
        raises.
        """
        expect(name, str, "the name of a tool")
        expect(arguments, Mapping, "the arguments of a tool")
        seconds = self._timeouts.get(name, self._timeout)
        return await self._call(name, name, dict(arguments), None, seconds, None)

    async def _run_tool(
        self, tool: MCPTool, arguments: dict[str, Any], run: RunContext[Any]
    ) -> ToolResult:
        """A call by an agent."""
        name = tool.original_name
        seconds = self._timeouts.get(name, self._timeout)
        schema = tool.definition.output_schema
        call_id = None if run.call is None else run.call.id
        return await self._call(name, tool.name, arguments, schema, seconds, call_id)

    async def _call(
        self, name: str, shown: str, arguments: dict[str, Any], schema: Any,
        seconds: float | None, call_id: str | None,
    ) -> ToolResult:  # fmt: skip
        async def tell(progress: float, total: float | None, message: str | None) -> None:
            assert self._on_progress is not None  # noqa: S101 - it is told only then
            told = self._on_progress(
                Progress(
                    server=self.name, tool=shown, call_id=call_id, progress=progress, total=total,
                    message=message,
                )
            )  # fmt: skip
            if isawaitable(told):
                await told

        heard = None if self._on_progress is None else tell
        try:
            result = await self._ask(
                lambda client: client.call_tool(name, arguments, progress_callback=heard),
                seconds=seconds,
                is_repeatable=False,
            )
        except ProviderError as error:
            if error.provider_message is None:
                raise
            return error_result(error.provider_message, shown)
        return tool_result(result, schema, shown)

    # --- resources, prompts, completion

    async def resources(self) -> tuple[Resource, ...]:
        """The resources that the server lists."""
        return await self._ask(listing.resources)

    async def resource_templates(self) -> tuple[ResourceTemplate, ...]:
        """The kinds of resources whose addresses have parameters."""
        return await self._ask(listing.templates)

    async def read_resource(self, uri: str | Resource) -> tuple[ResultPart, ...]:
        """The content of a resource: text, under its address, or media."""
        address = uri.uri if isinstance(uri, Resource) else uri
        expect(address, str, "the address of a resource")
        return await self._ask(partial(listing.read, address))

    async def subscribe(self, *uris: str) -> AsyncGenerator[str]:
        """The addresses of resources, each when it has changed.

        After a connection was lost, all of them: nobody knows what was missed.
        """
        async for uri in updates(self._connections, self._ask, uris):
            yield uri

    async def prompts(self) -> tuple[Prompt, ...]:
        """The prompts that the server has."""
        return await self._ask(listing.prompts)

    async def prompt(self, name: str, arguments: Mapping[str, str] = EMPTY) -> Messages:
        """A prompt's messages, for the beginning of a conversation."""
        expect(name, str, "the name of a prompt")
        return await self._ask(partial(listing.prompt, name, dict(arguments)))

    async def complete(
        self,
        of: Prompt | ResourceTemplate,
        argument: str,
        value: str = "",
        *,
        others: Mapping[str, str] = EMPTY,
    ) -> tuple[str, ...]:
        """What an argument may be that begins like this; `others` are arguments known already."""
        return await self._ask(partial(listing.complete, of, argument, value, dict(others)))

    async def set_roots(self, roots: Iterable[RootLike]) -> None:
        """Tell the server of other folders. It must have had some when it was made."""
        if self._questions.roots is None:
            msg = "an MCP server that was made without roots can't ask for any"
            raise InvalidInputError(msg)
        self._questions.roots = [root_of(each) for each in roots]
        await self._ask(listing.tell_roots)

    # --- asking

    async def _ask(
        self,
        work: Callable[[Client], Awaitable[T]],
        *,
        seconds: float | UnsetType | None = UNSET,
        is_repeatable: bool = True,
    ) -> T:
        """What the server answers. Where the connection was lost, what is repeatable is repeated.

        A call is repeated only where the server has forgotten the session: then it was not made.
        """
        allowed = self._timeout if seconds is UNSET else seconds
        for is_last in (False, True):
            connection = await self._connections.current()
            timer = Timer(connection, allowed)
            try:
                return await timer.run(work)
            except Exception as failed:  # noqa: BLE001 - the SDK's, and those that servers provoke
                error = failed
            if timer.is_late:
                msg = f"the MCP server `{self.name}` did not answer for {allowed:g} seconds"
                if not is_repeatable:
                    msg += "; whether the call took effect is unknown"
                raise TimeoutError(msg, sent=True)
            may_repeat = is_lost(error, connection) if is_repeatable else is_refused(error)
            if is_last or not may_repeat:
                raise await self._problem(connection, error)
            connection.drop()
        raise AssertionError  # pragma: no cover - the second time returns or raises

    async def _problem(self, connection: Connection, error: Exception) -> Exception:
        if is_lost(error, connection):
            return await connection.loss()
        if isinstance(error, (InvalidInputError, TransportError)):
            return error
        return status_problem(self.name, connection, error) or answer_problem(self.name, error)


def _options(
    questions: Questions, told: Notifications, protocol: str, connection: Connection
) -> dict[str, Any]:
    """What the SDK's client is told. It must not know the server: that may be dropped."""
    from dragoman._version import __version__

    info = types.Implementation(name="dragoman", version=__version__)
    given = {"client_info": info, "mode": _MODES[protocol]}
    return {**given, **questions.options(connection), **told.options(connection)}


def _check_names(name: object, prefix: object, only: object) -> None:
    expect(name, (str, type(None)), "the name of an MCP server")
    expect(prefix, str, "the prefix of an MCP server")
    if prefix and alias(str(prefix)) != prefix:
        msg = "the prefix of an MCP server may have letters, digits, hyphens and underscores only"
        raise InvalidInputError(msg)
    if only is not None and (isinstance(only, str) or not isinstance(only, Collection)):
        msg = "only must be a collection of tools' names"
        raise InvalidInputError(msg)


def _check_seconds(seconds: object) -> None:
    expect_number(seconds, "a timeout of an MCP server")
    if seconds is not None and not seconds > 0:  # type: ignore[operator]  # it is a number
        msg = "a timeout of an MCP server must be more than 0 seconds"
        raise InvalidInputError(msg)


__all__ = ["MCPServer", "ServerOptions"]
