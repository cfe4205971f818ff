"""Resources, prompts, progress and log messages of servers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dragoman.agent.reprs import Shown
from dragoman.model.value import name_shown


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Resource(Shown):
    """Something readable on a server: a file, a row, a page."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime: str | None = None
    size: int | None = None

    def _sizes(self) -> Iterator[str]:
        yield from name_shown(self.name)


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class ResourceTemplate(Shown):
    """Resources with parameters in their URIs, as in RFC 6570."""

    uri_template: str
    name: str
    title: str | None = None
    description: str | None = None
    mime: str | None = None

    def _sizes(self) -> Iterator[str]:
        yield from name_shown(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptArgument:
    """An argument of a prompt."""

    name: str
    description: str | None = None
    is_required: bool = False


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Prompt(Shown):
    """Messages prepared by a server; get them with `MCPServer.prompt`."""

    name: str
    title: str | None = None
    description: str | None = None
    arguments: tuple[PromptArgument, ...] = ()

    def _sizes(self) -> Iterator[str]:
        yield from name_shown(self.name)
        yield f"{len(self.arguments)} arguments"


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Progress(Shown):
    """The progress of a call, as reported by its server."""

    server: str
    tool: str
    """The tool's name for the model."""
    call_id: str | None
    """The id of the call, in a run."""
    progress: float
    total: float | None = None
    message: str | None = None

    def _sizes(self) -> Iterator[str]:
        yield from name_shown(self.tool)
        yield f"{self.progress:g}" if self.total is None else f"{self.progress:g}/{self.total:g}"


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class LogMessage(Shown):
    """A log message of a server. It may quote anything, so it is not written to our logs."""

    server: str
    level: str
    data: Any
    logger: str | None = None

    def _sizes(self) -> Iterator[str]:
        yield self.level


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class ServerInfo(Shown):
    """A server's description of itself."""

    name: str | None
    version: str | None
    protocol: str
    """The negotiated protocol version, such as 2026-07-28."""
    instructions: str | None
    """How to use the server. Models don't see it, unless you add it to `system`."""
    capabilities: frozenset[str]

    def _sizes(self) -> Iterator[str]:
        yield from name_shown(self.name)
        yield self.protocol
