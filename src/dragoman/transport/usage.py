"""Chat tells what a streamed answer cost only if it is asked to (W9)."""

from __future__ import annotations

from dragoman.model.frozen import EMPTY
from dragoman.model.requests import Request
from dragoman.wire.target import Target

_CHAT, _OPTIONS = "openai-chat", "stream_options"


def asking_for_usage(request: Request, target: Target) -> Request:
    """The request that asks for it, unless it says something about that, or the host refuses."""
    own = request.extras.get(_CHAT, EMPTY)
    if target.dialect != _CHAT or _OPTIONS in own:
        return request
    if not target.admits_field(_OPTIONS, target.request_fields):
        return request
    extras = {**own, _OPTIONS: {"include_usage": True}}
    return request.replace(extras={**request.extras, _CHAT: extras})
