"""Why the model stopped: there is no word for calls, and none for most other reasons (W104)."""

from __future__ import annotations

from dragoman.model.usage import FinishReason
from dragoman.wire.ollama.exchange import Outgoing

_STOP, _LENGTH, _CALLS = FinishReason.STOP, FinishReason.LENGTH, FinishReason.TOOL_CALLS
_REASONS = {"stop": _STOP, "length": _LENGTH}
_WORDS = {
    _STOP: "stop",
    _CALLS: "stop",
    _LENGTH: "length",
    FinishReason.CONTEXT_FULL: "length",
}


def decode_finish(raw: object, *, is_done: bool, has_calls: bool) -> FinishReason | None:
    """The reason behind a `done_reason`; older servers give none. `load` is no answer at all."""
    if not isinstance(raw, str) or not raw:
        raw = "stop" if is_done else ""
    found = _REASONS.get(raw, FinishReason.OTHER) if raw else None
    return _CALLS if found is _STOP and has_calls else found


def encode_finish(
    finish: FinishReason | None, raw: str | None, out: Outgoing, path: str, *, is_ours: bool
) -> str | None:
    """The `done_reason`: the wire's own word where it still holds."""
    if is_ours and raw is not None:
        read = decode_finish(raw, is_done=True, has_calls=finish is _CALLS)
        if read is finish:
            return raw
    if finish is None:
        return None if is_ours else "stop"
    if finish not in _WORDS:
        out.lose(f"{path}.finish", "this reason has no word here")
    return _WORDS.get(finish, "stop")
