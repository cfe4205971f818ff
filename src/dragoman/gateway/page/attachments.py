"""What goes along with a message: pictures, sound, film and files, within limits."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping
from typing import Any, NamedTuple

from dragoman.errors import InvalidRequest
from dragoman.gateway.page.calls import field
from dragoman.model.content import AnyPart
from dragoman.model.media import Audio, File, Image, Media, Video, mime_of, sniff
from dragoman.model.messages import Message
from dragoman.model.parts import Text

KEY = "dragoman.page"
"""The entry in the metadata of messages that were written on the page."""
ATTACHED = "attached"
MOST = 20
MOST_BYTES = 50_000_000
_LONGEST_NAME = 200
_KINDS: dict[str, type[Media]] = {"image": Image, "audio": Audio, "video": Video}
_TOO_MUCH = f"no more than {MOST} attachments of {MOST_BYTES:,} bytes in all can be sent"
_BROKEN = "an attachment is broken: it has a name and its content in base64"


class Attached(NamedTuple):
    """Parts of a message, and which of them are files that go as text, by their names."""

    parts: list[AnyPart]
    names: dict[str, str]


def attached(body: Mapping[str, Any]) -> Attached:
    """What a request attaches."""
    given = field(body, "attachments", list, [])
    if len(given) > MOST:
        raise InvalidRequest(_TOO_MUCH, status=413)
    left = MOST_BYTES
    made = Attached([], {})
    for each in given:
        content, name = _read(each)
        left -= len(content)
        if left < 0:
            raise InvalidRequest(_TOO_MUCH, status=413)
        text = _as_text(content)
        if text is not None:
            made.names[str(len(made.parts))] = name
            # As text, which every model takes; as a file only some would.
            made.parts.append(Text(f"{name}:\n\n{text}"))
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
    raise InvalidRequest(_BROKEN, status=400)


def _tidy(name: str) -> str:
    """A file's name without a path, and without what breaks lines."""
    last = name.replace("\\", "/").rpartition("/")[2]
    kept = "".join(c if c.isprintable() else " " for c in last).strip()
    return kept[-_LONGEST_NAME:] or "file"


def _as_text(content: bytes) -> str | None:
    if sniff(content[:64]) is not None or b"\x00" in content:
        return None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def _media(content: bytes, name: str) -> AnyPart:
    """A file as what it is: its first bytes tell, or its name; never what the browser says."""
    mime = mime_of(content, name)
    kind = _KINDS.get((mime or "").partition("/")[0], File)
    made: AnyPart = kind.from_bytes(content, mime, name=name)  # type: ignore[assignment]  # one of AnyPart
    return made


# --- read again


def attached_names(message: Message) -> dict[str, str]:
    """By the place of a text part: the file that it was. Anybody may have written anything."""
    found = message.metadata.get(KEY) if message.metadata else None
    names = found.get(ATTACHED) if isinstance(found, Mapping) else None
    if not isinstance(names, Mapping):
        return {}
    return {
        place: name
        for place, name in names.items()
        if isinstance(place, str) and isinstance(name, str)
    }


def content_of(text: str, name: str) -> str:
    """A file's own text, without the line that names it to the model."""
    return text.removeprefix(f"{name}:\n\n")
