"""What one tree makes of a case, section by section; knows nothing but the package's public names.

It runs as a script in a process of its own: cases come on stdin and observations go to stdout, each
a frame of its length and MessagePack.
"""

from __future__ import annotations

import json
import re
import struct
import sys
from base64 import b64decode
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import msgspec

Case = tuple[str, str, str, bytes, str | None]
"""Its name, kind (request, response or stream), dialect, bytes and path."""
Observation = dict[str, str]
"""What was seen in each section, as text."""

_MADE_ID = re.compile(
    r"(?<![0-9A-Za-z])((?:[a-z]{1,8}[-_])+)?[0-9a-f]{26}(?![0-9a-f])"
    r"|(?<=_dragoman_)[0-9a-f]{16}"  # digests of what has them
)
_ENVELOPE = re.compile(r"ZHJhZ29tYW4x[0-9A-Za-z+/]+=*")
_SEAL = 15
"""Bytes before the content of an envelope; the last of them are its checksum."""
_LENGTH = struct.Struct("<I")
_NOW = 1.79e9
_PIECE = 61
"""Bytes that a stream comes in, so that frames are cut."""


def frames(source: BinaryIO) -> Iterator[Any]:
    """The messages that come."""
    while head := source.read(_LENGTH.size):
        (length,) = _LENGTH.unpack(head)
        yield msgspec.msgpack.decode(source.read(length))


def write(target: BinaryIO, message: Any) -> None:
    """Send a message."""
    raw = msgspec.msgpack.encode(message)
    target.write(_LENGTH.pack(len(raw)) + raw)
    target.flush()


def _without_made_ids(text: str) -> str:
    """The ids that are made while decoding differ at every run: each gets its number instead."""
    known: dict[str, str] = {}
    text = text.encode("utf-8", "backslashreplace").decode()  # half a character may be in it
    text = _ENVELOPE.sub(_opened, text)
    return _MADE_ID.sub(lambda found: known.setdefault(found[0], f"made-{len(known)}"), text)


def _opened(envelope: re.Match[str]) -> str:
    try:
        return f"opened {b64decode(envelope[0])[_SEAL:].decode('utf-8', 'replace')}"
    except ValueError:  # it was cut, or grew
        return envelope[0]


def _plain(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _shown(value: Any) -> str:
    if isinstance(value, bytes):
        text = value.decode("utf-8", "surrogatepass")
    else:
        text = json.dumps(value, sort_keys=True, default=_plain, ensure_ascii=False)
    return _without_made_ids(text)


_KEPT = frozenset({"input", "args", "arguments", "response", "properties"})
"""Fields inside which the order of names is a model's or a tool's."""


def _in_order(raw: bytes, kept: frozenset[str] = _KEPT) -> bytes:
    """A body with its fields by name: their order is nobody's."""
    try:
        body = json.loads(raw)
    except ValueError:
        return raw
    return json.dumps(_ordered(body, kept), ensure_ascii=False).encode("utf-8", "surrogatepass")


def _frame_in_order(line: bytes) -> bytes:
    """A line of a stream with the fields of its JSON by name."""
    head, sign, rest = line.partition(b"{")
    return head + _in_order(sign + rest, _KEPT - {"response"}) if sign else line


def _ordered(value: Any, kept: frozenset[str]) -> Any:
    if isinstance(value, list):
        return [_ordered(each, kept) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: found if key in kept and isinstance(found, dict) else _ordered(found, kept)
        for key, found in sorted(value.items())
    }


def _parted(raw: bytes) -> tuple[Any, list[Any]]:
    """A stored value without its extras, and the extras in order."""
    extras: list[Any] = []

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            if "extras" in value:
                extras.append(value["extras"])
            return {key: without(each) for key, each in value.items() if key != "extras"}
        return [without(each) for each in value] if isinstance(value, list) else value

    return without(json.loads(raw)), extras


class Observer:
    """Observes cases with the `dragoman` that this process imports."""

    def __init__(self) -> None:
        import dragoman

        self._library = dragoman
        self._names = dragoman.dialects()
        self._seen: Observation = {}

    def observed(self, case: Case) -> Observation:
        """Everything that is made of a case."""
        _, kind, dialect, raw, path = case
        self._seen = {}
        getattr(self, f"_{kind}")(dialect, raw, path)
        return self._seen

    def _try(self, section: str, work: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """The result of some work; an error of ours is what was seen."""
        try:
            return work(*given, **named)
        except self._library.DragomanError as error:
            self._seen[section] = _without_made_ids(f"{type(error).__name__}: {error}")
        except Exception as error:  # noqa: BLE001 - both trees may have the same fault
            self._seen[section] = _without_made_ids(f"FOREIGN {type(error).__name__}: {error}")
        return None

    def _value(self, section: str, value: Any) -> None:
        raw = self._try(section, value.to_json)
        if raw is not None:
            body, extras = _parted(raw)
            self._seen[section] = _shown(body)
            self._seen[f"{section} extras"] = _shown(extras)

    def _encoded(self, section: str, work: Callable[..., Any], *given: Any, **named: Any) -> None:
        encoded = self._try(section, work, *given, **named)
        if encoded is None:
            return
        self._seen[f"{section} losses"] = _shown(sorted(str(each) for each in encoded.losses))
        self._seen[f"{section} repairs"] = _shown(sorted(str(each) for each in encoded.repairs))
        self._seen[f"{section} place"] = _shown([encoded.path, dict(encoded.headers)])
        raw = self._try(section, encoded.to_bytes)
        if raw is not None:
            self._seen[section] = _shown(_in_order(raw))

    def _checked(self, section: str, dialect: str, body: Any, path: str | None) -> None:
        found = self._try(section, self._library.dialect(dialect).check, body, path)
        if found is not None:
            self._seen[section] = _shown(
                [[each.rule, str(each.severity), str(each.path), each.message] for each in found]
            )

    # --- the kinds

    def _request(self, dialect: str, raw: bytes, path: str | None) -> None:
        library, speaker = self._library, self._library.dialect(dialect)
        self._checked("check", dialect, raw, path)
        for name in self._names:
            self._encoded(
                f"translate to {name}",
                library.translate, raw, source=dialect, target=name, path=path,
            )  # fmt: skip
        request = self._try("decode", speaker.decode_request, raw, path=path)
        if request is None:
            return
        self._value("decode", request)
        for form, edited in self._edits(request):
            for name in self._names:
                encode = library.dialect(name).encode_request
                self._encoded(f"{form} to {name}", encode, edited)

    def _edits(self, request: Any) -> Iterator[tuple[str, Any]]:
        """The request as it is, and with what a user of the library would change."""
        yield "encode", request
        library = self._library
        forms: dict[str, Callable[[], Any]] = {
            "said": lambda: request.replace(
                messages=(*request.messages, library.Message.user("And then?"))
            ),
            "shorter": lambda: request.replace(messages=request.messages[:-1]),
            "mapped": lambda: request.map_text(str.upper),
            "set": lambda: request.replace(
                model="other", tools=(), sampling=request.sampling.replace(temperature=0.25)
            ),
        }
        for form, edit in forms.items():
            edited = self._try(form, edit)
            if edited is not None:
                yield form, edited

    def _asked(self) -> Any:
        library = self._library
        return library.Request(model="m", messages=(library.Message.user("hi"),))

    def _front(self, name: str) -> Any:
        asked = self._asked()
        return self._library.Front(name, asked, response_id="resp_1", clock=lambda: _NOW)

    def _answered(self, response: Any) -> None:
        library = self._library
        self._value("response", response)
        for name in self._names:
            encode = library.dialect(name).encode_response
            self._encoded(f"encode to {name}", encode, response)
            front = self._front(name)
            self._encoded(f"front {name}", front.response, response)
        message = self._try("message", getattr, response, "message")
        if message is not None:
            later = self._asked().replace(messages=(library.Message.user("hi"), message))
            for name in self._names:
                self._encoded(f"next to {name}", library.dialect(name).encode_request, later)

    def _response(self, dialect: str, raw: bytes, _path: str | None) -> None:
        speaker = self._library.dialect(dialect)
        response = self._try("response", speaker.decode_response, raw)
        if response is not None:
            self._answered(response)

    def _stream(self, dialect: str, raw: bytes, _path: str | None) -> None:
        library = self._library
        decoder = library.dialect(dialect).stream_decoder()
        events: list[Any] = []
        for at in range(0, len(raw), _PIECE):
            events += self._try("events", decoder.feed, raw[at : at + _PIECE]) or ()
        events += self._try("events at the end", decoder.close) or ()
        stored = [msgspec.to_builtins(each, enc_hook=dict) for each in events]
        whole, extras = _parted(json.dumps(stored).encode())
        self._seen["events"] = self._seen.get("events", "") + _shown(whole)
        self._seen["events extras"] = _shown(extras)
        self._seen["is_complete"] = str(decoder.is_complete)
        for name in self._names:
            front = self._front(name)
            self._streamed(f"stream to {name}", library.dialect(name).stream_encoder(), events)
            self._streamed(f"stream front {name}", front.stream(), events)
        response = self._try("response", getattr, decoder, "response")
        if response is not None:
            self._answered(response)

    def _streamed(self, section: str, encoder: Any, events: list[Any]) -> None:
        written = b""
        for event in events:
            written += self._try(section, encoder.feed, event) or b""
        written += self._try(section, encoder.close) or b""
        lines = [_frame_in_order(line) for line in written.split(b"\n")]
        self._seen[f"{section} bytes"] = _shown(b"\n".join(lines))
        self._seen[f"{section} losses"] = _shown([str(each) for each in encoder.losses])
        self._seen[f"{section} repairs"] = _shown([str(each) for each in encoder.repairs])


def main() -> None:
    """Observe what comes on stdin."""
    output, sys.stdout = sys.stdout.buffer, sys.stderr
    observer = Observer()
    for case in frames(sys.stdin.buffer):
        write(output, observer.observed(tuple(case)))


if __name__ == "__main__":
    main()
