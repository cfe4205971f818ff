"""Turns failures of servers into errors of this library.

They name the server, its command or host, and what to do; never arguments, keys or content. A
server's own message is `detail`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from dragoman.errors import (
    AuthenticationError,
    ConfigError,
    ConnectError,
    DragomanError,
    InvalidInputError,
    InvalidRequest,
    PermissionDenied,
    ProviderError,
    ServerError,
    TimeoutError,  # noqa: A004 - ours is one of Python's
    WireError,
)
from dragoman.mcp.transports import Notes, Transport

if TYPE_CHECKING:
    from dragoman.mcp.connection import Connection

_NOT_FOUND = -32002  # for a resource, before 2026-07-28
# Messages of servers that have forgotten a session, and the SDK's own.
_FORGOTTEN = frozenset({
    "Session terminated",
    "Session not found",
    "Not Found: Session has been terminated",
    "Bad Request: No valid session ID provided",
})  # fmt: skip
_STREAM_LOST = "SSE stream "  # and for an interrupted HTTP response
_HTTP_ERROR = "Server returned an error response"  # for other statuses
_STDERR_WAIT = 0.3  # seconds
_UNAUTHORIZED, _FORBIDDEN, _MISSING, _FAILED = 401, 403, 404, 500


def connection_problem(
    name: str,
    transport: Transport,
    notes: Notes,
    error: BaseException | None,
    *,
    sent: bool | None = None,
) -> DragomanError:
    """Why there is no connection, or no longer one."""
    cause, server = _cause(error), f"the MCP server {_named(name)}"
    if isinstance(cause, DragomanError):
        return cause
    if isinstance(cause, OSError) and not isinstance(cause, ConnectionError):
        return ConfigError(f"{server} could not be started: {_start_problem(cause, transport)}")
    if isinstance(cause, OAuthFlowError):
        return AuthenticationError(f"OAuth authorization for {server} ({transport.place}) failed")
    if notes.status is not None and not (sent and notes.status == _MISSING):
        return _of_status(f"{server} ({transport.place})", notes.status)
    text = f"the connection to the MCP server {_named(name)} was lost ({transport.place})"
    if isinstance(cause, httpx2.TransportError):
        text = f"{server} could not be reached at {transport.place}"
    elif sent is False:
        text = f"{server} ended before it was ready (`{transport.place}`)"
    return ConnectError(text + _last_words(notes), sent=sent)


def _start_problem(error: OSError, transport: Transport) -> str:
    if isinstance(error, FileNotFoundError):
        return (
            f"the command `{transport.place}` or the working directory does not exist; check both,"
            " and the PATH"
        )
    return f"{error.strerror or type(error).__name__} (`{transport.place}`)"


def hung_at_start(name: str, transport: Transport, notes: Notes, seconds: float) -> DragomanError:
    """The server did not become ready in time."""
    text = (
        f"the MCP server {_named(name)} (`{transport.place}`) was not ready after {seconds:g}"
        " seconds; raise start_timeout= to allow more"
    )
    return TimeoutError(text + _last_words(notes), sent=None)


def answer_problem(name: str, error: Exception) -> DragomanError:
    """The error for a request that was not answered with a valid result."""
    server = f"the MCP server {_named(name)}"
    if isinstance(error, MCPError):
        return _error_response(server, error)
    if isinstance(error, ValidationError):
        return WireError(f"{server} sent a message that violates the protocol", dialect="mcp")
    if isinstance(error, (PydanticSerializationError, UnicodeEncodeError)):  # before it was sent
        return InvalidInputError(f"a request to {server} has a value that JSON does not have")
    if isinstance(error, RecursionError):
        return WireError(f"{server} sent a message that is nested too deeply", dialect="mcp")
    return WireError(f"{server} violated the protocol ({type(error).__name__})", dialect="mcp")


def _error_response(server: str, error: MCPError) -> ProviderError:
    details: Any = {"code": str(error.code), "detail": error.message}
    if error.code == METHOD_NOT_FOUND:
        return InvalidRequest(f"{server} does not have the requested item", **details)
    if error.code in {INVALID_PARAMS, INVALID_REQUEST, _NOT_FOUND}:
        return InvalidRequest(f"{server} rejected a request", **details)
    return ServerError(f"{server} returned an error", **details)


def status_problem(name: str, connection: Connection, error: Exception) -> DragomanError | None:
    """The error for an HTTP status, if the SDK only reports that the request failed."""
    status = connection.notes.status
    if status is None or not isinstance(error, MCPError) or error.message != _HTTP_ERROR:
        return None
    return _of_status(f"the MCP server {_named(name)} ({connection.transport.place})", status)


def is_lost(error: Exception, connection: Connection) -> bool:
    """Whether the connection, the session at the server, or the response stream is gone.

    The code alone is not enough: many servers use it for errors of their own.
    """
    if not connection.is_open or is_refused(error):
        return True
    return (
        isinstance(error, MCPError)
        and error.code == CONNECTION_CLOSED
        and error.message.startswith(_STREAM_LOST)
    )


def is_refused(error: Exception) -> bool:
    """Whether the server did not accept the request because it has forgotten the session."""
    return isinstance(error, MCPError) and error.message in _FORGOTTEN


def _of_status(server: str, status: int) -> ProviderError:
    if status == _UNAUTHORIZED:
        msg = f"{server} requires authentication; pass headers= or auth="
        return AuthenticationError(msg, status=status)
    if status == _FORBIDDEN:
        return PermissionDenied(f"{server} denied access", status=status)
    if status == _MISSING:
        return InvalidRequest(f"{server} has no MCP endpoint at this address", status=status)
    kind = ServerError if status >= _FAILED else InvalidRequest
    return kind(f"{server} returned HTTP status {status}", status=status)


def _cause(error: BaseException | None) -> BaseException | None:
    """The first actual error in nested exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _last_words(notes: Notes) -> str:
    said = notes.stderr(_STDERR_WAIT)
    return f"; its last output on stderr:\n{said}" if said else ""


def _named(name: str) -> str:
    return f"`{name}`"
