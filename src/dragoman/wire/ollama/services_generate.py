"""Ollama's `/api/generate`: a prompt instead of messages, and its own response fields."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from dragoman.model.events import OpaqueEvent, PartDelta
from dragoman.model.frozen import freeze_mapping
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.wire.dialect import Body, Dialect
from dragoman.wire.encoded import Encoded
from dragoman.wire.front import Front, FrontForm
from dragoman.wire.json_values import is_list, parsed
from dragoman.wire.losses import Loss
from dragoman.wire.ollama.dialect import NAME
from dragoman.wire.ollama.response_front import FRONT_FORM, FrontStreamEncoder
from dragoman.wire.ollama.response_front import complete as complete_chat
from dragoman.wire.ollama.services_context import Turns, decode_context, encode_context
from dragoman.wire.overlay import fields_of
from dragoman.wire.prompt_front import PromptFront
from dragoman.wire.services import optional, refuse
from dragoman.wire.times import encode_time

OWN = "ollama-generate"
"""The extras key for fields that only `/api/generate` has; every target reports them as lost."""
_MESSAGE = ("prompt", "system", "images")
_ONLY_HERE = frozenset({"suffix", "template", "raw", "context", "width", "height", "steps",
                        "messages", "tools"})  # fmt: skip
_SAID = frozenset({"role", "content", "thinking", "tool_calls", "images"})
_TEXT_ONLY = "not supported by /api/generate, which returns text only"


def decode_request(speaker: Dialect, body: Body) -> Request:
    """Decode a request, with the prompt as a user message.

    A `context` made by us becomes the earlier messages. Fields without a chat equivalent (a
    suffix, a custom template, a context of Ollama's tokens) are kept in the extras.
    """
    wire = parsed(body, NAME)
    special = {key: wire[key] for key in wire if key in _ONLY_HERE and wire[key]}
    earlier = decode_context(wire.get("context"))
    if earlier is not None:
        del special["context"]
    rest = {key: wire[key] for key in wire if key not in _ONLY_HERE and key not in _MESSAGE}
    request = speaker.decode_request({**rest, "messages": _messages(wire, earlier or [])})
    if not special:
        return request
    extras = {**request.extras, OWN: special}
    return request.replace_unchecked(extras=freeze_mapping(extras, "the wire"))


def _messages(wire: Mapping[str, Any], earlier: Turns) -> list[dict[str, Any]]:
    prompt, system = (optional(wire, key, str, NAME) for key in ("prompt", "system"))
    images = wire.get("images")
    if images is not None and not (is_list(images) and all(type(one) is str for one in images)):
        refuse("a list of strings", "$.images", NAME)
    messages: list[dict[str, Any]] = []
    if system:
        messages.append({"role": "system", "content": system})
        earlier = [turn for turn in earlier if turn[0] != "system"]
    messages += [{"role": role, "content": text} for role, text in earlier]
    if prompt or images:
        pictures = {"images": images} if images else {}
        messages.append({"role": "user", "content": prompt or "", **pictures})
    return messages


def generate_fields(message: Mapping[str, Any], lose: Callable[[Loss], None]) -> dict[str, Any]:
    """The `/api/generate` fields for a message of `/api/chat`."""
    fields: dict[str, Any] = {"response": message.get("content") or ""}
    for key in ("thinking", "tool_calls"):
        if message.get(key):
            fields[key] = message[key]
    images = message.get("images")
    if is_list(images) and images:
        fields["image"] = images[0]
        for _ in images[1:]:
            lose(Loss("choices[0].message.parts", "only one image is supported"))
    if not _SAID.issuperset(message):
        lose(Loss("choices[0].message.extras", _TEXT_ONLY))
    return fields


def complete(encoded: Encoded, response: Response, front: Front) -> None:
    """Convert the completed response of `/api/chat` to that of `/api/generate`."""
    complete_chat(encoded, response, front)
    lost: list[Loss] = []
    body: dict[str, Any] = {}
    for key, value in encoded.body.items():
        body |= generate_fields(value, lost.append) if key == "message" else {key: value}
    encoded.body = {**_context(front, body["response"]), **body}
    encoded.losses += tuple(dict.fromkeys(lost))


def _context(front: Front, answer: str) -> dict[str, Any]:
    """The `context` for continuing the conversation; none for a raw prompt."""
    request = front.request
    if fields_of(request.extras, OWN).get("raw"):
        return {}
    turns = [(message.role.value, message.text) for message in request.messages]
    numbers = encode_context([*turns, ("assistant", answer)])
    return {"context": numbers} if numbers else {}


class GenerateStreamEncoder(FrontStreamEncoder):
    """Writes a stream of `/api/generate`."""

    def __init__(self, front: Front) -> None:
        super().__init__(front)
        self._text_pieces: list[str] = []

    def _message_fields(self, message: dict[str, Any]) -> dict[str, Any]:
        fields = generate_fields(message, lambda loss: self._lose(loss.path, loss.reason))
        self._text_pieces.append(fields["response"])
        return fields

    def _part_flow(self, event: PartDelta) -> None:
        """None, since every piece must be kept for the context."""

    def _opaque_event(self, event: OpaqueEvent) -> bytes:  # noqa: ARG002 - dropped whatever it is
        """Drop an unknown event: it belongs to `/api/chat`."""
        self._lose("events", "an unsupported event is left out")
        return b""

    def _last(self) -> dict[str, Any]:
        return {**super()._last(), **_context(self._front, "".join(self._text_pieces))}


_FORM = FRONT_FORM._replace(complete=complete, stream_encoder=GenerateStreamEncoder)


class GenerateFront(PromptFront):
    """Encodes the responses to a request of `/api/generate`."""

    def __init__(
        self,
        speaker: Dialect,
        body: Body,
        *,
        path: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Decode the request body."""
        wire = parsed(body, NAME)
        self.is_load = not (wire.get("prompt") or wire.get("images"))
        """Whether there is nothing to generate: the client only wants to load the model."""
        self._is_unload = wire.get("keep_alive") in (0, "0", "0s")
        super().__init__(speaker, [decode_request(speaker, wire)], path=path, clock=clock)

    def _form(self) -> FrontForm:
        return _FORM

    def loaded(self) -> Encoded:
        """The response to a request that only loads or unloads the model."""
        body = {
            "model": self.request.model or "",
            "created_at": encode_time(self.began),
            "response": "",
            "done": True,
            "done_reason": "unload" if self._is_unload else "load",
        }
        return Encoded(body, headers={"content-type": "application/json"})


PROMPT_FRONT = GenerateFront
