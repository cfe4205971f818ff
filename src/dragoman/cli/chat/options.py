"""The options of `dragoman chat`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dragoman.cli.history.stores import USUAL, Place

if TYPE_CHECKING:
    from dragoman.agent.prompt_templates import Template


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of `dragoman chat`."""

    model: str | None = None
    system: str | None = None
    tools: tuple[str, ...] = ()
    no_tools: bool = False
    is_continued: bool = False
    session: str | None = None
    store: Place = USUAL
    no_history: bool = False
    mcp: tuple[str, ...] = ()
    mcp_config: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    template: Template | None = None
    usage: bool = False
    show_thinking: bool = False
    dialect: str | None = None
    base_url: str | None = None
    yes: bool = False
