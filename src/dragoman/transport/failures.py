"""Network failures as errors of ours; the texts of other libraries may quote URLs and headers."""

from __future__ import annotations

from dragoman.errors import (
    ConfigError,
    ConnectError,
    StreamInterrupted,
    TimeoutError,  # noqa: A004 - ours, which is the builtin's as well
    TransportError,
)

# --- before the request was sent


def malformed_request() -> ConfigError:
    """The request can't be written as HTTP."""
    return ConfigError("the URL or a header is invalid")


def connect_timeout() -> TransportError:
    """No connection was made in time."""
    return TimeoutError("the connection timed out", sent=False)


def untrusted_certificate() -> TransportError:
    """Another attempt would not help."""
    msg = "the server's TLS certificate is not trusted"
    return ConnectError(msg, sent=False, retryable=False)


def tls_failure() -> TransportError:
    """The server does not speak TLS, or not as we do."""
    return ConnectError("the TLS handshake failed", sent=False)


def proxy_failure() -> TransportError:
    """The proxy is the problem, not the server."""
    return ConnectError("the proxy is unreachable, or refused to connect", sent=False)


def unknown_host() -> TransportError:
    """DNS has no address."""
    return ConnectError("the host name could not be resolved", sent=False)


def unreachable() -> TransportError:
    """The server refuses connections, or no network leads to it."""
    return ConnectError("could not connect to the server", sent=False)


# --- before the response began


def response_timeout() -> TransportError:
    """The request was sent, and nothing came back in time."""
    return TimeoutError("the server did not respond in time", sent=True)


def not_http() -> TransportError:
    """Another attempt would not help."""
    return TransportError("the reply is not HTTP, or its headers are too large", sent=True)


def lost_before_response(kind: str) -> TransportError:
    """The connection broke while the response was awaited."""
    return ConnectError(f"the connection was lost before a response arrived ({kind})", sent=True)


# --- within the response


def stalled() -> TransportError:
    """Nothing more came in time."""
    return TimeoutError("the server stopped sending in mid-response", sent=True)


def incomplete() -> TransportError:
    """The body is shorter than announced, or can't be decompressed to its end."""
    return StreamInterrupted("the connection ended before the response was complete")


def lost(kind: str) -> TransportError:
    """The connection broke."""
    return StreamInterrupted(f"the connection was lost ({kind})")
