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
    ProviderTool,
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


def _is(kind: str, about: str = "", **more: Any) -> dict[str, Any]:
    return {"type": kind, **more, **({"description": about} if about else {})}


def _among(*words: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


_TEXT, _LINE = _is("string"), _is("integer")
_EDITING = "view", "create", "str_replace", "insert"
_EDITS: Mapping[str, Any] = {
    "path": _TEXT,
    "file_text": _is("string", "For create: the whole file."),
    "old_str": _is("string",
                   "For str_replace: the text to replace, which must occur exactly once."),
    "new_str": _is("string", "For str_replace: the replacement."),
    "insert_line": _is("integer", "For insert: the line after which to insert."),
    "insert_text": _is("string", "For insert: the text to insert."),
    "view_range": _is("array", "First and last line; -1 as the last means the end of the file.",
                      items=_LINE),
}  # fmt: skip
_BASH = _function(
    "bash", "Run a command in a bash shell that persists between calls.", [],
    command=_is("string", "The command to run."),
    restart=_is("boolean", "Restart the shell instead."),
)  # fmt: skip
_EDITOR = _function("str_replace_based_edit_tool", "View and edit files.", ["command", "path"],
                    command=_among(*_EDITING), **_EDITS)  # fmt: skip
_MEMORY = _function(
    "memory", "Files under /memories that persist between conversations.", ["command"],
    command=_among(*_EDITING, "delete", "rename"), **_EDITS, old_path=_TEXT, new_path=_TEXT,
)  # fmt: skip
_COMPUTER = _function(
    "computer", "Use the screen, the mouse and the keyboard, and take screenshots.", ["action"],
    action=_among("key", "type", "mouse_move", "left_click", "left_click_drag", "right_click",
                  "middle_click", "double_click", "triple_click", "left_mouse_down",
                  "left_mouse_up", "scroll", "hold_key", "wait", "cursor_position", "screenshot"),
    coordinate=_is("array", "For mouse actions and scroll: the x and y position.", items=_LINE),
    start_coordinate=_is("array", "For left_click_drag: the start position.", items=_LINE),
    text=_is("string", "For type: the text; for key and hold_key: the keys (`ctrl+s`)."),
    duration=_is("number", "For wait and hold_key: seconds."),
    scroll_direction=_among("up", "down", "left", "right"),
    scroll_amount=_is("integer", "How many clicks of the wheel."),
)  # fmt: skip


# --- the tools

_SERVER = Outside(
    "mcp_servers", frozenset({"url", "authorization", "allowed_tools"}), _server, _server_wire,
    frozenset({"configs", "default_config"}),
)  # fmt: skip
_CONTAINER = Outside(
    "container", frozenset({"container"}),
    lambda _payload, container: {"container": text(container)}, lambda tool: tool.container,
)  # fmt: skip


def _dated(
    kind: type[ProviderTool],
    wire: str,
    *options: Option,
    name: str = "",
    **more: Any,
) -> Form:
    """A tool with a dated type; all dates are decoded."""
    stem = wire.rpartition("_")[0]
    every = (*options, *_COMMON)
    return Form(kind, wire, every, stem + r"_\d{8}", {"name": name or stem}, **more)


FORMS = (
    _dated(WebSearch, "web_search_20250305", *_WEB,
           Option("user_location", "location", location, location_wire)),
    _dated(WebFetch, "web_fetch_20250910", *_WEB,
           Option("max_content_tokens", "max_content_tokens", whole),
           Option("citations", "citations", _citations, lambda is_on: {"enabled": is_on})),
    _dated(CodeExecution, _CODE, outside=_CONTAINER),
    Form(  # tools refer to a server, which must be declared
        McpServer, "mcp_toolset",
        (Option("mcp_server_name", "label", text),
         Option("default_config.defer_loading", "defer_loading", flag)),
        needs="url", outside=_SERVER,
    ),
    Form(ToolSearch, "tool_search_tool_bm25_20251119", _COMMON,
         r"tool_search_tool_(bm25|regex)(_\d{8})?", {"name": "tool_search_tool_bm25"}),
    _dated(ComputerUse, "computer_20250124",
           Option("display_width_px", "display_width", whole),
           Option("display_height_px", "display_height", whole), function=_COMPUTER),
    _dated(Shell, "bash_20250124", function=_BASH),
    _dated(TextEditor, "text_editor_20250728", name="str_replace_based_edit_tool",
           function=_EDITOR),
    _dated(Memory, "memory_20250818", function=_MEMORY),
)  # fmt: skip
"""The wire formats of the provider tools that Anthropic supports."""


def betas_of(tools: Iterable[Any]) -> list[str]:
    """The beta names that these tools need in the `anthropic-beta` header."""
    kinds = [tool.get("type") for tool in tools if isinstance(tool, Mapping)]
    return [beta for kind, beta in _BETAS.items() if kind in kinds]
