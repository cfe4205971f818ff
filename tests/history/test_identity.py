"""Identities as keys: each name counts, none collides, none escapes."""

from __future__ import annotations

import pickle
import re
from pathlib import PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import InvalidInputError
from dragoman.history.identity import FIELDS, SessionIdentity, escaped, unescaped
from dragoman.testing.conformance.stores.data import HOSTILE

_characters = st.sampled_from("aAbé=&%/\\.:\0\n \u0301🙂") | st.characters(codec="utf-8")
names = st.none() | st.text(_characters, max_size=6)
identities = (
    st.tuples(*[names] * len(FIELDS))
    .filter(lambda columns: any(name is not None for name in columns))
    .map(lambda columns: SessionIdentity(*columns))
)


def test_a_key_is_readable_and_has_every_name() -> None:
    """In the order of the fields, without absent ones."""
    full = SessionIdentity(agent="a", chat="b", user="c", group="d", scope="e")
    assert full.key == "agent=a&chat=b&user=c&group=d&scope=e"
    assert SessionIdentity(user="Ana", chat="7").key == "chat=7&user=%41na"


def test_absent_and_empty_are_different() -> None:
    """So is the same name in different fields."""
    made = [SessionIdentity(**{field: name}) for field in FIELDS for name in ("", "a")]
    assert len({identity.digest for identity in made}) == len(made)
    assert SessionIdentity(agent="") != SessionIdentity(chat="")


def test_hostile_names_have_distinct_keys() -> None:
    """Even if a file system or a collation ignores case."""
    assert len(set(HOSTILE)) == len(HOSTILE)
    assert len({identity.key.lower() for identity in HOSTILE}) == len(HOSTILE)
    assert len({identity.digest for identity in HOSTILE}) == len(HOSTILE)


@pytest.mark.parametrize("identity", HOSTILE, ids=range(len(HOSTILE)))
def test_keys_and_columns_are_harmless(identity: SessionIdentity) -> None:
    """Plain ASCII without separators: no path, pattern, quote or newline."""
    assert re.fullmatch(r"[a-z0-9_%A-F=&-]+", identity.key)
    assert re.fullmatch(r"[0-9a-f]{40}", identity.digest)
    for column in identity.columns:
        assert column is None or re.fullmatch(r"([a-z0-9_-]|%[0-9A-F]{2})*", column)
        if column:
            assert PurePosixPath(column).parts == PureWindowsPath(column).parts == (column,)
            assert column not in {".", ".."}
    assert SessionIdentity.from_columns(identity.columns) == identity


@given(identities, identities)
def test_different_identities_have_different_keys(
    one: SessionIdentity, other: SessionIdentity
) -> None:
    """Equal ones have equal keys."""
    assert (one == other) == (one.key == other.key) == (one.key.lower() == other.key.lower())
    assert (one == other) == (one.digest == other.digest) == (one.columns == other.columns)


@given(identities)
def test_columns_round_trip(identity: SessionIdentity) -> None:
    """For any names."""
    assert SessionIdentity.from_columns(identity.columns) == identity
    assert identity.key.isascii()


@given(st.text(_characters))
def test_an_escaped_name_round_trips(name: str) -> None:
    """Byte for byte."""
    assert unescaped(escaped(name)) == name


def test_the_key_and_the_digest_never_change() -> None:
    """Stores contain them."""
    identity = SessionIdentity(agent="Support", chat="7/ä", user="", scope="x")
    assert identity.key == "agent=%53upport&chat=7%2F%C3%A4&user=&scope=x"
    assert identity.digest == "45b3ebbe96ba35831c9580f0658eacec9a1c7966"


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        ({}, "at least one"),
        ({"chat": 7}, "chat"),
        ({"chat": b"7"}, "chat"),
        ({"chat": "\ud800"}, "surrogate"),
        ({"chat": "é" * 40_000}, "65536 bytes"),
    ],
)
def test_invalid_names_are_rejected_without_being_quoted(
    names: dict[str, str], problem: str
) -> None:
    """A name may be an e-mail address."""
    with pytest.raises(InvalidInputError, match=problem) as raised:
        SessionIdentity(**names)
    assert "éé" not in str(raised.value)
    assert raised.value.__context__ is None


def test_a_name_of_64_kilobytes_is_fine() -> None:
    """The digest is as short as any."""
    assert len(SessionIdentity(chat="a" * 65_536).digest) == 40


def test_the_repr_shows_which_names_are_set_and_not_their_values() -> None:
    """It ends up in logs."""
    shown = repr(SessionIdentity(user="ana@example.org", chat="7"))
    assert "user" in shown
    assert "ana" not in shown


def test_an_identity_is_a_value() -> None:
    """It can be compared, hashed and pickled, but not changed."""
    one, same = SessionIdentity(chat="7"), SessionIdentity(chat="7")
    assert one == same
    assert hash(one) == hash(same)
    assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301 - our own
    with pytest.raises(AttributeError):
        one.chat = "8"  # type: ignore[misc]  # the point
