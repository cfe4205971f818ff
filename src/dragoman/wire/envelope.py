"""Envelopes: another provider's opaque state, encoded to fit into a field of the client's dialect.

A client sends signatures and encrypted reasoning back as it got them, without looking inside.
State that belongs to the model behind a gateway travels in such a field as base64: a nine-byte
marker with the version, a checksum, and compact JSON. Anything that doesn't parse as an envelope is
taken for an ordinary signature of the dialect it came in.

Anyone can write an envelope, so its content is treated as hostile input. A caller with a key, such
as a gateway, signs its envelopes and accepts only those it signed (`signed_with`).
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import NamedTuple

import msgspec

from dragoman.errors import InvalidInputError
from dragoman.model.content import AnyPart
from dragoman.model.jsontext import decoder_of, dumps, loads_as
from dragoman.model.media import Media
from dragoman.model.parts import Origin, Part, Refusal, Text, Thinking
from dragoman.model.tools import ToolCall
from dragoman.model.value import expect
from dragoman.wire.digests import blake2b
from dragoman.wire.overlay import are_sound

_MAGIC = b"dragoman1"  # a multiple of three bytes, so that every envelope has the same prefix
_CHECKSUM_BYTES = 6
_SIGNED = b"signed"  # in place of a checksum; a signature follows
_SIGNATURE_BYTES = 24
_MIN_KEY_BYTES, _MAX_KEY_BYTES = 16, 64
PREFIX = b64encode(_MAGIC).decode("ascii")
MAX_LENGTH = 16 * 1024 * 1024
"""Maximum envelope length in characters: far more than any provider's state needs."""
_STANDARD = str.maketrans("-_", "+/")  # google-genai uses the URL-safe alphabet


class Seal(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """A part's opaque state while it travels through a client."""

    origin: Origin
    part: AnyPart
    """The part; if there is an `owner`, without the content that the client is shown."""
    owner: str | None = None
    """The fingerprint of the content shown to the client; None if the whole part is here."""
    at: tuple[int, int] | None = None
    """For fronts that don't keep order: how many characters of text and how many calls precede."""
    length: int = 0
    """How many characters of text the client is shown; the client may join or split them."""
    shown: str | None = None
    """The id of the item shown to the client in place of a provider's call (`shown_calls`)."""
    after: str | None = None
    """The fingerprint of the text that precedes a whole part: clients may have it elsewhere."""

    leads: tuple[str, str] | None = None
    """The kind and item id of the part that this reasoning led to, which follows it."""

    @property
    def is_sound(self) -> bool:
        """Whether it could have been made by us: clients can write envelopes too."""
        is_shown = self.owner is None or self.owner.startswith(f"{type(self.part).__name__}:")
        return is_shown and are_sound(self.part.extras, self.origin.dialect)

    def __repr__(self) -> str:
        return f"Seal({self.part!r})"


class _Keyring(NamedTuple):
    """The keys in a context: the first one signs, all of them are accepted."""

    keys: tuple[bytes, ...] = ()
    passes_foreign: bool = False


_NO_KEYS = _Keyring()
_keys: ContextVar[_Keyring] = ContextVar("keys of envelopes", default=_NO_KEYS)


@contextmanager
def signed_with(key: bytes, *earlier: bytes, passes_foreign: bool = False) -> Generator[None]:
    """Sign all envelopes made in this context, and refuse any that none of the keys signed.

    Keep it active while requests are decoded and responses encoded, streams included. Envelopes
    signed with an `earlier` key are still accepted. With `passes_foreign`, others are not refused
    but taken for ordinary signatures, never opened: another gateway may have made them.

    >>> from dragoman.model.parts import Thinking
    >>> seal = Seal(Origin(dialect="gemini"), Thinking(signature="c2ln"))
    >>> with signed_with(b"a key of sixteen bytes or more"):
    ...     made = wrap(seal)
    ...     unwrap(made).part.signature
    'c2ln'
    """
    for each in (key, *earlier):
        expect_key(each)
    token = _keys.set(_Keyring((key, *earlier), passes_foreign))
    try:
        yield
    finally:
        _keys.reset(token)


def expect_key(key: bytes) -> None:
    """Raise an error unless a key can sign envelopes."""
    expect(key, bytes, "an envelope key")
    if not _MIN_KEY_BYTES <= len(key) <= _MAX_KEY_BYTES:
        msg = f"an envelope key must have {_MIN_KEY_BYTES} to {_MAX_KEY_BYTES} bytes"
        raise InvalidInputError(msg)


def is_signing() -> bool:
    """Whether envelopes are signed here, and unsigned ones not opened."""
    return bool(_keys.get().keys)


def wrap(seal: Seal) -> str | None:
    """Encode the envelope; None if the state is too large or can't be written as JSON.

    >>> from dragoman.model.parts import Thinking
    >>> made = wrap(Seal(Origin(dialect="gemini"), Thinking(signature="c2ln")))
    >>> made.startswith(PREFIX), unwrap(made).part.signature
    (True, 'c2ln')
    """
    try:
        written = dumps(seal)
    except InvalidInputError:
        return None
    keys = _keys.get().keys
    head = _SIGNED + _signature(written, keys[0]) if keys else _checksum(written)
    made = b64encode(_MAGIC + head + written).decode("ascii")
    return made if len(made) <= MAX_LENGTH else None


def unwrap(text: str | None) -> Seal | None:
    """Decode an envelope; None if the text isn't one, or is malformed.

    If keys are set, an envelope that none of them signed is not opened: see `signed_with`.
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
    """The content after the header, if checksum or signature is valid."""
    from hmac import compare_digest

    (keys, passes_foreign), start = _keys.get(), len(_MAGIC) + _CHECKSUM_BYTES
    head, written = raw[len(_MAGIC) : start], raw[start:]
    if head == _SIGNED:
        found, written = written[:_SIGNATURE_BYTES], written[_SIGNATURE_BYTES:]
        if any(compare_digest(found, _signature(written, key)) for key in keys):
            return written
    elif head == _checksum(written):
        if not keys:
            return written
    else:
        return None
    if keys and not passes_foreign:
        raise InvalidInputError(_FORGED)
    return None  # signed with an unknown key


_FORGED = "the request contains provider state that was not signed here or was altered since"


def is_sealed(part: Part) -> bool:
    """Whether a part's opaque state looks like an envelope."""
    if part.signature is not None and part.signature.startswith(PREFIX):
        return True
    return isinstance(part, Thinking) and part.data is not None and part.data.startswith(PREFIX)


def fingerprint(part: Part) -> str:
    """Identify a part, to tell whether the client sent back the part it was shown.

    A call is identified by its id, since clients re-serialise arguments; other parts by content.
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
    return blake2b(written, digest_size=_SIGNATURE_BYTES, key=key).digest()


def _checksum(written: bytes) -> bytes:
    return blake2b(written, digest_size=_CHECKSUM_BYTES).digest()


@cache
def _decoder() -> msgspec.json.Decoder[Seal]:
    return decoder_of(Seal)
