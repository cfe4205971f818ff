"""What servers have besides tools, and what they tell: resources, prompts, progress, logs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dragoman.agent.reprs import Shown
from dragoman.model.value import name_shown


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Resource(Shown):
    """Something that a server has to read: a file, a row, a page."""

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
    """Resources with parameters in their addresses, as RFC 6570 has them."""

    uri_template: str
    name: str
    title: str | None = None
    description: str | None = None
    mime: str | None = None

    def _sizes(self) -> Iterator[str]:
        yield from name_shown(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptArgument:
    """What a prompt wants to be told."""

    name: str
    description: str | None = None
    is_required: bool = False


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Prompt(Shown):
    """Messages that a server has prepared. `MCPServer.prompt` gives them."""

    name: str
    title: str | None = None
    description: str | None = None
    arguments: tuple[PromptArgument, ...] = ()

    def _sizes(self) -> Iterator[str]:
        yield from name_shown(self.name)
        yield f"{len(self.arguments)} arguments"


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Progress(Shown):
    """How far a call has come, as its server says."""

    server: str
    tool: str
    """The tool's name, as the model knows it."""
    call_id: str | None
    """The call that is being answered, in a run."""
    progress: float
    total: float | None = None
    message: str | None = None

    def _sizes(self) -> Iterator[str]:
        yield from name_shown(self.tool)
        yield f"{self.progress:g}" if self.total is None else f"{self.progress:g}/{self.total:g}"


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class LogMessage(Shown):
    """Something that a server logs. It may quote anything: not for logs of ours."""

    server: str
    level: str
    data: Any
    logger: str | None = None

    def _sizes(self) -> Iterator[str]:
        yield self.level


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class ServerInfo(Shown):
    """What a server says of itself."""

    name: str | None
    version: str | None
    protocol: str
    """The version of the protocol that was agreed upon, such as 2026-07-28."""
    instructions: str | None
    """How to use the server. It is not told to models, unless you put it into `system`."""
    capabilities: frozenset[str]

    def _sizes(self) -> Iterator[str]:
        yield from name_shown(self.name)
        yield self.protocol
