"""`Encoded`: the result of an encoder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from dragoman._reveal import is_revealed
from dragoman.errors import LossError
from dragoman.model.frozen import EMPTY
from dragoman.model.jsontext import dumps, loads
from dragoman.wire.context import NOTHING, Context
from dragoman.wire.losses import Loss, Repair


class Encoded(Struct, eq=False):
    """A body ready to send, with its path and headers, and what was lost or repaired in it.

    Created with the body, the rest by name: `Encoded({"model": "m"}, path="/v1/messages")`.
    """

    _body: dict[str, Any] | None
    """None as long as only `_raw` is known."""
    path: str | None = None
    headers: Mapping[str, str] = EMPTY
    losses: tuple[Loss, ...] = ()
    """What the caller wrote that is not in the body."""
    repairs: tuple[Repair, ...] = ()
    """What was added, dropped, renamed, moved, merged or retyped for the target."""
    context: Context = NOTHING
    """What to undo in the response: pass it to `decode_response`."""
    _raw: bytes | None = None
    """Serialised JSON, parsed only if `body` is accessed."""

    @property
    def is_raw(self) -> bool:
        """Whether the body is unparsed JSON bytes: it came through the fast lane."""
        return self._raw is not None

    @property
    def body(self) -> dict[str, Any]:
        """The JSON body to send. It may be modified in place."""
        body = self._body
        if body is None:
            body = self._body = loads(self._raw or b"{}")
            self._raw = None
        return body

    @body.setter
    def body(self, body: dict[str, Any]) -> None:
        self._body, self._raw = body, None

    def to_bytes(self) -> bytes:
        """The body as JSON."""
        return dumps(self._body) if self._raw is None else self._raw

    def serialise(self) -> None:
        """Write the body as JSON now, so that `to_bytes` costs nothing."""
        self._raw, self._body = self.to_bytes(), None

    def or_raise(self) -> Encoded:
        """Return self, or raise `LossError` if anything was lost."""
        if self.losses:
            msg = f"{len(self.losses)} things can't be expressed in the target dialect; see losses"
            raise LossError(msg, losses=self.losses)
        return self

    def __repr__(self) -> str:
        # A repr must not replace the raw bytes with a parsed body, as accessing `body` would.
        body = loads(self._raw or b"{}") if self._body is None else self._body
        if is_revealed():
            return f"Encoded({body!r}, losses={self.losses!r}, repairs={self.repairs!r})"
        counts = f"{len(self.losses)} losses, {len(self.repairs)} repairs"
        return f"Encoded({len(body)} fields, {counts})"
