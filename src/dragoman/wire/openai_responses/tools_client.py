"""Calls of OpenAI's built-in tools that the client runs: shell, patches, computer.

They are decoded to ordinary calls of a tool of that name, with the action as arguments. Their
overlay has the item type, by which they are restored. A call that could not be restored exactly is
not decoded here; it stays a server tool call (`tables_built_in`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from msgspec import UNSET

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import EMPTY, FrozenDict, freeze_mapping, thaw
from dragoman.model.jsontext import dumps, loads
from dragoman.model.media import Image
from dragoman.model.parts import Part
from dragoman.model.tools import ToolCall, ToolResult, make_call, make_result
from dragoman.wire.openai_responses.dialect import NAME, ORIGIN
from dragoman.wire.openai_responses.forms import without
from dragoman.wire.openai_responses.tables import INPUTS, decode_outside
from dragoman.wire.reading import Reading
from dragoman.wire.rows import SILENT

P = TypeVar("P", ToolCall, ToolResult)

_INCOMPLETE, _COMPLETED = "incomplete", "completed"
_SCREENSHOT = "computer_screenshot"
_BLANK = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8"
    "z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
"""A one-pixel image, for results without a screenshot."""


class ClientTool(NamedTuple):
    """A client-run built-in tool: its item types, and the field with the action of a call."""

    name: str
    call: str
    output: str
    action: str
    """The field with the action of a call."""
    id_prefix: str
    failed: str = _INCOMPLETE
    """The status of a failed output."""
    usual_action: Mapping[str, Any] = EMPTY
    """Further required fields of the action."""


SHELL = ClientTool("shell", "shell_call", "shell_call_output", "action", "sh")
LOCAL_SHELL = ClientTool(
    "local_shell", "local_shell_call", "local_shell_call_output", "action", "lsh",
    usual_action={"type": "exec", "env": {}},
)  # fmt: skip
APPLY_PATCH = ClientTool(
    "apply_patch", "apply_patch_call", "apply_patch_call_output", "operation", "apc", "failed"
)
COMPUTER = ClientTool("computer", "computer_call", "computer_call_output", "action", "cu")
CLIENT_TOOLS = (SHELL, LOCAL_SHELL, APPLY_PATCH, COMPUTER)
BY_CALL = {tool.call: tool for tool in CLIENT_TOOLS}
BY_OUTPUT = {tool.output: tool for tool in CLIENT_TOOLS}
BY_NAME = {tool.name: tool for tool in CLIENT_TOOLS} | {"computer_use_preview": COMPUTER}
"""By the tool type that declares it."""
_OWN_TYPES = (*BY_CALL, *BY_OUTPUT)
_ACTIONS = "actions"
"""The field for several actions of a computer call, instead of one."""


def is_hosted(environment: Any) -> bool:
    """Whether a shell with this environment runs at the provider."""
    if environment is None:
        return False
    return not isinstance(environment, Mapping) or environment.get("type") != "local"


def _form(part: Part) -> Mapping[str, Any]:
    found = part.extras.get(NAME) if part.extras else None
    return found if isinstance(found, Mapping) else EMPTY


def _tool(tools: Mapping[str, ClientTool], form: Mapping[str, Any]) -> ClientTool | None:
    kind = form.get("type")
    return tools.get(kind) if type(kind) is str else None


def as_function(part: P) -> P:
    """Convert a call or result to that of a function: remove what only its item type has."""
    if part.extras is EMPTY or _form(part).get("type") not in _OWN_TYPES:
        return part
    extras = {dialect: fields for dialect, fields in part.extras.items() if dialect != NAME}
    return part.replace_unchecked(extras=extras or EMPTY, item_id=None)


# --- calls


def decode_client_call(wire: dict[str, Any], reading: Reading) -> ToolCall | None:
    """Decode a client-run call; None if it is of another tool, or malformed."""
    tool, wire_id = BY_CALL[wire["type"]], wire.get("call_id")
    if type(wire_id) is not str or is_hosted(wire.get("environment")):
        return None
    found = _decode_action(tool, wire)
    if found is None:
        return None
    field, raw = found
    optional = without(wire, "call_id", field)
    item_id = optional.pop("id") if type(optional.get("id")) is str else None
    call_id, kept = reading.calls.add_call(tool.name, wire_id, raw)
    return make_call(
        call_id,
        tool.name,
        raw,
        wire_id=kept,
        item_id=item_id,
        origin=None if kept is UNSET else ORIGIN,
        extras=FrozenDict({NAME: freeze_mapping(optional, "the wire")}),
    )


def _decode_action(tool: ClientTool, wire: Mapping[str, Any]) -> tuple[str, str] | None:
    """The action field of a call, and its value as JSON text."""
    action: Any = wire.get(tool.action)
    field = tool.action
    if tool is COMPUTER and action is None and isinstance(wire.get(_ACTIONS), list):
        action, field = {_ACTIONS: wire[_ACTIONS]}, _ACTIONS
    elif tool is COMPUTER and wire.get(_ACTIONS) is not None:
        return None  # ambiguous
    if not isinstance(action, dict):
        return None
    try:
        raw = dumps(action).decode("utf-8")
        is_same = _encode_action(tool, loads(raw)) == {field: wire[field]}
    except InvalidInputError:
        return None
    return (field, raw) if is_same else None


def _encode_action(tool: ClientTool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    if tool is COMPUTER and arguments.keys() == {_ACTIONS}:
        return {_ACTIONS: arguments[_ACTIONS]}
    return {tool.action: arguments}


def client_tool_of(call: ToolCall) -> ClientTool | None:
    """The client-run built-in tool of a call; None if it is an ordinary function call."""
    if call.extras is EMPTY or call.kind != "function":
        return None
    tool = _tool(BY_CALL, _form(call))
    return tool if tool is not None and tool.name == call.name else None


def encode_client_call(
    call: ToolCall, tool: ClientTool, item_id: str | None, wire_id: str | None, *, is_foreign: bool
) -> dict[str, Any] | None:
    """Encode a call; None if another model's arguments are not valid for this tool."""
    form = _form(call)
    body: dict[str, Any] = {"type": tool.call}
    arguments = _arguments(call)
    if arguments is None:
        return None
    if call.raw == "" and tool.action in form:
        pass  # a streamed call that has just started
    elif is_foreign and not _is_runnable(tool, arguments):
        return None
    elif is_foreign:
        body |= _encode_action(tool, {**tool.usual_action, **arguments})
    else:
        body |= _encode_action(tool, arguments)
    if wire_id is not None:
        body["call_id"] = wire_id
    if item_id is not None:
        body["id"] = item_id
    for key, value in form.items():
        body.setdefault(key, value)
    return body


def _arguments(call: ToolCall) -> Mapping[str, Any] | None:
    if call.raw is None:
        found: Mapping[str, Any] = thaw(call.input or EMPTY)
        return found
    try:
        parsed = loads(call.raw) if call.raw else {}
    except InvalidInputError:
        return None
    return parsed if isinstance(parsed, dict) else None


def _is_runnable(tool: ClientTool, arguments: Mapping[str, Any]) -> bool:
    """Whether a client could run a call: other models may have written anything."""
    if tool is SHELL:
        return _are_strings(arguments.get("commands"))
    if tool is LOCAL_SHELL:
        return _are_strings(arguments.get("command"))
    kind = arguments.get("type")
    if tool is APPLY_PATCH:
        has_diff = kind == "delete_file" or type(arguments.get("diff")) is str
        is_known = kind in ("create_file", "update_file", "delete_file")
        return is_known and has_diff and type(arguments.get("path")) is str
    several = arguments.get(_ACTIONS)
    return type(kind) is str or (isinstance(several, list) and arguments.keys() == {_ACTIONS})


def _are_strings(value: Any) -> bool:
    return isinstance(value, list) and all(type(each) is str for each in value)


def begun(call: ToolCall) -> ToolCall:
    """A call at the start of a stream: its initial action is not the model's."""
    tool = client_tool_of(call)
    if tool is None:
        return call
    form = {**_form(call), **_encode_action(tool, _arguments(call) or {})}
    extras = FrozenDict({NAME: freeze_mapping(form, "the wire")})
    return call.replace_unchecked(raw="", extras=extras)


# --- outputs


class ClientOutput(NamedTuple):
    """The item of a result, and what was changed."""

    item: dict[str, Any]
    is_lost: bool = False
    """Whether some content was lost."""
    is_filled: bool = False
    """Whether an empty screenshot was added."""


def decode_client_output(wire: dict[str, Any], reading: Reading) -> ToolResult | None:
    """Decode the output of a client-run built-in tool; None if it is malformed."""
    tool = BY_OUTPUT[wire["type"]]
    optional, wire_id, item_id = dict(wire), wire.get("call_id"), None
    if type(wire_id) is str and tool is not LOCAL_SHELL:
        del optional["call_id"]
    if type(wire_id) is str:
        item_id = optional.pop("id") if type(optional.get("id")) is str else None
    elif tool is LOCAL_SHELL and "call_id" not in wire:
        wire_id = optional.pop("id", None)  # its item id is the call's id
    if type(wire_id) is not str:
        return None
    found = _decode_content(tool, optional)
    if found is None:
        return None
    failed = optional.get("status") == tool.failed
    if failed:
        del optional["status"]
    extras = FrozenDict({NAME: freeze_mapping(optional, "the wire")})
    result = make_result(
        "",
        found.get("content", ""),
        data=found.get("data", UNSET),
        is_error=True if failed else None,
        item_id=item_id,
        extras=extras,
    )
    if encode_client_output(result, tool, item_id, wire_id).item != wire:
        return None
    call_id = reading.calls.answer(wire_id)
    return None if call_id is None else result.replace_unchecked(call_id=call_id)


def _decode_content(tool: ClientTool, optional: dict[str, Any]) -> dict[str, Any] | None:
    """Remove the fields of a result from the item's and return them."""
    output = optional.get("output")
    if tool is APPLY_PATCH and output in (None, ""):
        return {}  # empty: kept unchanged
    if "output" not in optional:
        return None
    del optional["output"]
    if type(output) is str and tool in (LOCAL_SHELL, APPLY_PATCH):
        return {"content": output}
    if tool is SHELL and (text := _shell_text(output, optional)) is not None:
        return {"content": text}
    if tool is COMPUTER and isinstance(output, dict) and output.get("type") == _SCREENSHOT:
        image = decode_outside({**output, "type": "input_image"})
        if image is not None:
            return {"content": (image,)}
    return {"data": output}


def _shell_text(output: Any, optional: Mapping[str, Any]) -> str | None:
    """The output of a single command, if the rest is as we would encode it; else None."""
    first = output[0] if isinstance(output, list) and len(output) == 1 else None
    if not isinstance(first, dict):
        return None
    is_error = optional.get("status") == SHELL.failed
    text = first.get("stderr" if is_error else "stdout")
    is_usual = type(text) is str and first == _shell_output(text, is_error=is_error)
    return text if is_usual else None


def _shell_output(text: str, *, is_error: bool) -> dict[str, Any]:
    outcome = {"type": "exit", "exit_code": 1 if is_error else 0}
    streams = {"stdout": "", "stderr": text} if is_error else {"stdout": text, "stderr": ""}
    return {**streams, "outcome": outcome}


def result_tool_of(result: ToolResult) -> ClientTool | None:
    """The tool whose output type a result was received as."""
    return None if result.extras is EMPTY else _tool(BY_OUTPUT, _form(result))


def encode_client_output(
    result: ToolResult,
    tool: ClientTool,
    item_id: str | None,
    wire_id: str | None,
    call: ToolCall | None = None,
) -> ClientOutput:
    """Encode a result; `call` is its call, if known."""
    is_own = result_tool_of(result) is tool
    form = dict(_form(result)) if is_own or result_tool_of(result) is None else {}
    body: dict[str, Any] = {"type": tool.output}
    has_call_id = tool is not LOCAL_SHELL or item_id is not None or "call_id" in form
    if wire_id is not None:
        body["call_id" if has_call_id else "id"] = wire_id
    if item_id is not None:
        body["id"] = item_id
    if not is_own and tool is SHELL and call is not None:
        limit = (_arguments(call) or {}).get("max_output_length")
        if type(limit) is int:
            body["max_output_length"] = limit  # the model's limit must be sent back
    is_data = result.data is not UNSET and not result.content
    if is_data and (is_own or (tool is SHELL and isinstance(result.data, (list, tuple)))):
        made = ClientOutput({"output": thaw(result.data)})
    else:
        made = _ENCODERS[tool.name](result)
    if "output" in made.item or tool is not APPLY_PATCH:
        body["output"] = made.item["output"]
    if result.is_error:
        body["status"] = tool.failed
    elif form.get("status") == tool.failed or (tool is APPLY_PATCH and not is_own):
        form.pop("status", None)
        if tool is APPLY_PATCH:
            body["status"] = _COMPLETED
    return made._replace(item={**form, **body})


def _encode_shell(result: ToolResult) -> ClientOutput:
    ran = _shell_output(result.text, is_error=bool(result.is_error))
    return ClientOutput({"output": [ran]}, is_lost=_has_media(result))


def _encode_text(result: ToolResult) -> ClientOutput:
    return ClientOutput({"output": result.text}, is_lost=_has_media(result))


def _encode_patched(result: ToolResult) -> ClientOutput:
    text = result.text
    return ClientOutput({"output": text} if text else {}, is_lost=_has_media(result))


def _encode_screen(result: ToolResult) -> ClientOutput:
    parts = () if isinstance(result.content, str) else result.content
    image = next((part for part in parts if isinstance(part, Image)), None)
    is_lost = bool(result.text) or len(parts) > 1
    if image is None:
        output = {"type": _SCREENSHOT, "image_url": _BLANK}
        return ClientOutput({"output": output}, is_lost=is_lost, is_filled=True)
    body = INPUTS.write(image, SILENT)
    if image.detail is None and NAME not in image.extras:
        body.pop("detail", None)  # only other images have it
    return ClientOutput({"output": {**body, "type": _SCREENSHOT}}, is_lost=is_lost)


def _has_media(result: ToolResult) -> bool:
    if isinstance(result.content, str):
        return False
    return any(isinstance(part, Image) or not hasattr(part, "text") for part in result.content)


_ENCODERS = {
    SHELL.name: _encode_shell,
    LOCAL_SHELL.name: _encode_text,
    APPLY_PATCH.name: _encode_patched,
    COMPUTER.name: _encode_screen,
}


def placeholder_output(item: Mapping[str, Any], text: str) -> dict[str, Any] | None:
    """A placeholder output with a text, for an unanswered call; None if it can't hold one."""
    tool = BY_CALL.get(item["type"])
    call_id = item.get("call_id")
    if tool is None or tool is COMPUTER or type(call_id) is not str:
        return None
    result = make_result(call_id, text, is_error=True)
    return encode_client_output(result, tool, None, call_id).item
