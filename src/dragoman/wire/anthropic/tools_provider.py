"""Anthropic's built-in tools, mapped to our provider tool classes.

Tool types are dated. All versions are decoded; the oldest version with the required features is
encoded, because most models support it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dragoman.model.frozen import EMPTY
from dragoman.model.provider_tools import (
    CodeExecution,
    ComputerUse,
    McpServer,
    Memory,
    Shell,
    TextEditor,
    ToolSearch,
    WebFetch,
    WebSearch,
)
from dragoman.model.tools import ToolDefinition, make_definition
from dragoman.wire.provider_tools import Form, Option, Outside, location, location_wire
from dragoman.wire.settings_table import flag, text, texts, whole

_BETAS = {"mcp_toolset": "mcp-client-2025-11-20", "computer_20250124": "computer-use-2025-01-24"}


_CODE = "code_execution_20250825"


def callers(value: Any) -> tuple[str, ...] | None:
    """Decode `allowed_callers`; the code execution tool has a dated type."""
    names = texts(list(value)) if isinstance(value, (list, tuple)) else None
    if not names:
        return None
    return tuple("code" if name == _CODE else name for name in names)


def callers_wire(names: tuple[str, ...]) -> list[str]:
    """Encode `allowed_callers`."""
    return [_CODE if name == "code" else name for name in names]


def _citations(value: Any) -> bool | None:
    return flag(value.get("enabled")) if isinstance(value, Mapping) else None


_COMMON = (
    Option("defer_loading", "defer_loading", flag),
    Option("allowed_callers", "allowed_callers", callers, callers_wire),
)
_WEB = (
    Option("allowed_domains", "allowed_domains", texts),
    Option("blocked_domains", "blocked_domains", texts),
    Option("max_uses", "max_uses", whole),
)


# --- MCP: servers are listed separately, and tools refer to them by name


def _server(payload: Mapping[str, Any], servers: Any) -> dict[str, Any]:
    label = payload.get("mcp_server_name")
    found: Mapping[str, Any] = EMPTY
    for server in servers if isinstance(servers, (list, tuple)) else ():
        if isinstance(server, Mapping) and server.get("name") == label:
            found = server
    allowed = found.get("tool_configuration")
    names = allowed.get("allowed_tools") if isinstance(allowed, Mapping) else None
    listed = names if isinstance(names, (list, tuple)) else None
    return {
        "label": label,
        "url": text(found.get("url")),
        "authorization": text(found.get("authorization_token")),
        "allowed_tools": _enabled(payload) if listed is None else tuple(listed),
    }


def _enabled(payload: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The names of the enabled tools, if all others are disabled by default."""
    usual, configs = payload.get("default_config"), payload.get("configs")
    if not isinstance(usual, Mapping) or usual.get("enabled") is not False:
        return None
    if not isinstance(configs, Mapping):
        return ()
    return tuple(
        name
        for name, config in configs.items()
        if not isinstance(config, Mapping) or config.get("enabled") is not False
    )


def _server_wire(tool: McpServer) -> list[dict[str, Any]]:
    server: dict[str, Any] = {"type": "url", "name": tool.label, "url": tool.url}
    if tool.authorization is not None:
        server["authorization_token"] = tool.authorization
    if tool.allowed_tools is not None:
        names = list(tool.allowed_tools)
        server["tool_configuration"] = {"enabled": True, "allowed_tools": names}
    return [server]


# --- built-in tools that the client runs: their arguments as function definitions


def _function(name: str, about: str, required: list[str], **properties: Any) -> ToolDefinition:
    schema = {"type": "object", "properties": properties, "required": required}
    return make_definition(name, about, schema, None)


_TEXT = {"type": "string"}
_LINE = {"type": "integer"}
_LINES = {
    "type": "array",
    "items": _LINE,
    "description": "First and last line; -1 as the last means the end of the file.",
}
_EDITS: Mapping[str, Any] = {
    "path": _TEXT,
    "file_text": {**_TEXT, "description": "For create: the whole file."},
    "old_str": {
        **_TEXT,
        "description": "For str_replace: the text to replace, which must occur exactly once.",
    },
    "new_str": {**_TEXT, "description": "For str_replace: the replacement."},
    "insert_line": {**_LINE, "description": "For insert: the line after which to insert."},
    "insert_text": {**_TEXT, "description": "For insert: the text to insert."},
    "view_range": _LINES,
}
_BASH = _function(
    "bash",
    "Run a command in a bash shell that persists between calls.",
    [],
    command={**_TEXT, "description": "The command to run."},
    restart={"type": "boolean", "description": "Restart the shell instead."},
)
_EDITOR = _function(
    "str_replace_based_edit_tool",
    "View and edit files.",
    ["command", "path"],
    command={"type": "string", "enum": ["view", "create", "str_replace", "insert"]},
    **_EDITS,
)
_MEMORY = _function(
    "memory",
    "Files under /memories that persist between conversations.",
    ["command"],
    command={
        "type": "string",
        "enum": ["view", "create", "str_replace", "insert", "delete", "rename"],
    },
    **_EDITS,
    old_path=_TEXT,
    new_path=_TEXT,
)

_PLACE: Mapping[str, Any] = {"type": "array", "items": _LINE, "description": "x and y."}
_COMPUTER = _function(
    "computer",
    "Use the screen, the mouse and the keyboard, and take screenshots.",
    ["action"],
    action={
        "type": "string",
        "enum": ["key", "type", "mouse_move", "left_click", "left_click_drag", "right_click",
                 "middle_click", "double_click", "triple_click", "left_mouse_down",
                 "left_mouse_up", "scroll", "hold_key", "wait", "cursor_position", "screenshot"],
    },
    coordinate={**_PLACE, "description": "For mouse actions and scroll: the x and y position."},
    start_coordinate={**_PLACE, "description": "For left_click_drag: the start position."},
    text={**_TEXT, "description": "For type: the text; for key and hold_key: the keys (`ctrl+s`)."},
    duration={"type": "number", "description": "For wait and hold_key: seconds."},
    scroll_direction={"type": "string", "enum": ["up", "down", "left", "right"]},
    scroll_amount={**_LINE, "description": "How many clicks of the wheel."},
)  # fmt: skip

FORMS = (
    Form(
        WebSearch,
        "web_search_20250305",
        (*_WEB, Option("user_location", "location", location, location_wire), *_COMMON),
        r"web_search_\d{8}",
        {"name": "web_search"},
    ),
    Form(
        WebFetch,
        "web_fetch_20250910",
        (
            *_WEB,
            Option("max_content_tokens", "max_content_tokens", whole),
            Option("citations", "citations", _citations, lambda is_on: {"enabled": is_on}),
            *_COMMON,
        ),
        r"web_fetch_\d{8}",
        {"name": "web_fetch"},
    ),
    Form(
        CodeExecution,
        _CODE,
        _COMMON,
        r"code_execution_\d{8}",
        {"name": "code_execution"},
        Outside(
            "container",
            frozenset({"container"}),
            lambda _payload, container: {"container": text(container)},
            lambda tool: tool.container,
        ),
    ),
    Form(
        McpServer,
        "mcp_toolset",
        (
            Option("mcp_server_name", "label", text),
            Option("default_config.defer_loading", "defer_loading", flag),
        ),
        needs="url",  # tools refer to a server, which must be declared
        outside=Outside(
            "mcp_servers",
            frozenset({"url", "authorization", "allowed_tools"}),
            _server,
            _server_wire,
            frozenset({"configs", "default_config"}),
        ),
    ),
    Form(
        ToolSearch,
        "tool_search_tool_bm25_20251119",
        _COMMON,
        r"tool_search_tool_(bm25|regex)(_\d{8})?",
        {"name": "tool_search_tool_bm25"},
    ),
    Form(
        ComputerUse,
        "computer_20250124",
        (
            Option("display_width_px", "display_width", whole),
            Option("display_height_px", "display_height", whole),
            *_COMMON,
        ),
        r"computer_\d{8}",
        {"name": "computer"},
        function=_COMPUTER,
    ),
    Form(Shell, "bash_20250124", _COMMON, r"bash_\d{8}", {"name": "bash"}, function=_BASH),
    Form(
        TextEditor,
        "text_editor_20250728",
        _COMMON,
        r"text_editor_\d{8}",
        {"name": "str_replace_based_edit_tool"},
        function=_EDITOR,
    ),
    Form(Memory, "memory_20250818", _COMMON, r"memory_\d{8}", {"name": "memory"}, function=_MEMORY),
)  # fmt: skip
"""The wire formats of the provider tools that Anthropic supports."""


def betas_of(tools: Iterable[Any]) -> list[str]:
    """The beta names that these tools need in the `anthropic-beta` header."""
    kinds = [tool.get("type") for tool in tools if isinstance(tool, Mapping)]
    return [beta for kind, beta in _BETAS.items() if kind in kinds]
