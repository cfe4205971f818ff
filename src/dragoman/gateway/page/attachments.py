"""Message attachments: images, audio, video and files, with size limits."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping
from typing import Any, NamedTuple

from dragoman.errors import InvalidRequest
from dragoman.gateway.page.calls import field
from dragoman.interop.text_files import attached_names, named_text
from dragoman.model.content import AnyPart
from dragoman.model.media import Audio, File, Image, Media, Video, mime_of, sniff
from dragoman.model.messages import Message
from dragoman.model.parts import Text

MAX_FILES = 20
MAX_BYTES = 50_000_000
_MAX_NAME = 200
_KINDS: dict[str, type[Media]] = {"image": Image, "audio": Audio, "video": Video}
_TOO_MUCH = f"a message can have up to {MAX_FILES} attachments and {MAX_BYTES:,} bytes in total"
_NO_PART = "`kept.parts` must be indexes of parts of the message"
_INVALID = "an attachment is invalid: it needs a name and its content in base64"


class Attached(NamedTuple):
    """The parts of the attachments, and the names of those that are sent as text, by index."""

    parts: list[AnyPart]
    names: dict[str, str]

    def joined(self, others: Attached) -> Attached:
        """Returns these and others after them."""
        shifted = {str(int(place) + len(self.parts)): name for place, name in others.names.items()}
        return Attached([*self.parts, *others.parts], self.names | shifted)


def attached(body: Mapping[str, Any]) -> Attached:
    """Decodes the attachments of a request."""
    given = field(body, "attachments", list, [])
    if len(given) > MAX_FILES:
        raise InvalidRequest(_TOO_MUCH, status=413)
    left = MAX_BYTES
    made = Attached([], {})
    for each in given:
        content, name = _read(each)
        left -= len(content)
        if left < 0:
            raise InvalidRequest(_TOO_MUCH, status=413)
        text = _as_text(content)
        if text is not None:
            made.names[str(len(made.parts))] = name
            # As text, which every model accepts; only some accept files.
            made.parts.append(Text(named_text(name, text)))
        else:
            made.parts.append(_media(content, name))
    return made


def _read(each: Any) -> tuple[bytes, str]:
    if isinstance(each, dict):
        data = each.get("data")
        name = each.get("name") or "file"
        if isinstance(data, str) and isinstance(name, str) and data:
            try:
                return b64decode(data, validate=True), _tidy(name)
            except (binascii.Error, ValueError):
                pass
    raise InvalidRequest(_INVALID, status=400)


def _tidy(name: str) -> str:
    """Removes the path and control characters from a file name."""
    last = name.replace("\\", "/").rpartition("/")[2]
    kept = "".join(c if c.isprintable() else " " for c in last).strip()
    return kept[-_MAX_NAME:] or "file"


def _as_text(content: bytes) -> str | None:
    if sniff(content[:64]) is not None or b"\x00" in content:
        return None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def _media(content: bytes, name: str) -> AnyPart:
    """Builds a media part; detects its type by content or name, not by the browser's claim."""
    mime = mime_of(content, name)
    kind = _KINDS.get((mime or "").partition("/")[0], File)
    made: AnyPart = kind.from_bytes(content, mime, name=name)  # type: ignore[assignment]  # one of AnyPart
    return made


# --- reading stored attachments


def attachments_of(message: Message, places: list[Any]) -> Attached:
    """Returns some parts of a stored message by their indexes, with the names of text files."""
    names, made = attached_names(message), Attached([], {})
    for place in places:
        if type(place) is not int or not 0 <= place < len(message.parts):
            raise InvalidRequest(_NO_PART, status=400)
        if (name := names.get(str(place))) is not None:
            made.names[str(len(made.parts))] = name
        made.parts.append(message.parts[place])
    return made
