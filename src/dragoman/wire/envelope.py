"""Envelopes: another provider's opaque state, in a form that a front's own field can carry.

A client sends signatures and sealed reasoning back as it got them, without looking inside. So
what belongs to the model behind a gateway rides there, as base64: nine bytes that say whose it is
and in which version, a checksum, and compact JSON. Whatever can't be read as that is what it
seems to be: a signature of the dialect it came in.

Anybody can write an envelope. So what is in one is read as hostile input; and whoever has a key,
such as a gateway, signs envelopes and takes back only its own (`signed_with`).
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from hashlib import blake2b
from hmac import compare_digest

import msgspec

from dragoman.errors import InvalidInputError
from dragoman.model.content import AnyPart
from dragoman.model.frozen import frozen_hook
from dragoman.model.jsontext import dumps, loads_as
from dragoman.model.media import Media
from dragoman.model.parts import Origin, Part, Refusal, Text, Thinking
from dragoman.model.tools import ToolCall
from dragoman.model.value import expect
from dragoman.wire.overlay import are_sound

_MAGIC = b"dragoman1"  # a multiple of three bytes, so that every envelope begins alike
_CHECK = 6
_SIGNED = b"signed"  # in the place of a checksum, and a signature behind it
_SIGNATURE = 24
_LEAST_KEY, _MOST_KEY = 16, 64
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
    shown: str | None = None
    """The id of what the client is shown in the place of a provider's call (`shown_calls`)."""

    @property
    def is_sound(self) -> bool:
        """Whether it is as we make them: clients can write envelopes too."""
        is_shown = self.owner is None or self.owner.startswith(f"{type(self.part).__name__}:")
        return is_shown and are_sound(self.part.extras, self.origin.dialect)

    def __repr__(self) -> str:
        return f"Seal({self.part!r})"


_keys: ContextVar[tuple[bytes, ...]] = ContextVar("keys of envelopes", default=())


@contextmanager
def signed_with(key: bytes, *earlier: bytes) -> Generator[None]:
    """Sign all envelopes that are made here, and refuse all that none of the keys has signed.

    For as long as requests are read and answers written, streams included. What was signed with an
    `earlier` key is still taken.

    >>> from dragoman.model.parts import Thinking
    >>> seal = Seal(Origin(dialect="gemini"), Thinking(signature="c2ln"))
    >>> with signed_with(b"a key of sixteen bytes or more"):
    ...     made = wrap(seal)
    ...     unwrap(made).part.signature
    'c2ln'
    """
    for each in (key, *earlier):
        expect(each, bytes, "a key for envelopes")
        if not _LEAST_KEY <= len(each) <= _MOST_KEY:
            msg = f"a key for envelopes has {_LEAST_KEY} to {_MOST_KEY} bytes"
            raise InvalidInputError(msg)
    token = _keys.set((key, *earlier))
    try:
        yield
    finally:
        _keys.reset(token)


def is_signing() -> bool:
    """Whether envelopes are signed here, and those that are not are refused."""
    return bool(_keys.get())


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
    keys = _keys.get()
    head = _SIGNED + _signature(written, keys[0]) if keys else _checksum(written)
    made = b64encode(_MAGIC + head + written).decode("ascii")
    return made if len(made) <= MAX_LENGTH else None


def unwrap(text: str | None) -> Seal | None:
    """What is in an envelope; None where the text is none, or not as we write them.

    Where there are keys, one that none of them has signed raises.
    """
    if text is None or not text.startswith(PREFIX) or len(text) > MAX_LENGTH:
        return None
    standard = text.translate(_STANDARD).rstrip("=")
    try:
        raw = b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except ValueError:
        return None
    written = _checked(raw)
    if written is None:
        return None
    try:
        seal = loads_as(written, _decoder())
    except InvalidInputError:
        return None
    return seal if seal.is_sound else None


def _checked(raw: bytes) -> bytes | None:
    """What stands behind the head, if the head is right."""
    keys, start = _keys.get(), len(_MAGIC) + _CHECK
    head, written = raw[len(_MAGIC) : start], raw[start:]
    if head == _SIGNED:
        found, written = written[:_SIGNATURE], written[_SIGNATURE:]
        if any(compare_digest(found, _signature(written, key)) for key in keys):
            return written
    elif head == _checksum(written):
        if not keys:
            return written
    else:
        return None
    if keys:
        raise InvalidInputError(_FORGED)
    return None  # signed with somebody else's key


_FORGED = "the request holds state of a provider that was not signed here, or altered since"


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


def _signature(written: bytes, key: bytes) -> bytes:
    return blake2b(written, digest_size=_SIGNATURE, key=key).digest()


def _checksum(written: bytes) -> bytes:
    return blake2b(written, digest_size=_CHECK).digest()


@cache
def _decoder() -> msgspec.json.Decoder[Seal]:
    return msgspec.json.Decoder(Seal, dec_hook=frozen_hook)
