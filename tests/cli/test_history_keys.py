"""Keys of encrypted stores on the command line: read from files, and never shown."""

from __future__ import annotations

import base64
import json
import os
import sqlite3
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from dragoman import ChatHistory, Message, SessionIdentity, Usage
from dragoman.cli.commands import dragoman as command
from dragoman.cli.history.keys import decoded, needs_keys, write_key
from dragoman.errors import Corrupt
from dragoman.history import BlockingChatHistory, SealedStorage, storage_at
from dragoman.model import Origin, portal

pytest.importorskip("cryptography")

ANA = SessionIdentity(agent="guide", chat="7", user="Ana")
KEY = bytes(range(100, 132))
OTHER = bytes(range(50, 82))


class Safe:
    """An encrypted store with a session, and its key files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "sealed.db"
        self.url = f"sqlite:///{self.file}"
        self.key, self.other = folder / "2026.key", folder / "2027.key"
        for path, key in ((self.key, KEY), (self.other, OTHER)):
            path.write_text(key.hex() + "\n")
            path.chmod(0o600)
        with _history(self.url, KEY, "2026") as history:
            self.first = history.add("Where is the Old Bridge?")
            answer = Message.assistant(
                "In Mostar.", usage=Usage(input=10, output=4),
                origin=Origin(dialect="anthropic", model="claude-x"),
            )  # fmt: skip
            history.add(answer)

    @property
    def keyed(self) -> tuple[str, str]:
        """The option that gives its key."""
        return "--key-file", f"2026={self.key}"

    def run(self, name: str, *arguments: str) -> Result:
        """Run a command on it."""
        return CliRunner().invoke(command, ["history", name, *arguments, "--store", self.url])

    def damage(self, statement: str) -> None:
        """Change a value in the database."""
        with sqlite3.connect(self.file) as connection:
            connection.execute(statement)
        connection.close()


@contextmanager
def _history(url: str, key: bytes, id: str, **config: Any) -> Generator[BlockingChatHistory]:
    """The history in the store, opened with a key; the store is closed with it."""
    inner, _ = storage_at(url, blocking=True)
    storage = SealedStorage(inner, keys={id: key}, current=id, accept_plain=False)
    try:
        with ChatHistory.open_sync(ANA, storage, config) as history:
            yield history
    finally:
        portal.run_inline(storage.close())


@pytest.fixture
def safe(tmp_path: Path) -> Safe:
    """An encrypted store with a session."""
    return Safe(tmp_path)


def test_every_command_works_with_the_key(safe: Safe) -> None:
    """The output is that of an unencrypted store."""
    (listed,) = json.loads(safe.run("list", *safe.keyed).stdout)
    assert (listed["first_line"], listed["model"]) == ("Where is the Old Bridge?", "claude-x")
    assert listed["unreadable"] is None
    assert "In Mostar." in safe.run("show", "7", "--table", *safe.keyed).stdout
    hits = json.loads(safe.run("search", "old", "BRIDGE", *safe.keyed).stdout)
    assert [hit["id"] for hit in hits] == [safe.first.id]
    assert json.loads(safe.run("stats", "--by", "model", *safe.keyed).stdout)[0]["total"] == 14
    assert json.loads(safe.run("verify", *safe.keyed).stdout) == []
    assert json.loads(safe.run("fork", "7", safe.first.id, *safe.keyed).stdout)["branch"] == 1
    assert len(json.loads(safe.run("branches", "7", *safe.keyed).stdout)) == 2
    assert safe.run("switch", "7", "0", *safe.keyed).exit_code == 0
    exported = safe.run("export", *safe.keyed)
    assert "Old Bridge" in exported.stdout
    assert "not encrypted" in exported.stderr
    assert safe.run("delete", "7", "--yes", *safe.keyed).exit_code == 0
    (safe.folder / "lines").write_text(exported.stdout)
    assert safe.run("import", str(safe.folder / "lines"), *safe.keyed).exit_code == 0
    assert b"Old Bridge" not in safe.file.read_bytes()
    assert "In Mostar." in safe.run("show", "7", "--table", *safe.keyed).stdout
    assert json.loads(safe.run("forget", "Ana", "--yes", *safe.keyed).stdout)["sessions"] == 1


def test_without_the_key_the_error_says_what_to_pass(safe: Safe) -> None:
    """It names the key's id; commands that need no key work."""
    shown = safe.run("show", "7")
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert "encrypted with key '2026': pass it with --key-file 2026=FILE" in shown.stderr
    (listed,) = json.loads(safe.run("list").stdout)
    assert (listed["first_line"], listed["unreadable"]) == (None, "encrypted")
    assert (listed["messages"], listed["model"]) == (2, "claude-x")
    found = safe.run("search", "bridge")
    assert "1 session could not be searched (encrypted): pass the keys" in found.stderr
    assert "--key-file ID=FILE" in safe.run("verify").stderr
    assert "--key-file ID=FILE" in safe.run("rotate").stderr
    assert safe.run("rotate").exit_code == 2
    assert "SealedMessage" in safe.run("export").stdout


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"value":{"key":"a"}}', "with key 'a': pass it with --key-file a=FILE"),
        (b'{"value":{"key":7}}', "encrypted: pass the keys, each with --key-file ID=FILE"),
        (b'{"value":{"key":""}}', "encrypted: pass the keys, each with --key-file ID=FILE"),
        (b'{"value":[]}', "encrypted: pass the keys, each with --key-file ID=FILE"),
        (b"[]", "encrypted: pass the keys, each with --key-file ID=FILE"),
        (b"\xff", "encrypted: pass the keys, each with --key-file ID=FILE"),
    ],
)
def test_a_damaged_record_does_not_hide_that_keys_are_needed(body: bytes, said: str) -> None:
    """The key's id is reported if it can be read."""
    assert needs_keys(body).endswith(said)


def test_keys_come_from_the_environment(safe: Safe, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable names the key files; options override it and add to it."""
    monkeypatch.setenv("DRAGOMAN_HISTORY_KEYS", f"2026={safe.key}{os.pathsep}2027={safe.other}")
    assert "--current-key" in safe.run("show", "7").stderr
    monkeypatch.setenv("DRAGOMAN_HISTORY_CURRENT_KEY", "2026")
    assert safe.run("show", "7").exit_code == 0
    wrong = safe.run("show", "7", "--key-file", f"2026={safe.other}")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert "2026" in wrong.stderr


def test_a_chat_is_encrypted_with_the_same_options(safe: Safe) -> None:
    """Otherwise it would be the only plain-text session of the store."""
    arguments = ["chat", "echo:", "--session", "new", "--store", safe.url, *safe.keyed]
    for said in ("Between us", "As before"):
        result = CliRunner().invoke(command, arguments, input=f"{said}\n")
        assert (result.exit_code, result.stdout) == (0, f"{said}\n")
    assert b"Between us" not in safe.file.read_bytes()
    assert "Between us" in safe.run("show", "new", "--table", *safe.keyed).stdout
    blind = CliRunner().invoke(command, arguments[:-2], input="Hello\n")
    assert blind.exit_code == 2
    assert "encrypted" in blind.stderr


def test_rotation_leaves_nothing_under_the_old_key(safe: Safe) -> None:
    """Rotation needs both keys; afterwards the new one is enough."""
    both = (*safe.keyed, "--key-file", f"2027={safe.other}")
    assert "there are 2 keys" in safe.run("rotate", *both).stderr
    done = safe.run("rotate", *both, "--current-key", "2027")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["sealed"] >= 2
    assert safe.run("show", "7", "--key-file", f"2027={safe.other}").exit_code == 0
    old = safe.run("show", "7", *safe.keyed)
    assert (old.exit_code, old.stdout) == (2, "")
    assert "'2027' is missing" in old.stderr
    again = safe.run("rotate", "--table", "--key-file", f"2027={safe.other}")
    assert "re-encrypted" in again.stderr


def test_a_store_is_encrypted_by_a_rotation_that_accepts_plain_text(safe: Safe) -> None:
    """Plain text must be accepted explicitly, since it isn't authenticated."""
    url = f"sqlite:///{safe.folder}/plain.db"
    with ChatHistory.open_sync(ANA, url) as history:
        history.add("Out in the open")
    options = ["--store", url, *safe.keyed]
    refused = CliRunner().invoke(command, ["history", "show", "7", *options])
    assert "Out in the open" not in refused.stdout
    assert "`dragoman history rotate --accept-plain`" in refused.stderr
    assert refused.exit_code == 2
    accepted = CliRunner().invoke(command, ["history", "show", "7", *options, "--accept-plain"])
    assert "Out in the open" in accepted.stdout
    repaired = CliRunner().invoke(command, ["history", "repair", *options])
    assert "0 records moved aside" in repaired.stderr
    assert "--accept-plain" in json.loads(repaired.stdout)[0]["problem"]
    assert repaired.exit_code == 1
    done = CliRunner().invoke(command, ["history", "rotate", *options, "--accept-plain"])
    assert json.loads(done.stdout)["sealed"] >= 1
    assert (
        "Out in the open" in CliRunner().invoke(command, ["history", "show", "7", *options]).stdout
    )


def test_an_altered_record_is_found_with_the_key(safe: Safe) -> None:
    """It is reported by session and number, as in `ChatHistory.damaged`, and a repair moves it."""
    statement = (
        'UPDATE messages SET body = CAST(replace(body, \'"data":"\', \'"data":"AAAA\') AS BLOB)'
    )
    safe.damage(f"{statement} WHERE seq = 1")
    found = safe.run("verify", *safe.keyed)
    assert found.exit_code == 1
    named = [each for each in json.loads(found.stdout) if each["seq"] is not None]
    assert {(each["session"], each["seq"]) for each in named} == {(ANA.digest, 1)}
    with pytest.raises(Corrupt, match="accept_damaged"), _history(safe.url, KEY, "2026"):
        pass
    assert safe.run("export", *safe.keyed).stdout.count("In Mostar.") == 1
    with _history(safe.url, KEY, "2026", accept_damaged=True) as history:
        assert len(history.messages()) == 1
        assert [each.seq for each in history.damaged] == [1]
    assert "1 record moved aside" in safe.run("repair", *safe.keyed).stderr
    with _history(safe.url, KEY, "2026") as history:
        assert len(history.messages()) == 1


# --- key files


@pytest.mark.parametrize(
    "content",
    [
        KEY,
        KEY.hex().encode(),
        KEY.hex().upper().encode() + b"\r\n",
        base64.b64encode(KEY) + b"\n",
        base64.urlsafe_b64encode(KEY).rstrip(b"="),
    ],
)
def test_keys_are_read_in_the_forms_that_tools_write(safe: Safe, content: bytes) -> None:
    """Raw bytes, hexadecimal digits, and base64."""
    safe.key.write_bytes(content)
    assert safe.run("show", "7", *safe.keyed).exit_code == 0


@given(st.binary(min_size=32, max_size=32))
def test_every_key_has_three_forms(key: bytes) -> None:
    """Raw bytes, hexadecimal digits and base64 all decode to the same key."""
    assert decoded(key) == key
    for text in (key.hex().encode(), base64.b64encode(key), base64.urlsafe_b64encode(key)):
        assert decoded(text + b"\n") == decoded(text) == key


@given(st.binary(max_size=200).filter(lambda raw: len(raw) != 32))
def test_nothing_else_is_a_key(raw: bytes) -> None:
    """Anything decoded as a key is one of these forms."""
    key = decoded(raw)
    if key is not None:
        forms = {key.hex().encode(), base64.b64encode(key), base64.urlsafe_b64encode(key)}
        text = raw.strip()
        assert len(key) == 32
        assert text.lower() in forms or len(text.rstrip(b"=")) == 43


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 31, KEY + b"\x00", b"y" * 5000])
def test_a_file_without_a_key_is_rejected_without_its_content(safe: Safe, content: bytes) -> None:
    """It may be half a key, or another secret."""
    safe.key.write_bytes(content)
    result = safe.run("show", "7", *safe.keyed)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "the file of key '2026' is not a valid key" in result.stderr
    assert "short" not in result.stderr


@pytest.mark.parametrize(
    ("option", "code"),
    [
        ("2026=nowhere.key", 4),
        ("2026=.", 4),
        ("2026=/dev/urandom", 2),
        ("2026=a\x00b", 4),
        ("2026=~nobody-here/key", 4),
        ("2026=", 2),
        ("=file", 2),
        ("file", 2),
        ("", 2),
    ],
)
def test_an_option_that_names_no_key_is_rejected(safe: Safe, option: str, code: int) -> None:
    """The error is one line."""
    result = safe.run("list", "--key-file", option)
    assert (result.exit_code, result.stderr.count("\n")) == (code, 1)


@pytest.mark.parametrize("text", [KEY.hex(), base64.b64encode(KEY).decode()])
@pytest.mark.parametrize("form", ["{}", "2026={}", "{}=2026"])
def test_a_key_on_the_command_line_is_rejected_and_not_repeated(
    safe: Safe, text: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other users can see arguments, and errors end up in logs."""
    by_option = safe.run("list", "--key-file", form.format(text))
    monkeypatch.setenv("DRAGOMAN_HISTORY_KEYS", form.format(text))
    for result in (by_option, safe.run("list")):
        assert result.exit_code == 2
        assert "put it in a file" in result.stderr
        assert text.rstrip("=") not in result.output


def test_a_repeated_key_id_is_a_usage_error(safe: Safe) -> None:
    """It is unclear which of the two keys is meant."""
    result = safe.run("list", *safe.keyed, "--key-file", f"2026={safe.other}")
    assert (result.exit_code, "given twice" in result.stderr) == (2, True)


@pytest.mark.parametrize("option", [["--current-key", "2026"], ["--accept-plain"]])
def test_key_options_need_a_key(safe: Safe, option: list[str]) -> None:
    """Otherwise they would be ignored silently."""
    result = safe.run("list", *option)
    assert (result.exit_code, "--key-file ID=FILE" in result.stderr) == (2, True)
    unknown = safe.run("list", *safe.keyed, "--current-key", "1999")
    assert (unknown.exit_code, "--key-file ID=FILE" in unknown.stderr) == (2, True)


@pytest.mark.skipif(os.name != "posix", reason="there are no such permissions")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_a_key_that_others_can_read_gives_a_warning(safe: Safe, mode: int) -> None:
    """The warning says what to do."""
    assert safe.run("list", *safe.keyed).stderr == ""
    safe.key.chmod(mode)
    result = safe.run("list", *safe.keyed)
    assert result.exit_code == 0
    assert f"chmod 600 {safe.key}" in result.stderr


def test_a_new_key_file_is_private(safe: Safe) -> None:
    """An existing file stays unchanged, and the key is printed nowhere."""
    file = safe.folder / "new.key"
    result = CliRunner().invoke(command, ["history", "keygen", str(file)])
    assert result.exit_code == 0
    key = decoded(file.read_bytes())
    assert key is not None
    assert key.hex() not in result.output
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    again = CliRunner().invoke(command, ["history", "keygen", str(file)])
    assert (again.exit_code, decoded(file.read_bytes())) == (4, key)
    other = CliRunner().invoke(command, ["history", "keygen", str(safe.folder / "no" / "dir")])
    assert (other.exit_code, other.stderr.count("\n")) == (4, 1)
    assert (
        safe.run("rotate", *safe.keyed, "--key-file", f"n={file}", "--current-key", "n").exit_code
        == 0
    )


def test_a_new_key_is_flushed_to_disk_before_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a power cut could lose it with everything encrypted; half a key is removed."""
    file = tmp_path / "new.key"
    synced: list[bytes] = []
    monkeypatch.setattr(
        os, "fsync", lambda _: synced.extend(each.read_bytes() for each in tmp_path.iterdir())
    )
    write_key(str(file), KEY)
    assert synced == [KEY.hex().encode() + b"\n"]

    def fail(_handle: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(PermissionError):
        write_key(str(tmp_path / "other.key"), KEY)
    assert [*tmp_path.iterdir()] == [file]
