"""`MCPServer`: a server whose tools an agent uses, and its other features."""

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
from dragoman.mcp.notifications import Notifications, OnChange, OnLog, updates
from dragoman.mcp.questions import Elicit, Questions, RootLike, Sampling, root_of
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
    """Options of every `MCPServer`, whatever its transport."""

    name: str
    """Its name in errors, questions and `MCPTool.server`; by default its command or host."""
    prefix: str
    """Prefix of its tool names, followed by an underscore; useful with several servers."""
    only: Collection[str] | None
    """The tools to offer, by the server's names; None: all."""
    requires_approval: Approval
    """Which calls need approval: all (the default), none, those of the named tools, or as decided
    by a function of the tool and its arguments."""
    timeout: float | None
    """Seconds to wait for a response; None: unlimited. Default: 60. While the server waits for us
    (sampling, elicitation), the clock is stopped."""
    timeouts: Mapping[str, float | None]
    """Timeouts of individual tools, by the server's names."""
    start_timeout: float
    """Seconds to wait until the server is ready. Default: 60."""
    protocol: Literal["auto", "handshake"]
    """`handshake`: negotiate a version before 2026-07-28, even if the server supports a newer one.
    Some servers use elicitation, sampling and roots only then."""
    elicit: Elicit | None
    """Asks the user a question of the server; without it, the server can't ask."""
    sampling: Sampling | None
    """Lets the server use a model; without it, it can't."""
    roots: Iterable[RootLike] | None
    """Directories for the server, which it may ask for; None: it can't ask."""
    on_progress: OnProgress | None
    on_log: OnLog | None
    log_level: str | None
    """The minimum log level for the server: debug, info, notice, warning, error, …"""
    on_change: OnChange | None
    """Called with what has changed: `tools`, `prompts`, `resources`, or `resource` and its URI."""


class MCPServer:
    """A server of the Model Context Protocol, for the `tools` of an agent.

    ```python
    files = MCPServer.stdio("npx", "-y", "@modelcontextprotocol/server-filesystem", "/srv/docs")
    agent = Agent("anthropic:claude-sonnet-4-5", tools=[files], approve=ask_me)
    ```

    It connects on first use, and again if the connection was lost. Leaving `async with`, `close`,
    and the end of the event loop or the program close the connection. Any number of runs, agents
    and event loops can share one object; each loop has its own connection.

    By default every call needs approval (`requires_approval`): a server's own description of its
    tools is not trusted.
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
        self._offer: Offer | None = None  # the last one received
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
        """A program on this machine, started on first use.

        It inherits only the essential environment variables (PATH, HOME, …), plus `env`. Its stderr
        is shown only in errors.
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
        """A server at a URL, with streamable HTTP.

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
        """A server at a URL, with the older transport: HTTP with server-sent events."""
        return cls(Http(url, checked_headers(headers), auth, is_sse=True), **options)

    def __repr__(self) -> str:
        return f"MCPServer({self.name})"

    # --- the connection

    async def open(self) -> ServerInfo:
        """Connect if necessary; returns the server's description of itself."""
        connection = await self._connections.current()
        return listing.server_info(connection.client)

    async def close(self) -> None:
        """Close the connection; a process is stopped. Using the server again reconnects."""
        await self._connections.close()
        if self._questions.sampling is not None:
            await self._questions.sampling.close()

    async def release(self) -> None:
        """Called when an agent that uses the server is closed: closes it, if it is not in use."""
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
        """Why some of the server's tools were left out of the last list."""
        return () if self._offer is None else self._offer.problems

    async def tools(self, run: RunContext[Any] | None = None, /) -> tuple[MCPTool, ...]:
        """The server's tools. The list is requested again when the server reports a change.

        Servers without change notifications are asked once per run. If a server has become
        unreachable, its last known tools are returned: calls to them give error results.
        """
        try:
            self._offer = await self._offered(run)
        except TransportError:
            if self._offer is None:
                raise
            _log.warning("an MCP server can't be reached; using its last known tools")
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
        if connection.changes == changes:  # otherwise this may be the old list
            connection.listed["tools"] = listed._replace(made=offer)
        return offer

    async def call_tool(self, name: str, arguments: Mapping[str, Any] = EMPTY) -> ToolResult:
        """Call a tool by the server's own name for it, without approval.

        Errors of the tool are returned as a result with `is_error`; connection errors are raised.
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
            if error.detail is None:
                raise
            return error_result(error.detail, shown)
        return tool_result(result, schema, shown)

    # --- resources, prompts, completion

    async def resources(self) -> tuple[Resource, ...]:
        """The resources that the server lists."""
        return await self._ask(listing.resources)

    async def resource_templates(self) -> tuple[ResourceTemplate, ...]:
        """The resource templates, whose URIs have parameters."""
        return await self._ask(listing.templates)

    async def read_resource(self, uri: str | Resource) -> tuple[ResultPart, ...]:
        """The content of a resource: text with its URI, or media."""
        address = uri.uri if isinstance(uri, Resource) else uri
        expect(address, str, "the URI of a resource")
        return await self._ask(partial(listing.read, address))

    async def subscribe(self, *uris: str) -> AsyncGenerator[str]:
        """The URIs of resources, each when it has changed.

        After a lost connection, all of them, because changes may have been missed.
        """
        async for uri in updates(self._connections, self._ask, uris):
            yield uri

    async def prompts(self) -> tuple[Prompt, ...]:
        """The prompts of the server."""
        return await self._ask(listing.prompts)

    async def prompt(self, name: str, arguments: Mapping[str, str] = EMPTY) -> Messages:
        """The messages of a prompt, to start a conversation with."""
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
        """Completions for an argument that starts with `value`; `others` are known arguments."""
        return await self._ask(partial(listing.complete, of, argument, value, dict(others)))

    async def set_roots(self, roots: Iterable[RootLike]) -> None:
        """Change the roots of a server that was created with some."""
        if self._questions.roots is None:
            msg = "an MCP server that was created without roots can't use them; pass roots= first"
            raise InvalidInputError(msg)
        self._questions.roots = [root_of(each) for each in roots]
        await self._ask(listing.tell_roots)

    # --- requests

    async def _ask(
        self,
        work: Callable[[Client], Awaitable[T]],
        *,
        seconds: float | UnsetType | None = UNSET,
        is_repeatable: bool = True,
    ) -> T:
        """Send a request. If the connection was lost, repeatable requests are repeated.

        A tool call is repeated only if the server has forgotten the session: then it was not run.
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
                msg = f"the MCP server `{self.name}` did not respond within {allowed:g} seconds"
                if not is_repeatable:
                    msg += "; it is unknown whether the call took effect"
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
    """Options of the SDK's client. They must not refer to the server, which may be dropped."""
    from dragoman._version import __version__

    info = types.Implementation(name="dragoman", version=__version__)
    given = {"client_info": info, "mode": _MODES[protocol]}
    return {**given, **questions.options(connection), **told.options(connection)}


def _check_names(name: object, prefix: object, only: object) -> None:
    expect(name, (str, type(None)), "the name of an MCP server")
    expect(prefix, str, "the prefix of an MCP server")
    if prefix and alias(str(prefix)) != prefix:
        msg = "the prefix of an MCP server may contain only letters, digits, - and _"
        raise InvalidInputError(msg)
    if only is not None and (isinstance(only, str) or not isinstance(only, Collection)):
        msg = "only must be a collection of tool names"
        raise InvalidInputError(msg)


def _check_seconds(seconds: object) -> None:
    expect_number(seconds, "a timeout of an MCP server")
    if seconds is not None and not seconds > 0:  # type: ignore[operator]  # it is a number
        msg = "a timeout of an MCP server must be positive"
        raise InvalidInputError(msg)


__all__ = ["MCPServer", "ServerOptions"]
