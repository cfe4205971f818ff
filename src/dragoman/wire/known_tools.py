"""Cache of decoded tool definitions: a client sends the same tools with every request.

The key is the serialised JSON, and the cached input must also equal the given one: values that JSON
doesn't have (a `Decimal` in a dict) may serialise alike. Tools are cached when they come for the
second time: those that never come again would only cost time and space. As the same objects are
returned each time, other caches keyed by tools, such as the schema compiler's, also hit.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

from msgspec.json import Decoder, Encoder

from dragoman.model.requests import AnyTool

Tools = tuple[AnyTool, ...]
_MAX_ENTRIES = 256
_MAX_BYTES = 4 * 2**20
_MAX_SEEN = 4096
_encode = Encoder().encode
_decode = Decoder().decode


class KnownTools:
    """The tools of one dialect. The cache is cleared when it exceeds its entry or byte limit."""

    def __init__(
        self,
        read: Callable[[Any], AnyTool],
        read_text: Callable[[bytes], Tools | None] | None = None,
    ) -> None:
        """`read_text` reads plain tools from their text; None if they are not plain."""
        self._read, self._read_text = read, read_text
        self._known: dict[bytes, tuple[Any, Tools]] = {}
        self._texts: dict[bytes, Tools] = {}
        """The same by their text as it came, which need not be parsed."""
        self._seen: set[int] = set()
        """The hashes of tools that came once."""
        self._size = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._known)

    def read(self, wire: list[Any]) -> Tools:
        """Decode a list of tools, or return the cached result."""
        try:
            text = _encode(wire)
            known = self._known.get(text)
            if known is not None and known[0] == wire:
                return known[1]
        except Exception:  # noqa: BLE001 - any problem with it is reported by the decoder
            text = b""
        tools = tuple([self._read(tool) for tool in wire])
        if 0 < len(text) <= _MAX_BYTES // 4:
            hashed = hash(text)
            if hashed in self._seen:
                self._keep(text, tools)
            else:
                self._see(hashed)
        return tools

    def read_text(self, text: bytes) -> Tools | None:
        """Like `read`, for tools in JSON; None if they are no list, or an empty one."""
        found = self._texts.get(text)
        if found is None and self._read_text is not None:
            found = self._read_text(text)
            if found is not None:
                self._note(text, found)
        if found is None:
            wire = _decode(text)
            if type(wire) is not list or not wire:
                return None
            before = len(self._known)
            found = self.read(wire)
            if len(self._known) > before and len(text) <= _MAX_BYTES // 4:
                self._texts[text] = found
        return found

    def _note(self, text: bytes, tools: Tools) -> None:
        """Keep tools that come for the second time."""
        hashed = hash(text)
        if hashed not in self._seen:
            self._see(hashed)
        elif len(text) <= _MAX_BYTES // 4:
            with self._lock:
                if len(self._texts) >= _MAX_ENTRIES or self._size + len(text) > _MAX_BYTES:
                    self._clear()
                self._size += 2 * len(text)
                self._texts[text] = tools

    def _clear(self) -> None:
        self._known.clear()
        self._texts.clear()
        self._size = 0

    def _see(self, hashed: int) -> None:
        if len(self._seen) >= _MAX_SEEN:
            self._seen.clear()
        self._seen.add(hashed)

    def _keep(self, text: bytes, tools: Tools) -> None:
        copy = _decode(text)  # a private copy
        with self._lock:
            if len(self._known) >= _MAX_ENTRIES or self._size + len(text) > _MAX_BYTES:
                self._clear()
            self._size += 0 if text in self._known else 2 * len(text)
            self._known[text] = copy, tools
