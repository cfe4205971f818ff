"""Envelopes survive what SDKs do to base64, and nothing else passes as one."""

from __future__ import annotations

import base64
import json
import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import InvalidInputError, WireError
from dragoman.model.content import AnyPart
from dragoman.model.jsontext import dumps
from dragoman.model.messages import Message
from dragoman.model.parts import Opaque, Origin, ServerToolResult, Text, Thinking
from dragoman.model.requests import Request
from dragoman.model.responses import Choice, Response
from dragoman.model.tools import make_call
from dragoman.model.usage import FinishReason
from dragoman.wire import envelope
from dragoman.wire.dialect import dialect, dialects
from dragoman.wire.envelope import PREFIX, Seal, fingerprint, is_sealed, signed_with, unwrap, wrap

HOME = Origin(dialect="gemini", provider="google", model="gemini-3-pro")
TEXTS = st.text(max_size=20) | st.just("\ud83d half")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
EXTRAS = st.fixed_dictionaries({}, optional={"gemini": st.dictionaries(TEXTS, JSON, max_size=3)})
STATE: dict[str, Any] = {
    "signature": st.none() | TEXTS,
    "item_id": st.none() | TEXTS,
    "extras": EXTRAS,
}
PARTS = st.one_of(
    st.builds(Text, st.just(""), **STATE),
    st.builds(Thinking, TEXTS, st.none() | TEXTS, st.sampled_from(["full", "summary"]), **STATE),
    st.builds(make_call, TEXTS, TEXTS, raw=TEXTS, **STATE),
    st.builds(Opaque, st.just("gemini"), JSON, **STATE),
    st.builds(ServerToolResult, TEXTS, TEXTS, JSON, **STATE),
)


def sealed(part: AnyPart, **fields: Any) -> str:
    """An envelope, which must exist."""
    made = wrap(Seal(HOME, part, **fields))
    assert made is not None
    return made


def forged(written: bytes) -> str:
    """A forged envelope: any content, with a valid checksum."""
    head = base64.b64decode(PREFIX)
    return base64.b64encode(head + envelope._checksum(written) + written).decode()


SAMPLE = sealed(Thinking("", "ZGF0YQ==", signature="c2ln"), at=(3, 1), length=7)


@given(PARTS, st.none() | st.tuples(st.integers(0, 99), st.integers(0, 9)))
def test_envelopes_round_trip(part: AnyPart, at: tuple[int, int] | None) -> None:
    """Every field of the part, its origin and its position are restored."""
    found = unwrap(sealed(part, owner=fingerprint(part), at=at))
    assert found is not None
    assert found.part.identical(part)
    assert (found.origin, found.at, found.owner) == (HOME, at, fingerprint(part))


@given(PARTS)
def test_an_envelope_is_base64(part: AnyPart) -> None:
    """Standard base64 with a constant prefix, which still opens after being re-encoded.

    google-genai has `thoughtSignature` as bytes, and encodes them as URL-safe base64.
    """
    made = sealed(part)
    assert made.startswith(PREFIX)
    assert re.fullmatch(r"[A-Za-z0-9+/]+={0,2}", made)
    raw = base64.b64decode(made, validate=True)
    for again in (
        base64.b64encode(raw).decode(),
        base64.urlsafe_b64encode(raw).decode(),
        base64.urlsafe_b64encode(raw).decode().rstrip("="),
    ):
        assert unwrap(again) == unwrap(made)


def test_envelopes_nest() -> None:
    """If the provider is another gateway, its envelope is data like any other."""
    made = SAMPLE
    for _ in range(3):
        made = sealed(Thinking("", form="full", signature=made))
    for _ in range(3):
        found = unwrap(made)
        assert found is not None
        assert found.part.signature is not None
        made = found.part.signature
    assert made == SAMPLE


def test_state_that_is_too_large_has_no_envelope(monkeypatch: pytest.MonkeyPatch) -> None:
    """State that is too large is a loss, not an envelope that can't be opened."""
    monkeypatch.setattr(envelope, "MAX_LENGTH", 100)
    assert wrap(Seal(HOME, Thinking("", "x" * 100))) is None
    assert unwrap(SAMPLE) is None


@given(st.integers(0, len(SAMPLE) - 1))
def test_a_truncated_envelope_is_rejected(cut: int) -> None:
    """An envelope cut anywhere but in its padding is not opened."""
    assert unwrap(SAMPLE[:cut]) is None or set(SAMPLE[cut:]) == {"="}


@given(st.integers(len(PREFIX), len(SAMPLE) - 1), st.sampled_from("Aa0+_! \u00e9\ud800"))
def test_an_altered_envelope_is_rejected(place: int, mark: str) -> None:
    """An envelope with any character changed is not opened."""
    changed = SAMPLE[:place] + mark + SAMPLE[place + 1 :]
    meant = changed.translate({45: 43, 95: 47})
    is_same = meant[:-3] == SAMPLE[:-3]  # the last character before the padding has idle bits
    assert unwrap(changed) is None or is_same


@given(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
def test_garbage_is_rejected(written: bytes) -> None:
    """Garbage is not opened, even with the right prefix and checksum."""
    assert unwrap(forged(written)) is None


@pytest.mark.parametrize(
    "written",
    [
        b"[" * 100_000,
        b'{"origin":{"dialect":"x"},"part":' + b'{"a":' * 100_000,
        b'{"origin":{"dialect":"x"},"part":{"type":"opaque","dialect":"x","payload":'
        + b"[" * 5_000 + b"]" * 5_000 + b"}}",
        b'{"origin":{"dialect":1},"part":{"type":"thinking"}}',
        b'{"origin":{"dialect":"x"},"part":{"type":"thinking"},"more":1}',
        b'{"origin":{"dialect":"x"},"part":{"type":"thinking"},"owner":"Text:00"}',
        b'{"origin":{"dialect":"x"},"part":{"type":"thinking","extras":{"x":3}}}',
        b'{"origin":{"dialect":"x"},"part":{"type":"thinking","extras":{"x instead":[1]}}}',
        b'{"origin":{"dialect":"x"},"part":{"type":"thinking","extras":{"y":{}}}}',
        b'{"origin":{"dialect":"x"},"part":{"type":"tool_call","id":"","name":3}}',
        b'{"origin":{"dialect":"x"},"part":{"type":"image"}}',
    ],
)  # fmt: skip
def test_a_forged_envelope_is_rejected(written: bytes) -> None:
    """Deep nesting, wrong types, unknown fields or extras of another dialect are rejected."""
    assert unwrap(forged(written)) is None


def test_the_repr_of_a_seal_shows_no_content() -> None:
    """Neither the state nor its origin is in a log."""
    assert repr(unwrap(SAMPLE)) == "Seal(Thinking(full, 0 chars, signed, sealed))"


def test_envelopes_are_recognized_by_their_prefix() -> None:
    """Other values are never opened."""
    assert is_sealed(Thinking("", signature=SAMPLE))
    assert is_sealed(Thinking("", SAMPLE))
    assert is_sealed(Text("a", signature=SAMPLE))
    assert not is_sealed(Text(SAMPLE))
    assert not is_sealed(Thinking("", "ZHJh", signature="ZHJhZ29t"))


# --- signed envelopes

_KEY, _OTHER = b"k" * 16, b"o" * 32
_SIGNED_SEAL = Seal(Origin(dialect="gemini"), Thinking(signature="c2ln"))


def test_a_signed_envelope_is_accepted_by_its_signer() -> None:
    """It opens with its key, also among rotated keys, and not without a key."""
    with signed_with(_KEY):
        made = wrap(_SIGNED_SEAL)
        assert unwrap(made) == _SIGNED_SEAL
    with signed_with(_OTHER, _KEY):
        assert unwrap(made) == _SIGNED_SEAL
    assert unwrap(made) is None


def test_forged_state_is_refused_if_there_is_a_key() -> None:
    """Unsigned envelopes, those of another key and altered ones raise."""
    bare = wrap(_SIGNED_SEAL)
    with signed_with(_OTHER):
        foreign = wrap(_SIGNED_SEAL)
    with signed_with(_KEY):
        own = wrap(_SIGNED_SEAL)
        assert own is not None
        raw = bytearray(base64.b64decode(own))
        raw[-3] ^= 1
        altered = base64.b64encode(raw).decode()
        for forged in (bare, foreign, altered):
            with pytest.raises(InvalidInputError, match="not signed here"):
                unwrap(forged)
        assert unwrap("c2lnbmF0dXJl") is None  # a provider's own signature is not ours


def test_foreign_state_may_pass_unopened() -> None:
    """For a gateway in front of another one: unsigned or foreign, it is an ordinary signature."""
    bare = wrap(_SIGNED_SEAL)
    with signed_with(_OTHER):
        foreign = wrap(_SIGNED_SEAL)
    with signed_with(_KEY, passes_foreign=True):
        assert [unwrap(each) for each in (bare, foreign)] == [None, None]
        assert unwrap(wrap(_SIGNED_SEAL)) == _SIGNED_SEAL


@given(st.binary(max_size=80), st.booleans())
def test_any_data_after_the_prefix_is_refused(tail: bytes, is_marked: bool) -> None:
    """Only our own error is raised, with a key and without."""
    text = PREFIX + base64.b64encode((b"signed" if is_marked else b"") + tail).decode()
    assert unwrap(text) is None
    with signed_with(_KEY), suppress(InvalidInputError):
        assert unwrap(text) is None


@pytest.mark.parametrize("key", [b"", b"short", b"x" * 65, "a text of enough characters"])
def test_a_key_must_be_long_enough(key: Any) -> None:
    """A weak or unusable key is refused when it is configured."""
    with pytest.raises(InvalidInputError), signed_with(key):
        pass


@pytest.mark.parametrize("front", dialects())
def test_a_front_accepts_only_state_that_it_signed(front: str) -> None:
    """State behind any front is signed in responses and verified in requests."""
    origin = Origin(dialect="anthropic" if front == "gemini" else "gemini")
    thought = Thinking("Hm.", signature="c2ln", origin=origin)
    message = Message.assistant(thought, "Yes.")
    response = Response(choices=(Choice(0, message, FinishReason.STOP),), model="m", id="r")
    with signed_with(_KEY):
        body = dialect(front).encode_response(response).body
        read = dialect(front).decode_response(json.loads(dumps(body)))
        said = (Message.user("Q"), read.message, Message.user("Go"))
        request = dialect(front).encode_request(Request(model="m", messages=said))
        back = dialect(front).decode_request(json.loads(request.to_bytes()))
    sealed = PREFIX in json.dumps(json.loads(request.to_bytes()))
    with signed_with(_OTHER):
        if sealed:
            with pytest.raises(WireError, match="not signed here"):
                dialect(front).decode_request(json.loads(request.to_bytes()))
        else:
            assert front == "ollama"  # it has no field for state
    assert back.messages
