"""The file backend: incomplete ends, broken lines, symbolic links, full disks, kill -9."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import signal
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman import Message
from dragoman.errors import Corrupt, NotFound, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import body_of, message_of, read_line
from dragoman.history.storage.files import FileStorage, directory, ids, log
from dragoman.history.storage.files.directory import aside_of
from dragoman.history.storage.integrity import damage_to, tally_of
from dragoman.history.storage.protocol import DuplicateIds, Entry, Filter, Row, Session
from dragoman.testing.conformance.stores.data import WINDOW, bare, entry, stored

pytestmark = pytest.mark.skipif(os.name != "posix", reason="files need POSIX locks")
ONE = SessionIdentity(agent="guide", chat="7", user="Ana")
spawn = multiprocessing.get_context("spawn")


def entries(count: int, text: str = "x") -> list[Entry]:
    """That many of them."""
    return [entry(f"{text}{number}") for number in range(count)]


def file_of(root: Path, suffix: str = ".jsonl", who: SessionIdentity = ONE) -> Path:
    """A session's file."""
    return root / who.digest[:2] / f"{who.digest}{suffix}"


async def opened(root: Path, **options: Any) -> FileStorage:
    """Another storage at that location, open."""
    storage = FileStorage(root, blocking=True, **options)
    await storage.open()
    return storage


async def version(storage: FileStorage) -> int:
    """The session's version."""
    session = await storage.session(ONE)
    assert session is not None
    return session.version


def files_in(root: Path) -> list[Path]:
    """The files and directories in it."""
    return list(root.rglob("*"))


async def readable(storage: FileStorage) -> list[str]:
    """The texts of its intact messages."""
    rows = await storage.rows(ONE)
    return [message_of(row.body).text for row in rows if damage_to(row) is None]


async def filled(root: Path, *groups: int) -> FileStorage:
    """A storage with that many messages, added in groups, called x0, x1, ..."""
    storage = await opened(root)
    made = entries(sum(groups))
    for size in groups:
        await storage.append(ONE, made[:size])
        made = made[size:]
    return storage


# --- the file


async def test_a_file_has_the_messages_in_lines(tmp_path: Path) -> None:
    """As in an export, each write followed by the session's head."""
    storage = await filled(tmp_path, 1, 2)
    lines = file_of(tmp_path).read_bytes().splitlines()
    kinds = [msgspec.json.decode(line)["kind"] for line in lines]
    assert kinds == ["Log", "Record", "Commit", "Record", "Record", "Commit"]
    records = [read_line(line) for line in lines if b'"kind":"Record"' in line]
    found = [row for row in records if isinstance(row, Row)]
    assert [bare(row) for row in found] == [bare(row) for row in await storage.rows(ONE)]


async def test_only_the_owner_has_access(tmp_path: Path) -> None:
    """Directories are 0700, files 0600, whatever the umask."""
    mask = os.umask(0)
    try:
        storage = await filled(tmp_path / "above" / "new", 1)
        await storage.append(ONE, entries(300, "y"))
        await storage.append(ONE, [entry("z")])
    finally:
        os.umask(mask)
    for path in [tmp_path / "above", *files_in(tmp_path / "above")]:
        wanted = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == wanted, path.suffix


@pytest.mark.parametrize("name", ["a/../../b", "..", "/etc/passwd", "nul\0nul", "A" * 10_000])
async def test_no_name_is_part_of_a_path(tmp_path: Path, name: str) -> None:
    """Files are named by a digest."""
    storage = await opened(tmp_path / "in")
    await storage.append(SessionIdentity(chat=name, user=name), [entry("a")])
    made = [path.relative_to(tmp_path) for path in files_in(tmp_path)]
    assert {path.parts[0] for path in made} == {"in"}
    assert [len(path.name) for path in made if path.suffix == ".jsonl"] == [46]


@pytest.mark.parametrize("suffix", [".jsonl", ".ids", ".aside"])
async def test_a_link_in_place_of_a_file_is_rejected(tmp_path: Path, suffix: str) -> None:
    """Its target is not touched."""
    target = tmp_path / "target"
    target.write_bytes(b"mine")
    storage = await filled(tmp_path / "in", 300)
    path = file_of(tmp_path / "in", suffix)
    path.unlink(missing_ok=True)
    path.symlink_to(target)
    if suffix == ".ids":
        await storage.append(ONE, [entry("a")])  # it is optional
    else:
        with pytest.raises(StoreError, match="symbolic link"):
            await storage.set_aside(ONE, [1], "test")
    assert target.read_bytes() == b"mine"


async def test_a_link_in_place_of_a_directory_is_rejected(tmp_path: Path) -> None:
    """Nothing is read or written through it."""
    storage = await opened(tmp_path / "in")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "in" / ONE.digest[:2]).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="symbolic link"):
        await storage.append(ONE, [entry("a")])
    with pytest.raises(StoreError, match="symbolic link"):
        await storage.session(ONE)
    assert list((tmp_path / "elsewhere").iterdir()) == []


# --- torn ends


def _half_a_line(raw: bytes) -> bytes:
    return raw[:-40]


def _half_a_batch(raw: bytes) -> bytes:
    return b"".join(raw.splitlines(keepends=True)[:-1])


def _rubbish(raw: bytes) -> bytes:
    return _half_a_batch(raw) + b"\0" * 300 + b"\n"


@pytest.mark.parametrize("tear", [_half_a_line, _half_a_batch, _rubbish])
async def test_an_incomplete_write_at_the_end_is_moved_aside(
    tmp_path: Path, tear: Callable[[bytes], bytes]
) -> None:
    """A write counts completely or not at all; the rest of it is kept, and the file is usable."""
    storage = await filled(tmp_path, 1, 1)
    path = file_of(tmp_path)
    whole = path.read_bytes()
    await storage.append(ONE, entries(3, "torn"))
    path.write_bytes(tear(whole + path.read_bytes()[len(whole) :]))  # its numbers are written last
    torn = path.read_bytes()[len(whole) :]
    assert await stored(storage) == ["x0", "x1"]
    assert await version(storage) == 2
    assert ["incomplete" in each for each in await storage.verify()] == [True]
    assert path.read_bytes() == whole + torn  # readers change nothing
    assert (await storage.append(ONE, [entry("on")])).last_seq == 3
    assert await stored(storage) == ["x0", "x1", "on"]
    assert await storage.verify() == []
    (line,) = file_of(tmp_path, ".aside").read_bytes().splitlines()
    aside = aside_of(line)
    assert aside is not None
    assert (aside.identity, aside.offset, aside.raw) == (ONE, len(whole), torn)


@pytest.mark.parametrize("tear", [_half_a_line, _half_a_batch, _rubbish])
async def test_a_truncated_acknowledged_write_is_reported(
    tmp_path: Path, tear: Callable[[bytes], bytes]
) -> None:
    """The first line counts it: the session is not opened as it was before."""
    storage = await filled(tmp_path, 1, 1)
    await storage.append(ONE, entries(3, "y"))
    path = file_of(tmp_path)
    path.write_bytes(tear(path.read_bytes()))
    torn = path.read_bytes()
    for call in (
        storage.session(ONE),
        storage.append(ONE, [entry("on")]),
        storage.clear(ONE, at=1),
    ):
        with pytest.raises(Corrupt, match="history repair"):
            await call
    assert path.read_bytes() == torn
    assert await readable(storage) == ["x0", "x1", "y0", "y1", "y2"]
    problems = await storage.verify()
    assert problems
    assert "incomplete" not in str(problems)
    await storage.set_aside(ONE, [], "test")
    assert await storage.verify() == []
    assert (await storage.append(ONE, [entry("on")])).last_seq == 6
    assert await stored(storage) == ["x0", "x1", "y0", "y1", "y2", "on"]


async def test_a_file_cut_after_a_write_is_not_an_older_session(tmp_path: Path) -> None:
    """What is left is whole, but the first line knows of more."""
    storage = await filled(tmp_path, 1, 1)
    path = file_of(tmp_path)
    older = path.stat().st_size
    await storage.append(ONE, [entry("y")])
    os.truncate(path, older)
    with pytest.raises(Corrupt, match="history repair"):
        await storage.session(ONE)
    assert ["shorter" in each for each in await storage.verify()] == [True, False]
    assert await storage.set_aside(ONE, [], "test") == 0
    assert await stored(storage) == ["x0", "x1"]
    assert await storage.verify() == []


async def test_a_line_that_only_lost_its_newline_is_read(tmp_path: Path) -> None:
    """The next line doesn't run into it."""
    storage = await filled(tmp_path, 1, 1)
    path = file_of(tmp_path)
    path.write_bytes(path.read_bytes()[:-1])
    assert await stored(storage) == ["x0", "x1"]
    assert len(await storage.rows(ONE, limit=1, newest=True)) == 1
    await storage.append(ONE, [entry("on")])
    assert await stored(storage) == ["x0", "x1", "on"]
    assert await storage.verify() == []


async def test_numbers_that_lag_behind_are_no_damage(tmp_path: Path) -> None:
    """A crash between rows and numbers leaves a complete session that can be continued."""
    storage = await filled(tmp_path, 1)
    path = file_of(tmp_path)
    before = path.read_bytes()
    await storage.append(ONE, entries(2, "y"))
    await storage.append(ONE, entries(1, "z"))
    path.write_bytes(before + path.read_bytes()[len(before) :])
    for _ in range(2):
        session = await storage.session(ONE)
        assert session is not None
        assert (session.version, session.last_seq) == (3, 4)
        assert session.chain == "n1-3.4.4.0"
        assert await storage.verify() == []
        await storage.activate(ONE, 0)
    assert (await storage.append(ONE, [entry("on")])).last_seq == 5
    assert await stored(storage) == ["x0", "y0", "y1", "z0", "on"]
    assert await storage.verify() == []


async def test_an_emptied_file_is_not_an_empty_session(tmp_path: Path) -> None:
    """It is an error for reads and writes; files only appear when they are complete."""
    storage = await filled(tmp_path, 3)
    file_of(tmp_path).write_bytes(b"")
    for call in (storage.session(ONE), storage.append(ONE, [entry("a")]), storage.clear(ONE, at=1)):
        with pytest.raises(Corrupt, match="history repair"):
            await call
    assert [problem for problem in await storage.verify() if "empty" in problem]
    assert file_of(tmp_path).read_bytes() == b""
    assert await storage.set_aside(ONE, [], "it is empty") == 0
    assert await storage.verify() == []
    await storage.append(ONE, [entry("on")])
    assert await stored(storage) == ["on"]


async def test_another_sessions_line_is_not_a_message_of_this_one(tmp_path: Path) -> None:
    """Even if its number fits."""
    storage = await filled(tmp_path, 1, 1, 1)
    other = SessionIdentity(chat="other")
    for text in ("secret", "of", "others"):
        await storage.append(other, [entry(text)])
    path = file_of(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[3] = file_of(tmp_path, who=other).read_bytes().splitlines(keepends=True)[3]
    path.write_bytes(b"".join(lines))
    assert await readable(storage) == ["x0", "x2"]
    assert [row.seq for row in await storage.rows(ONE)] == [1, 2, 3]
    assert len(await storage.verify()) == 2  # of the line, and of the message


@pytest.mark.parametrize(
    "raw", [b"\0" * 5000, b"\xff\xfe\0" * 999, b'{"a":' * 5000, b"x" * 900_000]
)
async def test_garbage_of_any_kind_is_one_damaged_message(tmp_path: Path, raw: bytes) -> None:
    """Whatever it is and wherever; the numbers of the others stay."""
    storage = await filled(tmp_path, 1, 1, 1, 1)
    path = file_of(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[5] = raw + b"\n"
    path.write_bytes(b"".join(lines))
    rows = await storage.rows(ONE)
    assert [(row.seq, row.id == "") for row in rows] == [
        (1, False),
        (2, False),
        (3, True),
        (4, False),
    ]
    assert await readable(storage) == ["x0", "x1", "x3"]
    for newest in (True, False):
        assert [r.seq for r in await storage.rows(ONE, upto=3, limit=9, newest=newest)] == [1, 2, 3]
        assert [r.seq for r in await storage.rows(ONE, after=2, limit=9, newest=newest)] == [3, 4]
    assert len(await storage.verify()) == 2  # of the line, and of the message
    assert await storage.set_aside(ONE, [3], "rubbish") == 1
    assert await storage.verify() == []
    aside = aside_of(file_of(tmp_path, ".aside").read_bytes())
    assert aside is not None
    assert aside.raw == raw


async def test_setting_aside_keeps_an_intact_neighbour(tmp_path: Path) -> None:
    """A surplus line has no number of its own; the message with the number stays."""
    storage = await filled(tmp_path, 1, 1)
    path = file_of(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], lines[1], b"rubbish\n", *lines[3:]]))
    rows = await storage.rows(ONE)
    assert [row.seq for row in rows] == [1, 1, 2]
    assert [row.seq for row in await storage.rows(ONE, limit=1)] == [1, 1]
    assert await storage.set_aside(ONE, [1], "twice") == 2
    assert await stored(storage) == ["x0", "x1"]
    assert await storage.verify() == []


async def test_records_set_aside_are_never_overwritten(tmp_path: Path) -> None:
    """A second crash appends to them."""
    storage = await filled(tmp_path, 1)
    for text in (b"one", b"two"):
        with file_of(tmp_path).open("ab") as file:
            file.write(text)
        await storage.append(ONE, [entry("a")])
    lines = file_of(tmp_path, ".aside").read_bytes().splitlines()
    assert [aside.raw for aside in map(aside_of, lines) if aside] == [b"one", b"two"]


async def test_removing_the_end_of_a_batch_leaves_it_complete(tmp_path: Path) -> None:
    """What was there when the file was rewritten counts."""
    storage = await filled(tmp_path, 3)
    rows = await storage.rows(ONE)
    await storage.rewrite(ONE, removed=[rows[2].id])
    assert await stored(storage) == ["x0", "x1"]
    assert (await storage.append(ONE, [entry("on")])).last_seq == 4
    assert await stored(storage) == ["x0", "x1", "on"]


# --- broken lines


async def test_a_broken_message_is_returned_unchanged(tmp_path: Path) -> None:
    """Its position can still be read, so that it can be set aside; the rest loads."""
    storage = await filled(tmp_path, 1, 1, 1)
    path = file_of(tmp_path)
    path.write_bytes(path.read_bytes().replace(b'"text":"x1"', b'"text":\xff\xfex1"'))
    rows = await storage.rows(ONE)
    assert [row.seq for row in rows] == [1, 2, 3]
    with pytest.raises(Corrupt):
        message_of(rows[1].body)
    assert await storage.set_aside(ONE, [2], "broken") == 1
    assert await stored(storage) == ["x0", "x2"]
    aside = aside_of(file_of(tmp_path, ".aside").read_bytes())
    assert aside is not None
    assert b"\xff\xfex1" in aside.raw


async def test_a_line_that_is_no_record_is_reported_and_skipped(tmp_path: Path) -> None:
    """As file:line; it stays until it is set aside."""
    storage = await filled(tmp_path, 1, 1, 1)
    path = file_of(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[3] = b"rubbish\n"
    path.write_bytes(b"".join(lines))
    assert await readable(storage) == ["x0", "x2"]
    assert [row.seq for row in await storage.rows(ONE, after=1)] == [2, 3]
    place = f"{ONE.digest[:2]}/{ONE.digest}.jsonl:4:"
    assert (await storage.verify())[0].split()[0] == place
    await storage.keep_windows(ONE, b'{"a":1}')
    assert b"rubbish\n" in path.read_bytes()
    assert await storage.set_aside(ONE, [], "no record") == 1
    assert [each for each in await storage.verify() if "missing" not in each] == []
    assert b"rubbish" not in path.read_bytes()


async def test_a_broken_head_that_is_not_the_last_harms_nothing(tmp_path: Path) -> None:
    """No message is missed, and none is reported; only the line is."""
    storage = await filled(tmp_path, 1, 1, 1)
    path = file_of(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[4] = b"rubbish\n"
    path.write_bytes(b"".join(lines))
    assert await stored(storage) == ["x0", "x1", "x2"]
    assert len(await storage.verify()) == 1
    assert await storage.set_aside(ONE, [], "no record") == 1
    assert await storage.verify() == []
    assert await stored(storage) == ["x0", "x1", "x2"]


@pytest.mark.parametrize("marker", [b'"stamp":', b'"names":', b'"document":"', b'"check":"'])
async def test_a_broken_last_head_does_not_lose_the_messages(tmp_path: Path, marker: bytes) -> None:
    """The session can't be written to until it is repaired; then its branches are as before."""
    storage = await filled(tmp_path, 1, 1)
    await storage.fork(ONE, parent=0, at=1)
    await storage.append(ONE, [entry("branch")], branch=1)
    before = await storage.session(ONE)
    assert before is not None
    path = file_of(tmp_path)
    raw = path.read_bytes()
    at = raw.rindex(marker) + len(marker) - 1
    broken = raw[:at] + b"#" + raw[at + 1 :]
    path.write_bytes(broken)
    for change in (
        storage.session(ONE),
        storage.append(ONE, [entry("a")]),
        storage.fork(ONE, parent=0, at=1),
        storage.keep_windows(ONE, WINDOW),
    ):
        with pytest.raises(Corrupt, match="history repair"):
            await change
    assert path.read_bytes() == broken
    assert await stored(storage) == ["x0", "x1"]
    assert len(await storage.verify()) == 2  # of the line, and of the session
    (listed,) = await storage.sessions()
    assert listed.identity == ONE
    with pytest.raises(Corrupt):
        tally_of(listed)
    await storage.set_aside(ONE, [], "mended")
    assert await storage.verify() == []
    after = await storage.session(ONE)
    assert after is not None
    assert (after.forks, after.active) == (before.forks, before.active)
    assert (after.version, after.last_seq) == (before.version, before.last_seq)
    assert [message_of(row.body).text for row in await storage.rows(ONE, branch=1)] == ["branch"]


async def test_a_broken_first_line_is_reported_and_replaced(tmp_path: Path) -> None:
    """The next write keeps it aside; all messages and heads are there."""
    storage = await filled(tmp_path, 1, 1)
    path = file_of(tmp_path)
    path.write_bytes(path.read_bytes().replace(b'"size":', b'"#ize":', 1))
    assert await stored(storage) == ["x0", "x1"]
    assert [problem.split()[0][-2:] for problem in await storage.verify()] == ["1:"]
    await storage.append(ONE, [entry("on")])
    assert await stored(storage) == ["x0", "x1", "on"]
    assert await storage.verify() == []
    aside = aside_of(file_of(tmp_path, ".aside").read_bytes())
    assert aside is not None
    assert b'"#ize"' in aside.raw


async def test_an_altered_but_readable_head_is_noticed(tmp_path: Path) -> None:
    """A history doesn't silently open on another branch."""
    storage = await filled(tmp_path, 1, 1)
    await storage.fork(ONE, parent=0, at=1)
    path = file_of(tmp_path)
    first, newline, rest = path.read_bytes().rpartition(b'"last":2')
    assert newline
    path.write_bytes(first + b'"last":1' + rest)
    with pytest.raises(Corrupt):
        await storage.session(ONE)


async def test_a_user_is_forgotten_despite_a_damaged_head(tmp_path: Path) -> None:
    """As long as the names can be read; otherwise the report says that something remains."""
    storage = await filled(tmp_path, 1, 1)
    path = file_of(tmp_path)
    raw = path.read_bytes()
    at = raw.rindex(b'"stamp"')
    path.write_bytes(raw[:at] + b"#" + raw[at + 1 :])
    unknown = SessionIdentity(user="Bob")
    await storage.append(unknown, [entry("a")])
    file_of(tmp_path, who=unknown).write_bytes(b"rubbish")
    erased = await storage.forget("Ana")
    assert (erased.sessions, erased.messages) == (1, 2)
    assert not path.exists()
    assert "without a readable head" in erased.remains[1]


async def test_forget_does_not_wait_for_its_own_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unreadable file is read again under its lock, unless that is already held."""
    storage = await filled(tmp_path, 1)
    file_of(tmp_path).write_bytes(b"rubbish")

    def waiting(_seconds: float) -> None:
        pytest.fail("it waits for itself")

    monkeypatch.setattr(directory, "sleep", waiting)
    erased = await storage.forget("Ana")
    assert erased.sessions == 0
    assert "1 files without a readable head" in erased.remains[1]


async def test_garbage_is_an_error_and_not_an_empty_session(tmp_path: Path) -> None:
    """It isn't overwritten."""
    storage = await filled(tmp_path, 1)
    file_of(tmp_path).write_bytes(b"rubbish")
    with pytest.raises(Corrupt):
        await storage.session(ONE)
    with pytest.raises(Corrupt):
        await storage.append(ONE, [entry("a")])
    assert file_of(tmp_path).read_bytes() == b"rubbish"


async def test_a_newer_version_is_not_treated_as_damage(tmp_path: Path) -> None:
    """It is rejected, and not changed."""
    storage = await filled(tmp_path, 1)
    with file_of(tmp_path).open("ab") as file:
        file.write(b'{"dragoman":3,"kind":"Record","value":{}}\n')
    before = file_of(tmp_path).read_bytes()
    with pytest.raises(StoreError, match="newer"):
        await storage.append(ONE, [entry("a")])
    assert file_of(tmp_path).read_bytes() == before


async def test_a_multi_line_body_stays_in_its_line(tmp_path: Path) -> None:
    """JSON is written on one line; an invalid body is kept as it is."""
    storage = await opened(tmp_path)
    good, bad = body_of(Message.user("half \ud800")), b'{"a\n\xff'
    pretty = good.replace(b",", b",\n")
    rows = [Row("1", pretty, 1.0, seq=1), Row("2", bad, 2.0, seq=2)]
    await storage.restore(Session(ONE, 1, 2, 1.0, 2.0), rows)
    first, second = await storage.rows(ONE)
    assert first.body == good
    with pytest.raises(Corrupt):
        message_of(second.body)
    assert ["message 2" in problem for problem in await storage.verify()] == [True]


async def test_a_line_may_be_formatted_in_another_way(tmp_path: Path) -> None:
    """With spaces; a usage may have a field called "message"."""
    await filled(tmp_path, 1, 1)
    path = file_of(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = json.dumps(json.loads(lines[1])).encode() + b"\n"
    usage = b'"usage":{"input":1,"extras":{"a":1,"message":{"b":[1]}}},"message":'
    lines[3] = lines[3].replace(b'"message":', usage, 1)
    path.write_bytes(b"".join(lines))
    one, two = await (await opened(tmp_path)).rows(ONE)
    assert json.loads(one.body)["kind"] == "Message"
    assert two.usage is not None
    assert two.usage.input == 1


# --- long files


async def test_a_new_process_finds_ids_of_a_long_file_without_reading_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Appending, finding by id and reading the end or a range read a small part of the file."""
    storage = await filled(tmp_path, *[500] * 20)
    await storage.append(ONE, [entry("last")])
    first = (await storage.rows(ONE, limit=1))[0]
    cold = await opened(tmp_path)
    read: list[int] = []
    pread = os.pread

    def counting(fd: int, size: int, offset: int) -> bytes:
        got = pread(fd, size, offset)
        read.append(len(got))
        return got

    monkeypatch.setattr(os, "pread", counting)
    with pytest.raises(DuplicateIds) as raised:
        await cold.append(ONE, [entry("a"), Entry(first.id, first.body, 1.0)])
    assert raised.value.ids == (first.id,)
    assert await cold.row(ONE, first.id) == first
    assert await cold.row(ONE, "absent") is None
    assert (await cold.append(ONE, [entry("a")])).last_seq == 10_002
    assert [row.seq for row in await cold.rows(ONE, limit=2, newest=True)] == [10_001, 10_002]
    assert [row.seq for row in await cold.rows(ONE, after=5000, limit=2)] == [5001, 5002]
    tail = await cold.rows(ONE, after=5, upto=7000, limit=2, newest=True)
    assert [row.seq for row in tail] == [6999, 7000]
    assert await cold.count(ONE) == 10_002
    assert sum(read) < file_of(tmp_path).stat().st_size / 2


async def test_the_table_of_ids_reflects_every_change(tmp_path: Path) -> None:
    """Whatever happens to the file or to the table, ids are found, and none is stored twice."""
    storage = await filled(tmp_path, 700, 1)
    rows = await storage.rows(ONE)
    table = file_of(tmp_path, ".ids")

    async def check(gone: str | None = None) -> None:
        storage = await opened(tmp_path)
        await storage.append(ONE, [entry("more")])
        for row in (rows[0], rows[350], rows[-1]):
            if row.id != gone:
                assert await storage.row(ONE, row.id) == row
                with pytest.raises(DuplicateIds):
                    await storage.append(ONE, [row])
        assert table.exists()

    await check()
    await storage.keep_windows(ONE, b'{"a":1}')
    await check()
    table.write_bytes(table.read_bytes()[:1000])
    await check()
    table.unlink()
    await check()
    await storage.rewrite(ONE, removed=[rows[350].id])
    assert await storage.row(ONE, rows[350].id) is None
    await check(gone=rows[350].id)
    assert await storage.count(ONE) == 700 + 5
    copy, kept = await storage.session(ONE), await storage.rows(ONE)
    assert copy is not None
    await storage.delete(ONE)
    assert not table.exists()
    assert await storage.restore(copy, kept)
    await check(gone=rows[350].id)


async def test_a_reader_creates_a_missing_table(tmp_path: Path) -> None:
    """So that later readers find messages without reading the whole file."""
    storage = await filled(tmp_path, 700, 1)
    rows = await storage.rows(ONE)
    await storage.close()
    table = file_of(tmp_path, ".ids")
    table.unlink()
    reader = await opened(tmp_path)
    assert await reader.row(ONE, rows[350].id) == rows[350]
    assert table.exists()
    assert await reader.row(ONE, rows[-1].id) == rows[-1]


async def test_the_cached_last_line_is_compared(tmp_path: Path) -> None:
    """Damage to it between two appends is noticed by the second."""
    storage = await filled(tmp_path, 3, 1)
    path = file_of(tmp_path)
    path.write_bytes(path.read_bytes()[:-1] + b"#")
    with pytest.raises(Corrupt, match="history repair"):
        await storage.session(ONE)
    await storage.set_aside(ONE, [], "test")
    await storage.append(ONE, [entry("more")])
    assert message_of((await storage.rows(ONE))[-1].body).text == "more"
    assert await storage.verify() == []


async def test_a_table_grows_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids are found in every state of it."""
    monkeypatch.setattr(ids, "_SMALL", 1000)
    storage = await opened(tmp_path)
    made = entries(3000)
    for start in range(0, 3000, 20):
        await storage.append(ONE, made[start : start + 20])
        assert await storage.row(ONE, made[start // 2].id) is not None
    assert await storage.count(ONE) == 3000
    for each in made[::97]:
        assert await storage.row(ONE, each.id) is not None
        assert await storage.row(ONE, f"{each.id}x") is None


async def test_a_damaged_table_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it is damaged or cut: no id is stored twice."""
    monkeypatch.setattr(ids, "_SMALL", 1000)
    storage = await filled(tmp_path, 500, 1)
    first = (await storage.rows(ONE, limit=1))[0]
    table = file_of(tmp_path, ".ids")
    raw = table.read_bytes()
    for at in (0, 30, 60, 2000, len(raw) - 1):
        for broken in (raw[:at] + b"#" + raw[at + 1 :], raw[:at]):
            table.write_bytes(broken)
            cold = await opened(tmp_path)
            with pytest.raises(DuplicateIds):
                await cold.append(ONE, [first])
            assert await cold.row(ONE, first.id) == first


@pytest.mark.parametrize("block", [16, 100, 8192])
async def test_blocks_of_any_size_give_the_same_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    """Forwards, backwards, and from any number on; lines may be longer than a block."""
    monkeypatch.setattr(log, "_BLOCK", block)
    monkeypatch.setattr(log, "_LARGE", block * 4)
    storage = await opened(tmp_path)
    for number in range(1, 13):
        await storage.append(ONE, [entry("y" * (number * 997 % 4000))])
    for after in range(14):
        rest = [row.seq for row in await storage.rows(ONE, after=after)]
        assert rest == list(range(after + 1, 13))
        end = await storage.rows(ONE, after=after, upto=11, limit=3, newest=True)
        assert [row.seq for row in end] == list(range(1, 12))[after:][-3:]


# --- durability and disks


async def test_a_full_disk_is_an_error_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A partial write is cut off again."""
    storage = await filled(tmp_path, 1, 1)
    before = file_of(tmp_path).read_bytes()

    def full(fd: int, raw: bytes, at: int) -> None:
        os.pwrite(fd, raw[:100], at)
        raise OSError(errno.ENOSPC, "no room for message text")

    with monkeypatch.context() as patch:
        patch.setattr(directory, "write_all", full)
        with pytest.raises(StoreError, match="disk is full; nothing was written") as raised:
            await storage.append(ONE, [entry("a")])
        assert raised.value.__context__ is None
    assert file_of(tmp_path).read_bytes() == before
    await storage.append(ONE, [entry("on")])
    assert await stored(storage) == ["x0", "x1", "on"]


def _append_with_little_room(root: Path, room: int) -> None:
    import asyncio
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    async def run() -> None:
        storage = await opened(root)
        for change in (
            storage.append(ONE, entries(50)),
            storage.rewrite(ONE, replaced=[Entry((await storage.rows(ONE))[0].id, b"1" * 9999, 1)]),
        ):
            try:
                await change
            except StoreError:
                continue
            sys.exit(1)

    asyncio.run(run())


async def test_a_file_that_may_not_grow_stays_intact(tmp_path: Path) -> None:
    """With a limit of the operating system, the write stops in its middle."""
    storage = await filled(tmp_path, 1, 1)
    before = file_of(tmp_path).read_bytes()
    process = spawn.Process(target=_append_with_little_room, args=(tmp_path, len(before) + 1000))
    process.start()
    process.join()
    assert process.exitcode == 0
    assert file_of(tmp_path).read_bytes() == before
    assert not file_of(tmp_path, ".tmp").exists()
    await storage.append(ONE, [entry("on")])
    assert await stored(storage) == ["x0", "x1", "on"]


async def test_power_durability_flushes_before_a_write_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file at every write, its directory for a new name; otherwise neither."""
    synced: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(stat.S_ISDIR(os.fstat(fd).st_mode)))
    storage = await opened(tmp_path, durability="power")
    await storage.append(ONE, [entry("a")])
    assert synced == [True, False, True]
    synced.clear()
    await storage.append(ONE, [entry("b")])
    assert synced == [False]
    synced.clear()
    await storage.append(ONE, entries(3))  # the last line covers the others
    assert synced == [False]
    synced.clear()
    await storage.clear(ONE, at=1.0)
    assert synced[-2:] == [False, True]
    synced.clear()
    await (await opened(tmp_path)).append(ONE, entries(3))
    assert synced == []


async def test_forget_removes_every_file_of_a_user(tmp_path: Path) -> None:
    """Records set aside as well, even of a deleted session."""
    storage = await filled(tmp_path, 400, 1)
    other = SessionIdentity(chat="8", user="Ana")
    await storage.append(other, entries(2))
    await storage.append(SessionIdentity(chat="9", user="Bob"), entries(1))
    for who in (ONE, other):
        await storage.set_aside(who, [1], "test")
        file_of(tmp_path, ".tmp", who).write_bytes(b"left by a crash")
    await storage.delete(other)
    erased = await storage.forget("Ana")
    assert (erased.sessions, erased.messages) == (1, 400)
    assert "backups" in erased.remains[0]
    left = {path.name for path in files_in(tmp_path) if path.is_file()} - {"lock"}
    assert left == {f"{SessionIdentity(chat='9', user='Bob').digest}.jsonl"}


async def test_listing_skips_foreign_files(tmp_path: Path) -> None:
    """Other files and directories are not touched."""
    storage = await filled(tmp_path, 1)
    (tmp_path / "notes").mkdir()
    (tmp_path / "aa").mkdir(exist_ok=True)
    (tmp_path / "aa" / "notes.jsonl").write_bytes(b"{}")
    assert [session.identity for session in await storage.sessions()] == [ONE]
    assert await storage.sessions(Filter(user="Bob")) == []
    assert await storage.verify() == []


async def test_a_store_that_is_not_open_is_an_error(tmp_path: Path) -> None:
    """Also after it was closed."""
    storage = FileStorage(tmp_path)
    with pytest.raises(StoreError, match="not open"):
        await storage.session(ONE)
    await storage.open()
    await storage.close()
    await storage.close()
    with pytest.raises(StoreError, match="not open"):
        await storage.session(ONE)


async def test_a_file_in_place_of_the_directory_is_an_error(tmp_path: Path) -> None:
    """The error says what is in the way."""
    (tmp_path / "here").write_bytes(b"mine")
    with pytest.raises(StoreError, match="file:here"):
        await opened(tmp_path / "here")


# --- many processes


def _write(root: Path, writer: int, count: int) -> None:
    import asyncio

    async def run() -> None:
        storage = FileStorage(root, blocking=writer % 2 == 0)
        await storage.open()
        for number in range(count):
            await storage.append(ONE, [entry(f"{writer}-{number}")])
        await storage.close()

    asyncio.run(run())


async def test_concurrent_processes_lose_and_mix_up_nothing(tmp_path: Path) -> None:
    """Numbers are contiguous, and each writer's messages are in its order."""
    writers = [spawn.Process(target=_write, args=(tmp_path, n, 100)) for n in range(4)]
    for process in writers:
        process.start()
    for process in writers:
        process.join()
    storage = await opened(tmp_path)
    rows = await storage.rows(ONE)
    assert [row.seq for row in rows] == list(range(1, 401))
    said = [message_of(row.body).text.split("-") for row in rows]
    for writer in "0123":
        assert [number for who, number in said if who == writer] == [str(n) for n in range(100)]
    assert await version(storage) == 400
    assert await storage.verify() == []


async def test_reading_during_writes_reports_no_damage(tmp_path: Path) -> None:
    """The first line is overwritten all the time: it is never seen as damaged or ahead."""
    storage = await filled(tmp_path, 1)
    writers = [spawn.Process(target=_write, args=(tmp_path, n, 150)) for n in range(2)]
    for process in writers:
        process.start()
    while any(process.is_alive() for process in writers):
        session = await storage.session(ONE)
        assert session is not None
        tally = tally_of(session)
        assert tally is not None
        held = [row for row in await storage.rows(ONE) if row.seq <= session.last_seq]
        assert len(held) == tally.rows == session.last_seq
        assert await storage.verify() == []
    assert await storage.count(ONE) == 301


def _write_until_killed(root: Path, acknowledged: Path) -> None:
    import asyncio

    async def run() -> None:
        storage = await opened(root)
        told = os.open(acknowledged, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        for number in range(1_000_000):
            group = entries(number % 4 + 1, "z" * (number % 7 * 3000))
            await storage.append(ONE, group)
            os.write(told, "".join(f"{each.id}\n" for each in group).encode())
            if number % 50 == 49:
                await storage.keep_windows(ONE, WINDOW if number % 100 == 99 else None)
                await storage.rewrite(ONE, replaced=[group[0]])

    asyncio.run(run())


async def test_a_killed_writer_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """Repeatedly; nothing is duplicated, and every write is complete or absent."""
    acknowledged = tmp_path / "acknowledged"
    storage = await opened(tmp_path / "in")
    for _ in range(5):
        already = acknowledged.stat().st_size if acknowledged.exists() else 0
        process = spawn.Process(target=_write_until_killed, args=(tmp_path / "in", acknowledged))
        process.start()
        while process.is_alive() and (
            not acknowledged.exists() or acknowledged.stat().st_size < already + 5000
        ):
            process.join(0.01)
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
        rows = await storage.rows(ONE)
        stored = [row.id for row in rows]
        assert set(acknowledged.read_text().split()) <= set(stored)
        assert len(set(stored)) == len(stored)
        assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
        for row in rows:
            message_of(row.body)
        await storage.append(ONE, [entry("still here")])
        assert [p for p in await storage.verify() if "incomplete" not in p] == []


async def test_reading_creates_no_session(tmp_path: Path) -> None:
    """Nor does a change that needs an existing one."""
    storage = await opened(tmp_path)
    assert await storage.session(ONE) is None
    assert await storage.rows(ONE) == []
    with pytest.raises(NotFound):
        await storage.keep_windows(ONE, None)
    assert {path.name for path in files_in(tmp_path) if path.is_file()} <= {"lock"}
