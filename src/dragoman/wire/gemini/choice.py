"""Which tools the model may or must call: `toolConfig`."""

from __future__ import annotations

from typing import Any

from dragoman.model.tools import ToolChoice
from dragoman.wire.gemini.trace import Trace, is_array, is_object, snake_names
from dragoman.wire.gemini.writing import Writing

_NAMES = snake_names("functionCallingConfig")
_CALLING_NAMES = snake_names("allowedFunctionNames")
TOOL_CONFIG = {
    "functionCallingConfig": {"mode": "tool_choice", "allowedFunctionNames": "tool_choice"}
}
"""By the wire's field: the setting."""
_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY", "named": "ANY", "allowed": "ANY"}


def decode_choice(wire: Any, trace: Trace) -> ToolChoice | None:
    """The choice in a `toolConfig`; what else it says goes to the request's trace."""
    if not is_object(wire):
        trace.fields["toolConfig"] = wire
        return None
    config = trace.camel(wire, _NAMES, "toolConfig.")
    calling = config.get("functionCallingConfig")
    choice = None
    if is_object(calling):
        inside = "toolConfig.functionCallingConfig."
        calling = trace.camel(calling, _CALLING_NAMES, inside)
        config = {**config, "functionCallingConfig": calling}
        choice = _decode_calling(calling)
    trace.compare(config, encode_choice(choice), "toolConfig")
    return choice


def encode_choice(choice: ToolChoice | None, writing: Writing | None = None) -> dict[str, Any]:
    """The `toolConfig` for a choice; empty where there is none (W99)."""
    if choice is None:
        return {}
    if writing is not None and choice.parallel is False:
        writing.lose("tool_choice.parallel", "parallel calls can't be turned off here")
    # Names go with ANY or VALIDATED only; the latter lets the model choose.
    is_free = choice.mode == "allowed" and not choice.is_required
    calling: dict[str, Any] = {"mode": "VALIDATED" if is_free else _MODES[choice.mode]}
    if choice.mode in {"named", "allowed"}:
        calling["allowedFunctionNames"] = list(choice.names)
    return {"functionCallingConfig": calling}


def _decode_calling(wire: dict[str, Any]) -> ToolChoice | None:
    mode, listed = wire.get("mode"), wire.get("allowedFunctionNames")
    names = tuple(listed) if is_array(listed) and all(type(n) is str for n in listed) else ()
    if type(mode) is not str:
        return None
    if mode == "NONE":
        return ToolChoice("none")
    if mode == "ANY" and len(names) == 1:
        return ToolChoice("named", names)
    if mode in {"ANY", "AUTO", "VALIDATED"} and names:
        return ToolChoice("allowed", names, is_required=mode == "ANY")
    if mode == "ANY":
        return ToolChoice("required")
    # VALIDATED lets the model choose, and holds it to the schemas if it calls.
    return ToolChoice("auto") if mode in {"AUTO", "VALIDATED"} else None
