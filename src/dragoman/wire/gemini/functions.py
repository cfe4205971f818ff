"""Function calls."""

from __future__ import annotations

from typing import Any

from msgspec import UnsetType

from dragoman.model.parts import Origin
from dragoman.model.tools import ToolCall, make_call
from dragoman.wire.call_ids import CallIds
from dragoman.wire.gemini.trace import Trace, is_object
from dragoman.wire.gemini.writing import Writing

_FIELDS = frozenset({"name", "args", "id"})
_WRAPPED = "arguments that are not a JSON object were wrapped in one"


def decode_call(
    fields: dict[str, Any], trace: Trace, calls: CallIds, origin: Origin | None
) -> ToolCall | None:
    """The call in a part; None where it is malformed."""
    wire = fields["functionCall"]
    if not is_object(wire) or type(name := wire.get("name")) is not str:
        return None
    args, wire_id = wire.get("args"), wire.get("id")
    if args is not None and not is_object(args):
        return None
    for key, value in wire.items():
        if key not in _FIELDS or value is None or (key == "id" and type(value) is not str):
            trace.fields.setdefault("functionCall", {})[key] = value
    call_id, kept = calls.admit_named(name, wire_id if type(wire_id) is str else None, args)
    signature = trace.leave(fields, "functionCall")
    return make_call(
        call_id,
        name,
        # Without arguments the model wrote nothing; the empty text says so (W80).
        "" if args is None else None,
        args,
        wire_id=kept,
        signature=signature,
        origin=None if signature is None else origin,
        extras=trace.extras(),
    )


def encode_call(part: ToolCall, writing: Writing) -> tuple[dict[str, Any], str | None]:
    """The function call, and what was lost."""
    writing.add_call(part)
    call: dict[str, Any] = {"name": part.name}
    if (call_id := wire_id(part, writing)) is not None:
        call["id"] = call_id
    arguments = part.object_arguments()
    if arguments is None:
        call["args"] = {"input": part.raw}
        if part.kind != "custom":
            # Something that is no object would poison the conversation for good (I6).
            writing.repair_part("I6", "retyped", _WRAPPED)
    elif part.raw is None or not (part.raw == "" or part.raw.isspace()):
        call["args"] = arguments
    return {"functionCall": call}, None


def wire_id(call: ToolCall, writing: Writing) -> str | None:
    """The id that a call has on the wire, where it has one: it may do without (W81)."""
    if not writing.target.takes_tool_ids:
        return None
    return call.id if isinstance(call.wire_id, UnsetType) else call.wire_id
