"""What the provider holds of a conversation, and what another one can't know of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dragoman.model.messages import Message
from dragoman.model.parts import Opaque
from dragoman.model.requests import Request, State
from dragoman.wire.losses import Loss, Note
from dragoman.wire.target import Target

_STORE = "store"
_HELD_ELSEWHERE = "another provider holds it: send the whole conversation"
_NOT_STORED = "this dialect can't be told whether to keep the answer"
_STANDS_FOR_MORE = frozenset({"item_reference", "compaction"})


def with_known_state(request: Request, target: Target, notes: list[Note]) -> Request:
    """The request with the state that the target can know."""
    state = request.state
    if state is None:
        return request
    foreign = [
        name
        for name in State.__struct_fields__
        if getattr(state, name) is not None and name not in target.state_fields
    ]
    if not foreign:
        return request
    for name in foreign:
        reason = _NOT_STORED if name == _STORE else _HELD_ELSEWHERE
        notes.append(Loss(f"state.{name}", reason))
    left = state.replace(**dict.fromkeys(foreign))
    return request.replace(state=None if left == State() else left)


def has_hidden_context(request: Request, messages: Iterable[Message], target: Target) -> bool:
    """Whether the target holds calls or results that the request does not show."""
    state = request.state
    if state is not None and any(
        getattr(state, name) for name in target.state_fields if name != _STORE
    ):
        return True
    return any(_stands_for_more(part, target) for message in messages for part in message.parts)


def _stands_for_more(part: object, target: Target) -> bool:
    """Whether a part is a reference, typed or not, or a summary of what came before."""
    if not isinstance(part, Opaque) or part.dialect != target.dialect:
        return False
    payload = part.payload
    if not isinstance(payload, Mapping):
        return False
    kind = payload.get("type")
    return payload.keys() == {"id"} if kind is None else kind in _STANDS_FOR_MORE
