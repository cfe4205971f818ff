"""One connection to a server, kept open by its own task on one event loop.

The SDK's context managers must be exited in the task that entered them, so none of the runs that
use a connection can own it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import Context
from dataclasses import replace
from typing import Any, Self, TypeVar

import anyio
import mcp_types as types
from mcp import Client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.exceptions import MCPError

from dragoman.errors import DragomanError, InvalidInputError
from dragoman.mcp.failures import connection_problem, hung_at_start
from dragoman.mcp.transports import Streams, Transport

T = TypeVar("T")

_LOSS_TIMEOUT = 1.0  # seconds
_CLOSE_TIMEOUT = 12.0  # seconds; the SDK takes up to 7 to stop a process that won't exit


class Connection:
    """A connection, from opening to end. It is never reopened."""

    def __init__(
        self, name: str, transport: Transport, options: Callable[[Connection], Mapping[str, Any]]
    ) -> None:
        self.name = name
        self.transport = transport
        self.notes = transport.notes()
        self.in_flight = 0
        """Number of pending requests."""
        self.listed: dict[str, Any] = {}
        """The server's lists by kind, as far as known and unchanged."""
        self.changes = 0
        """Number of change notifications from the server."""
        self.timers: set[Timer] = set()
        self.watches: set[Any] = set()
        """Subscribers to resource changes."""
        self.is_told_of_changes = False
        """Whether the server notifies of list changes."""
        self._questions = 0
        self._client: Client | None = None
        self._options = options
        self._ending = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._error: BaseException | None = None
        self._is_over = False

    @property
    def client(self) -> Client:
        """The SDK's client."""
        if self._client is None:
            raise self.problem()
        return self._client

    @property
    def is_open(self) -> bool:
        """Whether it can be used."""
        return self._client is not None and not self._is_over and not self._ending.is_set()

    def problem(self, *, sent: bool | None = None) -> DragomanError:
        """The error for its end, for whoever wants to use it."""
        return connection_problem(self.name, self.transport, self.notes, self._error, sent=sent)

    async def open(self, seconds: float) -> None:
        """Connect, and negotiate a protocol version with the server."""
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # In its own context: it outlives the run that needed it first.
        self._task = asyncio.create_task(
            self._live(ready), name=f"mcp {self.name}", context=Context()
        )
        try:
            await asyncio.wait({ready}, timeout=seconds)
        finally:
            if not ready.done():  # it hangs, or nobody waits any more
                self._ending.set()
                self._task.cancel()
        if not ready.done():
            ready.cancel()
            await self._settled()
            raise hung_at_start(self.name, self.transport, self.notes, seconds)
        if self._client is None:
            await self._settled()
            raise self.problem(sent=False)

    async def close(self) -> None:
        """Close it; a process is stopped. Calling it again has no effect."""
        self._ending.set()
        await self._settled()

    def drop(self) -> None:
        """Let it end: it can't be used any more."""
        self._ending.set()

    async def loss(self) -> DragomanError:
        """Why it was lost, as far as that becomes known soon."""
        self.drop()
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=_LOSS_TIMEOUT)
        return self.problem(sent=True)

    async def _settled(self) -> None:
        if self._task is None or self._task is asyncio.current_task():
            return
        await asyncio.wait({self._task}, timeout=_CLOSE_TIMEOUT)
        if not self._task.done():
            self._task.cancel()

    # --- the task

    async def _live(self, ready: asyncio.Future[None]) -> None:
        following: asyncio.Task[None] | None = None
        try:
            options = self._options(self)
            async with Client(self._streams(), cache=None, **options) as client:
                # `jsonschema` would run the server's own patterns with `re`, and one of them can
                # take forever. We validate results ourselves.
                setattr(client.session, "validate_tool_result", _unchecked)  # noqa: B010 - a method
                await _ask_for_logs(client, options.get("log_level"))
                self._client = client
                ready.set_result(None)
                following = asyncio.create_task(self._follow_changes(client))
                try:
                    await self._ending.wait()
                finally:  # cancelled if the transport has failed, and closing may take seconds
                    self._is_over = True
        except BaseException as error:
            self._error = error
            if not isinstance(error, Exception):
                raise  # the loop ends
        finally:
            self._is_over = True
            for watch in self.watches:
                watch.end()
            if following is not None:
                following.cancel()
            if not ready.done():
                ready.set_result(None)

    @asynccontextmanager
    async def _streams(self) -> AsyncGenerator[Streams]:
        async with self.transport.open(self.notes) as (reading, writing):
            self.notes.lost = self._lost
            yield _Watched(reading, self._lost), _Encodable(writing)

    def _lost(self) -> None:
        """The server has closed the connection, or is gone."""
        self._is_over = True
        self._ending.set()

    async def _follow_changes(self, client: Client) -> None:
        """Subscribe to changes, which servers since 2026-07-28 require."""
        has = client.server_capabilities
        kinds = {
            "tools_list_changed": has.tools is not None and has.tools.list_changed,
            "prompts_list_changed": has.prompts is not None and has.prompts.list_changed,
            "resources_list_changed": has.resources is not None and has.resources.list_changed,
        }
        wanted: dict[str, Any] = {kind: True for kind, is_told in kinds.items() if is_told}
        if not wanted or client.session.initialize_result is not None:
            self.is_told_of_changes = bool(wanted)
            return
        # Events also reach the session's message handler, which handles those of all servers.
        with suppress(ListenNotSupportedError, SubscriptionLost, MCPError, TimeoutError):
            async with client.listen(**wanted) as changes:
                self.is_told_of_changes = True
                self.listed.clear()  # it may have changed before the subscription
                async for _ in changes:
                    pass
        self.is_told_of_changes = False
        self.listed.clear()

    def tell(self, uri: str) -> None:
        """A resource has changed."""
        for watch in self.watches:
            watch.tell(uri)

    # --- requests

    @contextmanager
    def used(self) -> Generator[Client]:
        """The client, for one request."""
        self.in_flight += 1
        try:
            yield self.client
        finally:
            self.in_flight -= 1

    @contextmanager
    def answering(self) -> Generator[None]:
        """Pause the timeouts of calls while the server waits for us or the user."""
        self._questions += 1
        for timer in self.timers:
            timer.pause()
        try:
            yield
        finally:
            self._questions -= 1
            for timer in () if self._questions else self.timers:
                timer.resume()


class Timer:
    """The timeout of a call, not counting the time that its server waits for us."""

    def __init__(self, connection: Connection, seconds: float | None) -> None:
        self._connection = connection
        self._seconds = seconds
        self._timeout = asyncio.timeout(seconds)

    @property
    def is_late(self) -> bool:
        """Whether it has expired."""
        return self._timeout.expired()

    def pause(self) -> None:
        """Stop the clock."""
        self._timeout.reschedule(None)

    def resume(self) -> None:
        """Restart the clock."""
        if self._seconds is not None:
            self._timeout.reschedule(asyncio.get_running_loop().time() + self._seconds)

    async def run(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """Run the work; raises `TimeoutError` when it takes too long."""
        try:
            async with self._timeout:
                self._connection.timers.add(self)
                with self._connection.used() as client:
                    return await work(client)
        finally:
            self._connection.timers.discard(self)


async def _ask_for_logs(client: Client, level: Any) -> None:
    """Set the log level, which servers before 2026-07-28 are told once."""
    is_handshake = client.session.initialize_result is not None
    if level is None or not is_handshake or client.server_capabilities.logging is None:
        return
    request = types.SetLevelRequest(params=types.SetLevelRequestParams(level=level))
    with suppress(MCPError):
        await client.session.send_request(request, types.EmptyResult)


async def _unchecked(name: str, result: types.CallToolResult) -> None:
    pass


class _Watched:
    """A stream to read from that reports its end, which the SDK only tells waiting readers."""

    def __init__(self, stream: Any, ended: Callable[[], None]) -> None:
        self._stream = stream
        self._ended = ended

    @property
    def last_context(self) -> Context | None:
        """The sender's context of the last message, if the transport has it."""
        found: Context | None = getattr(self._stream, "last_context", None)
        return found

    async def receive(self) -> Any:
        """The next message."""
        try:
            return await self._stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._ended()
            raise

    async def aclose(self) -> None:
        """Stop reading."""
        await self._stream.aclose()

    def __aiter__(self) -> _Watched:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> bool | None:
        closed: bool | None = await self._stream.__aexit__(*error)
        return closed


class _Encodable:
    """A stream to write to that refuses what can't be encoded as JSON, such as half a character.

    The SDK's transports encode a message in tasks of their own, which end the connection if that
    fails.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def send(self, item: Any) -> None:
        """Send a message; raises for a request that can't be encoded.

        A server that waits for an answer gets an error instead.
        """
        message = item.message
        try:
            message.model_dump_json(by_alias=True, exclude_unset=True)
        except (ValueError, TypeError, RecursionError):  # a PydanticSerializationError is one
            if not isinstance(message, types.JSONRPCResponse):
                msg = "a request to an MCP server has a value that JSON does not have"
                raise InvalidInputError(msg) from None
            item = replace(item, message=_unsendable(message.id))
        await self._stream.send(item)

    async def aclose(self) -> None:
        """Stop writing."""
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> bool | None:
        closed: bool | None = await self._stream.__aexit__(*error)
        return closed


def _unsendable(request_id: Any) -> types.JSONRPCError:
    problem = types.ErrorData(code=types.INTERNAL_ERROR, message="The answer can't be encoded")
    return types.JSONRPCError(jsonrpc="2.0", id=request_id, error=problem)
