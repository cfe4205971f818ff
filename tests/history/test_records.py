"""The stored form: the content of lines and bodies, and that it stays readable."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Message, Role
from dragoman.errors import Corrupt, InvalidInputError
from dragoman.history.records import (
    body_of,
    is_sealed,
    message_of,
    read_line,
    row_line,
    session_line,
)
from dragoman.history.remembered_cuts import Key, read
from dragoman.history.storage.memory import MemoryStorage
from dragoman.history.storage.protocol import MAIN, Fork, Row, Session
from dragoman.history.storage.sealed import SealedStorage
from dragoman.model import document
from dragoman.model.messages import make_message
from tests.history.golden import (
    KEYS,
    MESSAGES,
    PROOFS,
    SESSION,
    VERSIONS,
    WHO,
    lines,
    rows,
)
from tests.history.test_identity import identities
from tests.model import strategies as some

NOON = 1_763_294_400.0
SECRET = "what nobody but the store may know"


# --- the golden files


@pytest.mark.parametrize("version", VERSIONS)
def test_a_golden_export_is_read_completely(version: int) -> None:
    """Its session, and every kind of message."""
    found = rows(version)
    assert read_line(lines(version, "export.jsonl")[0]) == SESSION[version]
    assert [(row.checksum, row.chain) for row in found] == PROOFS[version]
    assert [row.seq for row in found] == list(range(1, 18))
    assert [row.branch for row in found] == [MAIN] * 15 + [1, 2]
    assert [row.at for row in found] == [NOON + number for number in range(1, 18)]
    for row, message in zip(found, MESSAGES, strict=True):
        assert row.id == message.id
        assert message_of(row.body).identical(message)
        assert row.usage == message.usage
        assert row.model == (message.origin.model if message.origin else None)


def test_the_written_form_has_not_changed() -> None:
    """Byte for byte; another form needs another version, and its own golden files."""
    read = rows(2)
    assert [session_line(SESSION[2]), *map(row_line, read)] == lines(2, "export.jsonl")
    assert [body_of(message) for message in MESSAGES] == [row.body for row in read]


def test_bodies_of_version_1_are_kept_unchanged() -> None:
    """Its lines get the new version, its bodies keep their bytes."""
    made = [session_line(SESSION[1]), *map(row_line, rows(1))]
    old = [line.removeprefix(b'{"dragoman":1') for line in lines(1, "export.jsonl")]
    assert [line.removeprefix(b'{"dragoman":2') for line in made] == old


@pytest.mark.parametrize("version", VERSIONS)
def test_lines_of_a_log_are_rows_as_well(version: int) -> None:
    """With the version, and how many of the same write follow."""
    assert rows(version, "log.jsonl") == rows(version)[:3]


def test_lines_of_a_log_have_not_changed() -> None:
    """Byte for byte."""
    written = [(1, 1), (1, 0), (2, 0)]
    made = [
        row_line(row, version=version, more=more)
        for row, (version, more) in zip(rows(2, "log.jsonl"), written, strict=True)
    ]
    assert made == lines(2, "log.jsonl")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_golden_window_is_read(version: int) -> None:
    """The cut is at the same message."""
    cut = read(msgspec.structs.replace(SESSION[version], windows=None))[Key(1)]
    assert (cut.first, cut.left_out) == ("msg_03", 2)


def test_reserved_documents_are_read() -> None:
    """Windows by model and limit, at most eight, and a seal."""
    windows = document.read(SESSION[2].windows or b"", "Windows")
    assert [(each.branch, each.model, each.limit) for each in windows] == [
        (1, "m-1", 3000),
        (1, None, None),
    ]
    assert document.read(SESSION[2].seal or b"", "SealedHead").place == "2:17"
    with pytest.raises(InvalidInputError):
        document.read(document.write("Windows", [*windows] * 5), "Windows")


# --- lines


forks = st.builds(Fork, some.small, some.small, some.small)
sessions = st.builds(
    Session,
    identities,
    some.counts,
    some.counts,
    some.finite,
    some.finite,
    some.small,
    st.lists(forks, max_size=3).map(tuple),
    st.none() | st.just(b'{"a":[1,"\xc3\xa9"]}'),
    st.none() | st.just(b'{"windows":[]}'),
    some.maybe(some.words),
    st.none() | st.just(b'{"seal":1}'),
)


@given(sessions)
def test_a_session_round_trips_through_its_line(session: Session) -> None:
    """For any names; it is one line."""
    line = session_line(session)
    assert b"\n" not in line
    assert read_line(line) == session
    assert read_line(line.decode()) == session


@given(some.messages, some.small, some.small, some.finite, some.maybe(some.words))
def test_a_row_round_trips_through_its_line(
    message: Message, seq: int, branch: int, at: float, model: str | None
) -> None:
    """Its body is unchanged, and holds the complete message."""
    message = message.with_id(message.id)
    usage = None if message.usage is None else message.usage.counts
    row = Row(
        message.id, body_of(message), at, model, usage, seq=seq, branch=branch, checksum=model
    )
    line = row_line(row)
    assert b"\n" not in line
    read = read_line(line)
    assert read == row
    assert isinstance(read, Row)
    assert message_of(read.body).identical(message)


def test_lone_surrogates_are_no_damage() -> None:
    """Models and file systems produce them; they are kept."""
    window = b'{"note":"\\ud800"}'
    session = Session(WHO, 1, 1, NOON, NOON, window=window)
    assert read_line(session_line(session)) == session
    message = Message.user("\ud800 \u00e9", metadata={"\udfff": 1.5})
    row = Row(message.id, body_of(message), NOON, seq=1)
    assert read_line(row_line(row)) == row


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        f'"{SECRET}"'.encode(),
        f'{{"{SECRET}":1}}'.encode(),
        b'{"dragoman":1,"kind":"Record","value":{}}',
        b'{"dragoman":1,"kind":"Session","value":{"identity":{}}}',
        b'{"dragoman":1,"kind":"Record","value":{"seq":1,"id":"x","at":0,"message":{},"new":1}}',
        f'{{"dragoman":1,"kind":"{SECRET}","value":1}}'.encode(),
        b'{"dragoman":1,"kind":"Message","value":{"role":"user"}}',
        b'{"dragoman":1,"kind":[],"value":{"message":"\\ud800"}}',
        b'{"dragoman":1,"kind":"Session","value":{"message":"\\ud800"}}',
        b'{"dragoman":1,"kind":"Message","value":{"window":"\\ud800"}}',
        b'{"dragoman":1,"kind":"Record","value":{"seq":"one","id":"x","at":0,"message":{}}}',
        lines(1, "export.jsonl")[1][:-1],
        lines(2, "export.jsonl")[1][1:],
        b"\xff\xfe\0",
    ],
)
def test_an_invalid_line_is_corrupt(line: bytes) -> None:
    """With a reason that quotes nothing."""
    with pytest.raises(Corrupt) as raised:
        read_line(line)
    assert SECRET not in f"{raised.value} {raised.value.__context__!r}"


def test_a_newer_version_is_reported() -> None:
    """Its content isn't guessed."""
    line = lines(2, "export.jsonl")[1].replace(b'{"dragoman":2,', b'{"dragoman":3,', 1)
    with pytest.raises(Corrupt, match="format version 3"):
        read_line(line)


# --- bodies


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"\xff", SECRET.encode(), b'{"dragoman":1,"kind":"Message","value":{"role":"x"}}'],
)
def test_a_body_that_is_no_message_is_corrupt(body: bytes) -> None:
    """With a reason that quotes nothing."""
    with pytest.raises(Corrupt, match="can't be read") as raised:
        message_of(body)
    assert SECRET not in f"{raised.value} {raised.value.__context__!r}"


def test_messages_that_could_not_be_read_back_are_not_written() -> None:
    """The error comes when it is stored, not when it is needed."""
    odd = make_message(Role.USER, (), usage="no usage")  # type: ignore[arg-type]  # the point
    with pytest.raises(InvalidInputError):
        body_of(odd)


async def test_a_sealed_body_is_recognized_by_its_beginning() -> None:
    """No message looks like one."""
    inner = MemoryStorage()
    await SealedStorage(inner, keys=KEYS, current="2026").append(WHO, rows(2)[:1])
    (row,) = await inner.rows(WHO)
    assert is_sealed(row.body)
    assert msgspec.json.decode(row.body)["kind"] == "SealedMessage"
    assert not any(is_sealed(body_of(message)) for message in MESSAGES)
    with pytest.raises(Corrupt, match="encrypted"):
        message_of(row.body)
