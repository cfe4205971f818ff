"""Tools that came before: a client sends the same ones with every request.

They are found by their text, and must equal what stands in the body: values that JSON does not have
(a `Decimal` in a dict that somebody gives us) may be written alike. Being the same objects each
time, they are known to whatever remembers things of tools as well, such as the schema compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

from msgspec.json import Decoder, Encoder

from dragoman.model.requests import AnyTool

Tools = tuple[AnyTool, ...]
_MOST = 256
_MOST_BYTES = 4 * 2**20
_encode = Encoder().encode
_decode = Decoder().decode


class KnownTools:
    """Of one dialect, bounded in number and bytes: where it gets too much, all are forgotten."""

    def __init__(self, read: Callable[[Any], AnyTool]) -> None:
        self._read = read
        self._known: dict[bytes, tuple[Any, Tools]] = {}
        self._size = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._known)

    def read(self, wire: list[Any]) -> Tools:
        """The tools in a list."""
        try:
            text = _encode(wire)
            known = self._known.get(text)
            if known is not None and known[0] == wire:
                return known[1]
        except Exception:  # noqa: BLE001 - whatever is wrong with it, its reader says so
            text = b""
        tools = tuple([self._read(tool) for tool in wire])
        if 0 < len(text) <= _MOST_BYTES // 4:
            self._keep(text, tools)
        return tools

    def _keep(self, text: bytes, tools: Tools) -> None:
        copy = _decode(text)  # nobody else can change it
        with self._lock:
            if len(self._known) >= _MOST or self._size + len(text) > _MOST_BYTES:
                self._known.clear()
                self._size = 0
            self._size += 0 if text in self._known else len(text)
            self._known[text] = copy, tools
