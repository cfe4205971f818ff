"""Envelopes: another provider's opaque state, in a form that a front's own field can carry.

A client sends signatures and sealed reasoning back as it got them, without looking inside. So
what belongs to the model behind a gateway rides there, as base64: nine bytes that say whose it is
and in which version, a checksum, and compact JSON. Whatever can't be read as that is what it
seems to be: a signature of the dialect it came in.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from functools import cache
from hashlib import blake2b

import msgspec

from dragoman.errors import InvalidInputError
from dragoman.model.content import AnyPart
from dragoman.model.frozen import frozen_hook
from dragoman.model.jsontext import dumps, loads_as
from dragoman.model.media import Media
from dragoman.model.parts import Origin, Part, Refusal, Text, Thinking
from dragoman.model.tools import ToolCall
from dragoman.wire.overlay import are_sound

_MAGIC = b"dragoman1"  # a multiple of three bytes, so that every envelope begins alike
_CHECK = 6
PREFIX = b64encode(_MAGIC).decode("ascii")
MAX_LENGTH = 16 * 1024 * 1024
"""The longest envelope, in characters: far more than any provider's state."""
_STANDARD = str.maketrans("-_", "+/")  # google-genai writes the other alphabet


class Seal(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """A part's opaque state, on its way through a client."""

    origin: Origin
    part: AnyPart
    """The part; without what the client is shown, where there is an `owner`."""
    owner: str | None = None
    """The fingerprint of what the client is shown; None where the part is here whole."""
    at: tuple[int, int] | None = None
    """In fronts that keep no order: how many characters of text and how many calls go before."""
    length: int = 0
    """How many characters of text the client is shown: it may join or cut them."""

    @property
    def is_sound(self) -> bool:
        """Whether it is as we make them: clients can write envelopes too."""
        is_shown = self.owner is None or self.owner.startswith(f"{type(self.part).__name__}:")
        return is_shown and are_sound(self.part.extras, self.origin.dialect)

    def __repr__(self) -> str:
        return f"Seal({self.part!r})"


def wrap(seal: Seal) -> str | None:
    """The envelope; None where the state is too large for one, or can't be written as JSON.

    >>> from dragoman.model.parts import Thinking
    >>> made = wrap(Seal(Origin(dialect="gemini"), Thinking(signature="c2ln")))
    >>> made.startswith(PREFIX), unwrap(made).part.signature
    (True, 'c2ln')
    """
    try:
        written = dumps(seal)
    except InvalidInputError:
        return None
    made = b64encode(_MAGIC + _checksum(written) + written).decode("ascii")
    return made if len(made) <= MAX_LENGTH else None


def unwrap(text: str | None) -> Seal | None:
    """What is in an envelope; None where the text is none, or not as we write them."""
    if text is None or not text.startswith(PREFIX) or len(text) > MAX_LENGTH:
        return None
    standard = text.translate(_STANDARD).rstrip("=")
    try:
        raw = b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except ValueError:
        return None
    start = len(_MAGIC) + _CHECK
    written = raw[start:]
    if raw[len(_MAGIC) : start] != _checksum(written):
        return None
    try:
        seal = loads_as(written, _decoder())
    except InvalidInputError:
        return None
    return seal if seal.is_sound else None


def is_sealed(part: Part) -> bool:
    """Whether a part's own state is an envelope, by its looks."""
    if part.signature is not None and part.signature.startswith(PREFIX):
        return True
    return isinstance(part, Thinking) and part.data is not None and part.data.startswith(PREFIX)


def fingerprint(part: Part) -> str:
    """What tells whether a part that the client sent is the one it was shown.

    A call is known by its id, since clients write arguments anew; anything else by its content.
    """
    said: str | None = ""
    if isinstance(part, (Text, Thinking, Refusal)):
        said = part.text
    elif isinstance(part, ToolCall):
        said = part.id
    elif isinstance(part, Media):
        said = part.data or part.url or part.file_id
    digest = blake2b((said or "").encode("utf-8", "surrogatepass"), digest_size=8)
    return f"{type(part).__name__}:{digest.hexdigest()}"


def _checksum(written: bytes) -> bytes:
    return blake2b(written, digest_size=_CHECK).digest()


@cache
def _decoder() -> msgspec.json.Decoder[Seal]:
    return msgspec.json.Decoder(Seal, dec_hook=frozen_hook)
