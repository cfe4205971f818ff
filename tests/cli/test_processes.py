"""The command as a process among others: pipes, signals, workers, memory."""

from __future__ import annotations

import gc
import json
import os
import signal
import struct
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.workers import _Watch
from tests.cli.samples import SECRET, chat, jsonl, lossy, many

DRAGOMAN = [sys.executable, "-m", "dragoman.cli"]
CONVERT = [*DRAGOMAN, "convert"]


def run(*arguments: str, stdin: bytes = b"", **options: Any) -> subprocess.CompletedProcess[bytes]:
    """A command that has ended."""
    command = [*DRAGOMAN, *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, check=False, **options)


def test_help_loads_neither_rich_nor_the_model() -> None:
    """So that it is there at once; nor do the commands' own help texts."""
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
    """What comes in by standard input goes out by standard output, and nothing else does."""
    done = run("convert", "-", "--to", "openai-chat", "--jobs", jobs, stdin=many(4000))
    assert (done.returncode, done.stderr) == (0, b"")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        chat(f"Question {index}") for index in range(4000)
    ]


def test_a_document_comes_out_before_the_next_goes_in() -> None:
    """A pipe that is fed slowly is answered at once."""
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
def test_a_reader_that_goes_away_ends_it_quietly(jobs: str, tmp_path: Path) -> None:
    """As `head` does; the exit code is the one that the signal would give."""
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
    """The workers that a process started and that still run."""
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
    """No half of a file, no worker, no traceback; Ctrl-C goes to the whole group."""
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
def test_an_interrupt_of_workers_that_still_start_is_no_traceback(tmp_path: Path) -> None:
    """They are in the group that Ctrl-C goes to, and have not yet said that they ignore it."""
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
        wait_for(lambda: len(children.read_text().split()) > 2)  # the tracker, and some workers
        os.killpg(process.pid, signal.SIGINT)
        assert process.stderr.read() == b"dragoman: interrupted\n"
        assert process.wait(60) == 130


@needs_proc
def test_workers_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    """Also where that had no time to say so."""
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
    """It is not waited for."""
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


def wait_for(happens: Any, seconds: float = 60) -> None:
    """Wait until something is so; fail where it never is."""
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
    """The most memory that a command took, or one of its workers, in kB."""
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
    """What a large input takes beyond a small one is a fraction of its size."""
    small, large = tmp_path / "small", tmp_path / "large"
    written(small, 2, array=array)
    written(large, megabytes, array=array)
    arguments = ("convert", "--to", "anthropic", "--jobs", jobs, "--out", str(tmp_path / "out"))
    more = peak(*arguments, str(large)) - peak(*arguments, str(small))
    assert more < 12_000  # kB: a few batches


def test_nothing_of_what_was_said_is_in_an_error() -> None:
    """Not in any stream of the process but its output."""
    text = jsonl(chat(SECRET))[:-30] + b"\n" + jsonl({"role": "user", "content": SECRET})
    for command in (("convert", "--to", "gemini", "--keep-going"), ("check", "--as", "gemini"),
                    ("show",)):  # fmt: skip
        done = run(*command, "-", stdin=text)
        assert done.returncode == 3
        assert SECRET.encode() not in done.stderr
        assert b"Traceback" not in done.stderr


def on_terminal(*arguments: str, stdout: bool = False) -> str:
    """What a command shows on a terminal, of its standard error or of its standard output too."""
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
def test_a_terminal_gets_a_bar_and_a_table(tmp_path: Path) -> None:
    """While the output goes elsewhere."""
    (tmp_path / "in.jsonl").write_bytes(jsonl(*[lossy()] * 3000))
    seen = on_terminal("convert", str(tmp_path / "in.jsonl"), "--to", "anthropic")
    assert "━" in seen
    assert "kB" in seen
    assert "what happened" in seen
    assert "\x1b[" in seen


@needs_terminal
def test_no_bar_runs_through_the_output(tmp_path: Path) -> None:
    """Where both are on one terminal, the output is enough."""
    (tmp_path / "in.jsonl").write_bytes(jsonl(chat()))
    seen = on_terminal("convert", str(tmp_path / "in.jsonl"), "--to", "openai-chat", stdout=True)
    assert json.loads(seen) == chat()


@needs_terminal
def test_a_terminal_gets_colours(tmp_path: Path) -> None:
    """For conversations and findings alike; rows are as long as the terminal is wide."""
    (tmp_path / "in.json").write_text(json.dumps(chat("word " * 100, store=True)))
    shown = on_terminal("show", str(tmp_path / "in.json"), stdout=True)
    assert "\x1b[32m\x1b[1muser" in shown
    assert 100 < max(map(len, shown.splitlines())) <= 120
    checked = on_terminal("check", str(tmp_path / "in.json"), "--as", "groq", stdout=True)
    assert "\x1b[31merror" in checked


def test_a_table_comes_before_what_is_said_about_it() -> None:
    """Where both streams go to one place, as `2>&1` has it."""
    command = [sys.executable, "-m", "dragoman.cli", "check", "--to", "openai", "--table", "-"]
    done = subprocess.run(
        command, input=jsonl({"messages": []}), check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    lines = done.stdout.decode().splitlines()
    assert lines[0].startswith("where ")
    assert lines[-1].startswith("dragoman: ")


def _die_while_writing(_number: int) -> None:
    """Write the first bytes of a result, as a worker does, and go no further."""
    queue = next(one for one in gc.get_objects() if isinstance(one, SimpleQueue))
    os.write(queue._writer.fileno(), struct.pack("!i", 1000) + b"half")  # type: ignore[attr-defined]
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_dies_while_it_writes_is_seen() -> None:
    """The pool alone would wait for the rest of what it began to write."""
    pool = ProcessPoolExecutor(2, get_context("spawn"))
    try:
        slow, dying = pool.submit(time.sleep, 60), pool.submit(_die_while_writing, 1)
        for future in (dying, slow):
            with pytest.raises(BrokenProcessPool):
                _Watch(pool).result(future)  # type: ignore[arg-type]  # any future
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
