"""OpenAI's built-in tools, mapped to our provider tool classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.provider_tools import (
    ApplyPatch,
    CodeExecution,
    ComputerUse,
    FileSearch,
    ImageGeneration,
    McpServer,
    Shell,
    ToolSearch,
    WebSearch,
)
from dragoman.model.tools import ToolDefinition, make_definition
from dragoman.wire.openai_settings import callers, callers_wire
from dragoman.wire.provider_tools import Form, Option, location, location_wire
from dragoman.wire.settings_table import flag, text, texts, whole

_NAME = "openai-responses"  # not imported from `dialect`, which imports this module
_CALLABLE = (Option("allowed_callers", "allowed_callers", callers, callers_wire),)
_DEFERRED = (Option("defer_loading", "defer_loading", flag), *_CALLABLE)


def _allowed(value: Any) -> tuple[str, ...] | None:
    names = value.get("tool_names") if isinstance(value, Mapping) else value
    return texts(names)


def _mapping(value: Any) -> Any:
    return value if isinstance(value, Mapping) else None


_SCREEN = (
    Option("display_width", "display_width", whole),
    Option("display_height", "display_height", whole),
    Option("environment", "environment", text),
)


# --- built-in tools that the client runs: their arguments as function definitions, and overlays


def _function(name: str, about: str, required: list[str], **properties: Any) -> ToolDefinition:
    schema = {"type": "object", "properties": properties, "required": required}
    return make_definition(name, about, schema, None)


def _own(call_type: str, **fields: Any) -> Mapping[str, Any]:
    return {_NAME: {"type": call_type, "status": "completed", **fields}}


_TEXT: Mapping[str, Any] = {"type": "string"}
_WHOLE: Mapping[str, Any] = {"type": "integer"}
_TEXTS: Mapping[str, Any] = {"type": "array", "items": {"type": "string"}}
_POINT = {"type": "object", "properties": {"x": _WHOLE, "y": _WHOLE}, "required": ["x", "y"]}
_LIMIT: Mapping[str, Any] = {**_WHOLE, "description": "Timeout in milliseconds."}
_SHELL = _function(
    "shell",
    "Run commands in a shell on the user's machine. Returns the output and exit code of each"
    " command.",
    ["commands"],
    commands={**_TEXTS, "description": "The commands, run one after the other."},
    timeout_ms=_LIMIT,
    max_output_length={**_WHOLE, "description": "Maximum characters to return per command."},
)
_LOCAL_SHELL = _function(
    "local_shell",
    "Run a command on the user's machine. Returns its output.",
    ["command"],
    command={**_TEXTS, "description": "The program and its arguments."},
    working_directory=_TEXT,
    env={"type": "object", "description": "Additional environment variables, with string values."},
    timeout_ms=_LIMIT,
    user=_TEXT,
)
_PATCH = _function(
    "apply_patch",
    "Create, update or delete one file. A diff for create_file has all lines of the file, each"
    " prefixed with `+`. A diff for update_file has sections that begin with a line `@@`,"
    " optionally followed by an earlier line of the file (a class, a function). In a section,"
    " unchanged lines are prefixed with a space, removed ones with `-`, added ones with `+`."
    " No line numbers.",
    ["type", "path"],
    type={"type": "string", "enum": ["create_file", "update_file", "delete_file"]},
    path={**_TEXT, "description": "The file, relative to the workspace."},
    diff={**_TEXT, "description": "For create_file and update_file."},
)
_ACTION: Mapping[str, Any] = {
    "type": {
        "type": "string",
        "enum": ["click", "double_click", "drag", "keypress", "move", "screenshot", "scroll",
                 "type", "wait"],
    },
    "x": {**_WHOLE, "description": "For click, double_click, move and scroll."},
    "y": _WHOLE,
    "button": {"type": "string", "enum": ["left", "right", "wheel", "back", "forward"]},
    "scroll_x": _WHOLE,
    "scroll_y": _WHOLE,
    "path": {"type": "array", "items": _POINT, "description": "For drag: the path of the mouse."},
    "keys": {**_TEXTS, "description": "For keypress; or keys held while clicking."},
    "text": {**_TEXT, "description": "For type."},
}  # fmt: skip
_SCREEN_FUNCTION = "Use the screen, the mouse and the keyboard. Returns a screenshot."
_COMPUTER = _function("computer", _SCREEN_FUNCTION, ["type"], **_ACTION)
_COMPUTER_ACTIONS = _function(
    "computer",
    _SCREEN_FUNCTION,
    ["actions"],
    actions={
        "type": "array",
        "items": {"type": "object", "properties": _ACTION, "required": ["type"]},
        "description": "The actions, in order.",
    },
)


def _is_hosted(payload: Mapping[str, Any]) -> bool:
    """Whether a shell runs at the provider, in its container."""
    environment = payload.get("environment")
    is_local = isinstance(environment, Mapping) and environment.get("type") == "local"
    return environment is not None and not is_local


FORMS = (
    Form(
        WebSearch,
        "web_search",
        (
            Option("filters.allowed_domains", "allowed_domains", texts),
            Option("filters.blocked_domains", "blocked_domains", texts, lambda _names: None),
            Option("user_location", "location", location, location_wire),
            Option("search_context_size", "context_size", text),
        ),
        r"web_search(_preview)?(_\d{4}_\d{2}_\d{2})?",
    ),
    Form(
        CodeExecution,
        "code_interpreter",
        (
            Option("container.file_ids", "file_ids", texts),
            Option("container", "container", text),
            *_CALLABLE,
        ),
        constants={"container": {"type": "auto"}},
    ),
    Form(
        FileSearch,
        "file_search",
        (
            Option("vector_store_ids", "stores", texts),
            Option("max_num_results", "max_results", whole),
            Option("filters", "filters", _mapping, _mapping),
        ),
        needs="stores",
    ),
    Form(
        ImageGeneration,
        "image_generation",
        (
            Option("model", "model", text),
            Option("size", "size", text),
            Option("quality", "quality", text),
            Option("output_format", "format", text),
            Option("background", "background", text),
        ),
    ),
    Form(
        McpServer,
        "mcp",
        (
            Option("server_label", "label", text),
            Option("server_url", "url", text),
            Option("authorization", "authorization", text),
            Option("headers", "headers", _mapping),
            Option("server_description", "description", text),
            Option("allowed_tools", "allowed_tools", _allowed),
            Option("require_approval", "approval", text),
            *_DEFERRED,
        ),
    ),
    Form(ToolSearch, "tool_search", (Option("execution", "execution", text),)),
    Form(
        ComputerUse,
        "computer_use_preview",
        _SCREEN,
        function=_COMPUTER,
        call_extras=_own("computer_call", pending_safety_checks=[]),
    ),
    Form(
        ComputerUse,
        "computer",
        function=_COMPUTER_ACTIONS,
        call_extras=_own("computer_call", pending_safety_checks=[]),
    ),
    Form(
        Shell,
        "shell",
        _CALLABLE,
        function=_SHELL,
        call_extras=_own("shell_call"),
        usual={"environment": {"type": "local"}},
        is_hosted=_is_hosted,
    ),
    Form(Shell, "local_shell", function=_LOCAL_SHELL, call_extras=_own("local_shell_call")),
    Form(
        ApplyPatch,
        "apply_patch",
        _CALLABLE,
        function=_PATCH,
        call_extras=_own("apply_patch_call"),
    ),
)
"""The wire formats of the provider tools that OpenAI supports."""
