"""Tool calls: whole, their arguments an object (W102)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from msgspec import UNSET

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY, FrozenDict, freeze_mapping
from dragoman.model.parts import Opaque, Origin
from dragoman.model.tools import ToolCall, make_call
from dragoman.wire import overlay
from dragoman.wire.losses import Repair
from dragoman.wire.ollama.exchange import Incoming, Outgoing
from dragoman.wire.ollama.spelling import NAME, is_object, is_own, kept, laid, without_absent

TEXT_ARGUMENT = "input"
"""Where the text of a call stands that is no object."""
_NOT_AN_OBJECT = "arguments that are not a JSON object were wrapped in one"
_TEXT = "arguments that were a text are sent as an object"
_CUT_OFF = "a call that was cut off before its arguments were complete is left out"


def decode_call(wire: Any, incoming: Incoming) -> AnyPart:
    """One of `tool_calls`; what is malformed is carried whole."""
    function = wire.get("function") if is_object(wire) else None
    if not is_object(function) or type(name := function.get("name")) is not str:
        return Opaque(NAME, wire, origin=incoming.origin)
    arguments, wire_id = function.get("arguments"), wire.get("id")
    if not (arguments is None or isinstance(arguments, (dict, str))):
        return Opaque(NAME, wire, origin=incoming.origin)
    has_id = type(wire_id) is str
    call_id, own_id = incoming.admit(name, wire_id if has_id else None, arguments)
    origin = None if own_id is UNSET else incoming.origin  # else nobody knew whose id that was
    extras = _kept(wire, function, has_id=has_id)
    if isinstance(arguments, str):  # refused by the server, and written by many a client (W102)
        call = make_call(call_id, name, arguments, wire_id=own_id, origin=origin)
        return call.replace_unchecked(extras=_spelled(arguments, _arguments(call), extras))
    if arguments is None and "arguments" in function:
        extras = _spelled(None, EMPTY, extras)
    given = EMPTY if arguments is None else arguments
    return make_call(call_id, name, None, given, wire_id=own_id, origin=origin, extras=extras)


def _arguments(call: ToolCall) -> Mapping[str, Any]:
    """The arguments as an object; a text that is none stands in one."""
    arguments = call.object_arguments()
    return {TEXT_ARGUMENT: call.raw_arguments} if arguments is None else arguments


def _spelled(theirs: Any, ours: Mapping[str, Any], extras: Mapping[str, Any]) -> FrozenDict:
    """The extras with how the arguments were written."""
    wire, written = ({"function": {"arguments": given}} for given in (theirs, ours))
    return freeze_mapping({**extras, **overlay.difference(wire, written, NAME)})


def _kept(wire: dict[str, Any], function: dict[str, Any], *, has_id: bool) -> Mapping[str, Any]:
    if len(function) == 2 and len(wire) == 1 + has_id and "arguments" in function:  # noqa: PLR2004 - with the name
        return EMPTY
    index = function.get("index")
    is_plain = len(function) == 3 and len(wire) == 2 and "arguments" in function  # noqa: PLR2004
    if is_plain and has_id and type(index) is int:  # as the server writes it
        return _numbered(index)
    known = {"id", "function"} if has_id else {"function"}
    inner = {key: value for key, value in function.items() if key not in ("name", "arguments")}
    outer = {key: value for key, value in wire.items() if key not in known}
    if inner:
        outer["function"] = inner
    absent: dict[str, Any] = {} if "arguments" in function else {"arguments": {}}
    return kept(outer, (), absent)


@lru_cache(maxsize=64)
def _numbered(index: int) -> Mapping[str, Any]:
    """The extras of a call that has a number in its turn: nearly all have a small one."""
    return freeze_mapping({NAME: {"function": {"index": index}}}, "the wire")


def encode_call(
    call: ToolCall, origin: Origin | None, out: Outgoing, path: str, place: int
) -> dict[str, Any] | None:
    """One of `tool_calls`; None, and a loss, where it was cut off: a client would run it (I7)."""
    arguments = _arguments(call)
    if call.cache is not None or call.signature is not None:
        out.lose_luggage(call, path)
    wire_id = out.call(call, origin)
    function: dict[str, Any] = {"name": call.name, "arguments": arguments}
    if out.is_response and not is_own(origin):
        function = {"index": place, **function}
    body: dict[str, Any] = {} if wire_id is None else {"id": wire_id}
    body["function"] = function
    if call.extras is not EMPTY:
        without_absent(function, call.extras)
        body = laid(body, call.extras)
    if isinstance(function.get("arguments"), str) and not (out.takes_anything or out.is_response):
        function["arguments"] = arguments
        out.repairs.append(Repair(path, "W102", "retyped", _TEXT))
    is_wrapped = call.object_arguments() is None and isinstance(function.get("arguments"), Mapping)
    if is_wrapped and out.is_cut_off and call.kind == "function":
        out.lose(path, _CUT_OFF)
        return None
    if is_wrapped:
        out.repairs.append(Repair(path, "I6", "retyped", _NOT_AN_OBJECT))
    return body
