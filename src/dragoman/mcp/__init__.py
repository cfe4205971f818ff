"""The Model Context Protocol: servers whose tools an agent may use. Extra: `dragoman[mcp]`.

Names are resolved when first used.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from dragoman._lazy import lazily
from dragoman.errors import ConfigError

if TYPE_CHECKING:
    from dragoman.mcp.server import MCPServer

_HOMES = {
    "server": ("MCPServer",),
}

__all__ = [
    "MCPServer",
]

if find_spec("mcp") is None:
    _missing = "dragoman.mcp needs the package mcp: pip install 'dragoman[mcp]'"
    raise ConfigError(_missing)

__getattr__, __dir__ = lazily(__name__, _HOMES)
