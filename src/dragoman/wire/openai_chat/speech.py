"""An assistant's spoken answer: whole in a response, by its id in later requests."""

from __future__ import annotations

from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.media import Audio
from dragoman.model.parts import Origin
from dragoman.wire.openai_chat.exchange import Outgoing
from dragoman.wire.openai_chat.spelling import is_object, laid, left_over, words_of

_CONTENT = frozenset({"flat", "-format"})  # how only a part of the content is spelled


def decode_speech(wire: Any, origin: Origin | None, *, is_response: bool) -> list[AnyPart]:
    """The sound in `audio`; none where it is malformed."""
    if not is_object(wire) or not isinstance(speech_id := wire.get("id"), str):
        return []
    data, transcript = wire.get("data"), wire.get("transcript")
    if not isinstance(data, str):
        return [Audio(file_id=speech_id, origin=origin, extras=left_over(wire, ("id",)))]
    known = ("id", "data", "transcript") if isinstance(transcript, str) else ("id", "data")
    return [
        Audio(
            data=data,
            transcript=transcript if isinstance(transcript, str) else None,
            item_id=speech_id,
            origin=origin,
            # A request needs the id only; where one has it all, it is sent so again.
            extras=left_over(wire, known, () if is_response else ("whole",)),
        )
    ]


def encode_speech(part: Audio, out: Outgoing, *, is_own: bool) -> dict[str, Any] | None:
    """The `audio` of a message; None where it can't be one."""
    if is_own and part.file_id is not None:
        return laid({"id": part.file_id}, part.extras)
    if is_own and part.item_id is not None:
        if not out.is_response and "whole" not in words_of(part.extras):
            return {"id": part.item_id}
        body: dict[str, Any] = {"id": part.item_id, "data": part.data}
        if part.transcript is not None:
            body["transcript"] = part.transcript
        return laid(body, part.extras)
    if is_own or not out.is_response or part.data is None:
        return None
    # The SDKs' type demands all of them.
    return {"id": "", "data": part.data, "expires_at": 0, "transcript": part.transcript or ""}


def decode_speech_delta(wire: dict[str, Any]) -> dict[str, Any]:
    """A piece of `audio`: more of the sound (`data`) or of its words (`text`), its id, and more."""
    growth: dict[str, Any] = {}
    known: set[str] = set()
    for key, name in (("id", "id"), ("data", "data"), ("transcript", "text")):
        if isinstance(wire.get(key), str):
            growth[name] = wire[key]
            known.add(key)
    extras = left_over(wire, known)
    return {**growth, "extras": extras} if extras else growth


def is_speech(part: Audio) -> bool:
    """Whether a sound is what the model says, not a part of the content as Mistral may have it."""
    is_content = part.mime is not None or not _CONTENT.isdisjoint(words_of(part.extras))
    return part.url is None and part.file_id is None and not is_content


def encode_speech_delta(part: Audio) -> dict[str, Any]:
    """A piece of `audio`."""
    fields = {"id": part.item_id, "data": part.data or None, "transcript": part.transcript}
    return laid({key: value for key, value in fields.items() if value is not None}, part.extras)
