"""Whether and which tools must be called, also in the old form (`function_call`)."""

from __future__ import annotations

from typing import Any, Literal

from dragoman.model.frozen import EMPTY
from dragoman.model.requests import AnyTool
from dragoman.model.tools import ToolChoice, ToolDefinition
from dragoman.wire import overlay
from dragoman.wire.openai_chat.spelling import (
    NAME,
    extras_of,
    is_list,
    is_object,
    laid,
    words_of,
)
from dragoman.wire.target import Target

_Mode = Literal["auto", "none", "required", "named", "allowed"]
# "any" is Mistral's word for "required".
_MODES: dict[str, _Mode] = {
    "auto": "auto", "none": "none", "required": "required", "any": "required"
}  # fmt: skip


def decode_choice(wire: dict[str, Any], used: set[str]) -> ToolChoice | None:
    """The choice in a request; the fields it takes are added to `used`."""
    parallel = wire.get("parallel_tool_calls")
    if isinstance(parallel, bool):
        used.add("parallel_tool_calls")
    else:
        parallel = None
    decoders = {"tool_choice": _decode_tool_choice, "function_call": _decode_function_call}
    for key, decode in decoders.items():
        choice = decode(wire.get(key))
        if choice is not None:
            used.add(key)
            return choice if parallel is None else choice.replace(parallel=parallel)
    return None if parallel is None else ToolChoice(parallel=parallel)


def encode_choice(
    choice: ToolChoice, tools: tuple[AnyTool, ...], body: dict[str, Any], target: Target
) -> None:
    """Write a choice; `auto` happens anyway, so it is written only where the wire had it."""
    if choice.parallel is not None:
        body["parallel_tool_calls"] = choice.parallel
    words = words_of(choice.extras)
    if "function_call" in words and choice.mode in ("auto", "none", "named"):
        named = {"name": choice.names[0]} if choice.mode == "named" else choice.mode
        body["function_call"] = laid(named, choice.extras) if is_object(named) else named
        return
    if choice.mode == "named":
        body["tool_choice"] = _named(choice.names[0], tools, words)
    elif choice.mode == "allowed":
        body["tool_choice"] = _allowed(choice.names, tools, is_required=choice.is_required)
    elif choice.mode != "auto" or "auto" in words:
        body["tool_choice"] = _word(choice.mode, words, target)
    mine, written = overlay.overlay(choice.extras, NAME).get("tool_choice"), body.get("tool_choice")
    if is_object(mine) and is_object(written):
        body["tool_choice"] = laid(written, {NAME: mine})


def _word(mode: str, words: Any, target: Target) -> str:
    if mode != "required":
        return mode
    return target.required_word or ("any" if "any" in words else mode)


def _decode_tool_choice(wire: Any) -> ToolChoice | None:
    if isinstance(wire, str):
        if wire not in _MODES:
            return None
        words = (wire,) if wire in ("auto", "any") else ()
        return ToolChoice(_MODES[wire], extras=extras_of({}, words))
    kind = wire.get("type") if is_object(wire) else None
    inner = wire.get(kind) if is_object(wire) and isinstance(kind, str) else None
    if kind == "allowed_tools" and is_object(inner):
        names = _names(inner.get("tools"))
        if names is not None:
            must = inner.get("mode") == "required"
            extras = _extras(wire, _allowed(names, (), is_required=must))
            return ToolChoice("allowed", names, extras=extras, is_required=must)
    elif kind in ("function", "custom") and is_object(inner):
        name = inner.get("name")
        if isinstance(name, str):
            rebuilt = {"type": kind, kind: {"name": name}}
            return ToolChoice("named", (name,), extras=_extras(wire, rebuilt))
    return None


def _extras(wire: dict[str, Any], rebuilt: dict[str, Any]) -> Any:
    left = overlay.difference({"tool_choice": wire}, {"tool_choice": rebuilt}, NAME)
    words = (rebuilt["type"],) if "function" in rebuilt or "custom" in rebuilt else ()
    return {**left, **extras_of(left.get(NAME, EMPTY), words)}


def _names(tools: Any) -> tuple[str, ...] | None:
    """The names of allowed tools; None where one has none."""
    names: list[str] = []
    for tool in tools if is_list(tools) else (None,):
        kind = tool.get("type") if is_object(tool) else None
        inner = tool.get(kind) if is_object(tool) and isinstance(kind, str) else None
        name = inner.get("name") if is_object(inner) else None
        if not isinstance(name, str):
            return None
        names.append(name)
    return tuple(names)


def _named(name: str, tools: tuple[AnyTool, ...], words: Any) -> dict[str, Any]:
    kind = next((word for word in ("function", "custom") if word in words), None)
    kind = kind or _kind_of(name, tools)
    return {"type": kind, kind: {"name": name}}


def _allowed(
    names: tuple[str, ...], tools: tuple[AnyTool, ...], *, is_required: bool
) -> dict[str, Any]:
    listed = [_named(name, tools, ()) for name in names]
    mode = "required" if is_required else "auto"
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": listed}}


def _kind_of(name: str, tools: tuple[AnyTool, ...]) -> str:
    for tool in tools:
        if isinstance(tool, ToolDefinition) and tool.name == name:
            return tool.kind
    return "function"


def _decode_function_call(wire: Any) -> ToolChoice | None:
    if isinstance(wire, str) and wire in ("auto", "none"):
        mode: _Mode = "auto" if wire == "auto" else "none"
        return ToolChoice(mode, extras=extras_of({}, ("function_call",)))
    name = wire.get("name") if is_object(wire) else None
    if not is_object(wire) or not isinstance(name, str):
        return None
    left = {key: value for key, value in wire.items() if key != "name"}
    return ToolChoice("named", (name,), extras=extras_of(left, ("function_call",)))
