"""Calls of the provider's own tools: code execution, and the tools that Gemini 3 reports."""

from __future__ import annotations

from typing import Any

from dragoman.model.parts import Origin, ServerToolCall, ServerToolResult
from dragoman.wire.call_ids import CallIds
from dragoman.wire.gemini.trace import Trace, is_object, snake_names

_OK = "OUTCOME_OK"
_CODE = "code_execution"
"""Our name for the tool whose parts don't name it; the others' names are in upper case."""
_NAMES = snake_names("toolType")

Said = tuple[str, str | None, Any]
"""The name of the tool, the id of the call, and the arguments or the result."""


def decode_call(
    fields: dict[str, Any], trace: Trace, _calls: CallIds, origin: Origin | None
) -> ServerToolCall | None:
    """The call of a server tool in a part; None where it is malformed."""
    if (code := fields.get("executableCode")) is not None:
        kind, said = "executableCode", _decode_code(code)
    else:
        kind, said = "toolCall", _decode_tool(fields, "toolCall", "args", trace)
    if said is None:
        return None
    signature = trace.leave(fields, kind)
    return ServerToolCall(*said, signature=signature, origin=origin, extras=trace.extras())


def encode_call(part: ServerToolCall) -> dict[str, Any]:
    """The part's field for a call of a server tool."""
    if part.name == _CODE:
        code = part.input if is_object(part.input) else {"language": "PYTHON", "code": part.input}
        return {"executableCode": _identified(part.call_id, code)}
    return {"toolCall": _identified(part.call_id, _tool(part.name, "args", part.input))}


def decode_result(
    fields: dict[str, Any], trace: Trace, _calls: CallIds, origin: Origin | None
) -> ServerToolResult | None:
    """The result of a server tool in a part; None where it is malformed."""
    is_error = None
    if (result := fields.get("codeExecutionResult")) is not None:
        kind, said = "codeExecutionResult", _decode_code(result)
        if said is not None and type(outcome := result.get("outcome")) is str:
            is_error = outcome != _OK
    else:
        kind, said = "toolResponse", _decode_tool(fields, "toolResponse", "response", trace)
    if said is None:
        return None
    signature = trace.leave(fields, kind)
    extras = trace.extras()
    return ServerToolResult(*said, is_error, signature=signature, origin=origin, extras=extras)


def encode_result(part: ServerToolResult) -> dict[str, Any]:
    """The part's field for the result of a server tool."""
    content = part.content
    if part.name == _CODE:
        outcome = "OUTCOME_FAILED" if part.is_error else _OK
        result = content if is_object(content) else {"outcome": outcome, "output": content}
        if part.is_error is not None and (result.get("outcome") == _OK) is bool(part.is_error):
            result = {**result, "outcome": outcome}
        return {"codeExecutionResult": _identified(part.call_id, result)}
    return {"toolResponse": _identified(part.call_id, _tool(part.name, "response", content))}


def _decode_code(wire: Any) -> Said | None:
    if not is_object(wire):
        return None
    if type(wire.get("id")) is not str:
        return _CODE, None, wire
    return _CODE, wire["id"], {key: value for key, value in wire.items() if key != "id"}


def _decode_tool(fields: dict[str, Any], kind: str, key: str, trace: Trace) -> Said | None:
    if not is_object(fields[kind]):
        return None
    wire = trace.camel(fields[kind], _NAMES, f"{kind}.")
    name, call_id, content = wire.get("toolType"), wire.get("id"), wire.get(key)
    if type(name) is not str or name == _CODE:
        return None
    taken = {"toolType"}
    if content is not None:
        taken.add(key)
    if type(call_id) is str:
        taken.add("id")
    if left := {name: value for name, value in wire.items() if name not in taken}:
        trace.fields[kind] = left
    return name, call_id if type(call_id) is str else None, content


def _identified(call_id: str | None, body: dict[str, Any]) -> dict[str, Any]:
    return dict(body) if call_id is None else {**body, "id": call_id}


def _tool(name: str, key: str, content: Any) -> dict[str, Any]:
    return {"toolType": name} if content is None else {"toolType": name, key: content}
