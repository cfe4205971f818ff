"""The command as a process: pipes, signals, workers and memory."""

from __future__ import annotations

import gc
import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dragoman.cli.conversion import Job
from dragoman.cli.exit_codes import FAULT, FILES, Ending
from dragoman.cli.workers import outcomes
from dragoman.providers.documents.batches import Lines
from dragoman.providers.documents.splitting import Piece
from tests.cli.samples import SECRET, chat, jsonl, lossy, many

DRAGOMAN = [sys.executable, "-m", "dragoman.cli"]
CONVERT = [*DRAGOMAN, "convert"]


def run(*arguments: str, stdin: bytes = b"", **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end."""
    command = [*DRAGOMAN, *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, check=False, **options)


def test_help_imports_neither_rich_nor_the_model() -> None:
    """`--help` of the program and of its commands stays fast."""
    code = (
        "import sys\n"
        "from dragoman.cli.commands import dragoman\n"
        "for words in (['--help'], ['convert', '--help'], ['show', '--help'], ['check', '-h']):\n"
        "    dragoman(words, standalone_mode=False)\n"
        "heavy = ('rich', 'msgspec', 'dragoman.model', 'dragoman.wire', 'multiprocessing')\n"
        "found = [name for name in sys.modules if name.startswith(heavy)]\n"
        "sys.exit(','.join(found) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_it_works_in_a_pipe(jobs: str) -> None:
    """Standard output has only the converted input."""
    done = run("convert", "-", "--to", "openai-chat", "--jobs", jobs, stdin=many(4000))
    assert (done.returncode, done.stderr) == (0, b"")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        chat(f"Question {index}") for index in range(4000)
    ]


def test_a_document_is_written_before_the_next_is_read() -> None:
    """Input that arrives slowly is answered at once."""
    with subprocess.Popen(
        [*CONVERT, "-", "--to", "openai-chat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for text in ("one", "two"):
            process.stdin.write(jsonl(chat(text)))
            process.stdin.flush()
            assert json.loads(process.stdout.readline()) == chat(text)
        process.stdin.close()
        assert process.wait(60) == 0


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_reader_that_closes_the_pipe_ends_it_quietly(jobs: str, tmp_path: Path) -> None:
    """As with `head`; the exit code is that of the signal."""
    (tmp_path / "in.jsonl").write_bytes(many(20_000))
    with subprocess.Popen(
        [*CONVERT, str(tmp_path / "in.jsonl"), "--to", "anthropic", "--jobs", jobs],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 141


def workers_of(pid: int) -> list[int]:
    """The running worker processes of a process."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = stat.read_text().rpartition(")")[2].split()[1]
            is_worker = b"spawn_main" in stat.with_name("cmdline").read_bytes()
        except OSError:  # gone by now
            continue
        if parent == str(pid) and is_worker:
            found.append(int(stat.parent.name))
    return found


def is_alive(pid: int) -> bool:
    """Whether a process still runs."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")


@pytest.mark.skipif(os.name == "nt", reason="there are no such signals")
@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        (signal.SIGINT, 130, b"dragoman: interrupted\n"),
        (signal.SIGTERM, 143, b"dragoman: terminated\n"),
    ],
)
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupt_leaves_nothing_behind(
    number: signal.Signals, code: int, said: bytes, jobs: str, tmp_path: Path
) -> None:
    """No partial file, worker or traceback remains; Ctrl-C is sent to the whole process group."""
    out = tmp_path / "out.jsonl"
    with subprocess.Popen(
        [*CONVERT, "-", "--to", "openai-chat", "--jobs", jobs, "--out", str(out)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(many(4000))
        process.stdin.flush()
        wait_for(lambda: any(part.stat().st_size for part in tmp_path.glob(".*.part")))
        if number == signal.SIGINT:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        assert process.stderr.read() == said
        assert process.wait(60) == code
    assert list(tmp_path.iterdir()) == []


@needs_proc
def test_an_interrupt_during_the_start_of_workers_gives_no_traceback(tmp_path: Path) -> None:
    """They get Ctrl-C too, before they have begun to ignore it."""
    with subprocess.Popen(
        [*CONVERT, "-", "--to", "openai-chat", "--jobs", "3", "--out", str(tmp_path / "out")],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(many(4000))
        process.stdin.flush()
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        wait_for(
            lambda: len(children.read_text().split()) > 2
        )  # the resource tracker and some workers
        os.killpg(process.pid, signal.SIGINT)
        assert process.stderr.read() == b"dragoman: interrupted\n"
        assert process.wait(60) == 130


@needs_proc
def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    """Even if it was killed."""
    with subprocess.Popen(
        [*CONVERT, "-", "--to", "openai-chat", "--jobs", "2", "--out", str(tmp_path / "out")],
        stdin=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        process.stdin.write(many(6000))
        process.stdin.flush()
        wait_for(lambda: len(workers_of(process.pid)) >= 2)
        wait_for(lambda: any(part.stat().st_size for part in tmp_path.glob(".*.part")))
        workers = workers_of(process.pid)
        process.kill()
        process.wait(60)
        wait_for(lambda: not any(map(is_alive, workers)))


@needs_proc
def test_a_worker_that_dies_is_reported(tmp_path: Path) -> None:
    """The command ends with one line and leaves no file."""
    with subprocess.Popen(
        [*CONVERT, "-", "--to", "openai-chat", "--jobs", "2", "--out", str(tmp_path / "out")],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(many(6000))
        process.stdin.flush()
        wait_for(lambda: any(part.stat().st_size for part in tmp_path.glob(".*.part")))
        for worker in workers_of(process.pid):
            os.kill(worker, signal.SIGKILL)
        try:
            process.stdin.write(many(6000))
            process.stdin.close()
        except BrokenPipeError:
            pass
        told = process.stderr.read()
        assert told.startswith(b"dragoman: a worker process died, ")
        assert told.count(b"\n") == 1
        assert process.wait(60) == 4
    assert list(tmp_path.iterdir()) == []


@needs_proc
def test_a_worker_that_dies_while_batches_wait_is_reported(tmp_path: Path) -> None:
    """The command ends with one line; what it wrote before stays, in whole documents."""
    (tmp_path / "in.jsonl").write_bytes(many(40_000))
    with (
        (tmp_path / "in.jsonl").open("rb") as stdin,
        subprocess.Popen(
            [*CONVERT, "-", "--to", "openai-chat", "--jobs", "2"],
            bufsize=0,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process,
    ):
        assert process.stdout is not None
        first = process.stdout.read(1)  # it waits for a reader of the rest, and can't be done
        os.kill(workers_of(process.pid)[0], signal.SIGKILL)
        try:
            more, told = process.communicate(timeout=60)
        finally:
            process.kill()
    assert told == b"dragoman: a worker process died, perhaps out of memory; lower --jobs\n"
    assert process.returncode == FILES
    lines = (first + more).splitlines()
    assert 0 < len(lines) < 40_000
    assert [json.loads(line) for line in lines] == [
        chat(f"Question {index}") for index in range(len(lines))
    ]


def wait_for(happens: Any, seconds: float = 60) -> None:
    """Wait for a condition; fail if it never holds."""
    end = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


PEAK = """
import resource, sys
from dragoman.cli.commands import dragoman
try:
    dragoman(sys.argv[1:])
finally:
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(max(own, children), file=sys.stderr)
"""


def peak(*arguments: str) -> int:
    """The peak memory of a command or of one of its workers, in kB."""
    command = [sys.executable, "-c", PEAK, *arguments]
    done = subprocess.run(command, capture_output=True, check=True, stdin=subprocess.DEVNULL)
    return int(done.stderr.splitlines()[-1])


def written(path: Path, megabytes: int, *, array: bool) -> None:
    """A file of about that size."""
    document = json.dumps(chat("x" * 10_000)).encode()
    number = megabytes * 1_000_000 // len(document)
    with path.open("wb") as file:
        file.write(b"[" if array else b"")
        for index in range(number):
            file.write((b"," if array else b"\n") * bool(index) + document)
        file.write(b"]" if array else b"\n")


@pytest.mark.skipif(sys.platform != "linux", reason="counts kB as Linux does")
@pytest.mark.parametrize("jobs", [pytest.param("1", marks=pytest.mark.thorough), "2"])
@pytest.mark.parametrize("array", [False, True])
@pytest.mark.parametrize("megabytes", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_memory_does_not_grow_with_the_input(
    megabytes: int, array: bool, jobs: str, tmp_path: Path
) -> None:
    """A large input takes only a fraction of its size more than a small one."""
    small, large = tmp_path / "small", tmp_path / "large"
    written(small, 2, array=array)
    written(large, megabytes, array=array)
    arguments = ("convert", "--to", "anthropic", "--jobs", jobs, "--out", str(tmp_path / "out"))
    more = peak(*arguments, str(large)) - peak(*arguments, str(small))
    assert more < 12_000  # kB: a few batches


def test_errors_quote_no_content() -> None:
    """Content is only on standard output."""
    text = jsonl(chat(SECRET))[:-30] + b"\n" + jsonl({"role": "user", "content": SECRET})
    for command in (("convert", "--to", "gemini", "--keep-going"), ("check", "--as", "gemini"),
                    ("show",)):  # fmt: skip
        done = run(*command, "-", stdin=text)
        assert done.returncode == 3
        assert SECRET.encode() not in done.stderr
        assert b"Traceback" not in done.stderr


def on_terminal(*arguments: str, stdout: bool = False) -> str:
    """The terminal output of a command: its standard error, or both streams."""
    import pty

    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(
        [*DRAGOMAN, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=theirs if stdout else subprocess.DEVNULL,
        stderr=theirs,
        env=environment,
    ) as process:
        os.close(theirs)
        seen = b""
        while True:
            try:
                more = os.read(ours, 65536)
            except OSError:  # the other side is closed
                break
            if not more:
                break
            seen += more
        os.close(ours)
        assert process.wait(60) in {0, 1}
    return seen.decode()


needs_terminal = pytest.mark.skipif(os.name == "nt", reason="there are no such terminals")


@needs_terminal
def test_a_terminal_gets_a_progress_bar_and_a_table(tmp_path: Path) -> None:
    """While the output goes elsewhere."""
    (tmp_path / "in.jsonl").write_bytes(jsonl(*[lossy()] * 3000))
    seen = on_terminal("convert", str(tmp_path / "in.jsonl"), "--to", "anthropic")
    assert "━" in seen
    assert "kB" in seen
    assert "what happened" in seen
    assert "\x1b[" in seen


@needs_terminal
def test_no_progress_bar_mixes_with_the_output(tmp_path: Path) -> None:
    """If both go to one terminal, only the output is shown."""
    (tmp_path / "in.jsonl").write_bytes(jsonl(chat()))
    seen = on_terminal("convert", str(tmp_path / "in.jsonl"), "--to", "openai-chat", stdout=True)
    assert json.loads(seen) == chat()


@needs_terminal
def test_a_terminal_gets_colours(tmp_path: Path) -> None:
    """Conversations and findings have colours, and rows fit the width."""
    (tmp_path / "in.json").write_text(json.dumps(chat("word " * 100, store=True)))
    shown = on_terminal("show", str(tmp_path / "in.json"), stdout=True)
    assert "\x1b[32m\x1b[1muser" in shown
    assert 100 < max(map(len, shown.splitlines())) <= 120
    checked = on_terminal("check", str(tmp_path / "in.json"), "--as", "groq", stdout=True)
    assert "\x1b[31merror" in checked


def test_a_table_comes_before_the_summary() -> None:
    """Also if both streams go to one place, as with `2>&1`."""
    command = [sys.executable, "-m", "dragoman.cli", "check", "--to", "openai", "--table", "-"]
    done = subprocess.run(
        command, input=jsonl({"messages": []}), check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    lines = done.stdout.decode().splitlines()
    assert lines[0].startswith("where ")
    assert lines[-1].startswith("dragoman: ")


class Killed(NamedTuple):
    """A batch whose worker is killed, maybe after the first bytes of its result."""

    half: bool

    def documents(self) -> Iterator[Piece]:
        """Nothing: the process ends."""
        if self.half:
            pipe = next(one for one in gc.get_objects() if isinstance(one, Connection))
            os.write(pipe.fileno(), struct.pack("!i", 1000) + b"half")
        os.kill(os.getpid(), signal.SIGKILL)
        return iter(())


class Faulty(NamedTuple):
    """A batch that fails."""

    def documents(self) -> Iterator[Piece]:
        """Nothing: it raises, as only a bug of ours would."""
        raise ZeroDivisionError(SECRET)


@pytest.mark.skipif(os.name == "nt", reason="there are no such signals")
@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("before", [0, 5])
def test_a_worker_that_is_killed_is_noticed(half: bool, before: int) -> None:
    """At its first batch or later, even in the middle of writing; what was before it is kept.

    `ProcessPoolExecutor` may wait for ever for the rest.
    """
    lines = [Lines("-", 1, jsonl(chat("x")))] * before
    batches: Any = [*lines, Killed(half), *lines]
    found = outcomes(Job("openai-chat", "anthropic"), iter(batches), jobs=2)
    assert [next(found).converted for _ in range(before)] == [1] * before
    with pytest.raises(Ending, match="a worker process died") as ended:
        next(found)
    assert ended.value.code == FILES


def test_an_unexpected_error_in_a_worker_is_reported() -> None:
    """With its type and place, never its text; there is no traceback."""
    batches: Any = [Faulty()]
    with pytest.raises(Ending, match="ZeroDivisionError at test_processes") as ended:
        list(outcomes(Job("openai-chat", "anthropic"), iter(batches), jobs=2))
    assert ended.value.code == FAULT
    assert SECRET not in str(ended.value)
