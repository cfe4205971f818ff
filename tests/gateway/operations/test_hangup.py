"""`dragoman serve` and `dragoman tour` on a terminal, on one that is closed, and without one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

import pytest

from tests.cli.terminals import CTRL_C, Terminal, dragoman, terminal
from tests.cli.test_processes import is_alive, needs_proc
from tests.environment import PATIENCE
from tests.gateway.operations.workers import ask, process

if sys.platform == "win32":
    pytest.skip("there is no SIGHUP on Windows", allow_module_level=True)

FILE = """
[[routes]]
model = "*"
to = ["local:{model}"]
"""


def _descendants(pid: int) -> set[int]:
    """A process and all that it has started."""
    found = {pid}
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            found |= _descendants(int(child))
    return found


def _until_gone(pids: Sequence[int] | set[int]) -> None:
    deadline = monotonic() + PATIENCE
    while left := [pid for pid in pids if is_alive(pid)]:
        assert monotonic() < deadline, f"still there: {left}"
        time.sleep(0.02)


def _serve(folder: Path, *arguments: str) -> list[str]:
    """The command of a gateway whose one model is a local one."""
    (folder / "tiny.gguf").write_bytes(b"GGUF")
    file = folder / "dragoman.toml"
    file.write_text(FILE.format(model=folder / "tiny.gguf"))
    return dragoman("serve", "-c", str(file), "--port", "0", *arguments)


def _asked(screen: Terminal) -> set[int]:
    """Have the model answer: it runs now; returns all processes."""
    screen.until("listens on http://127.0.0.1:")
    screen.until("Press Ctrl-C")
    port = int(screen.shown.partition("listens on http://127.0.0.1:")[2].split()[0])
    said = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
    status, body = ask(port, body=said)
    assert status == 200, body
    return _descendants(screen.process.pid)


def test_what_a_gateway_says_is_wrapped_at_words(tmp_path: Path) -> None:
    """Its longest lines have no room on most terminals."""
    with terminal(_serve(tmp_path)) as screen:
        screen.until("Press Ctrl-C")
        assert "(set `history` in [server] to keep them)" in " ".join(screen.shown.split())
        screen.type(CTRL_C)
        assert screen.process.wait(PATIENCE) == 0


@needs_proc
@pytest.mark.usefixtures("fake_llama")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_gateway_ends_with_its_terminal(tmp_path: Path, workers: int) -> None:
    """The workers and the local model end, too; the end is an ordinary one."""
    with terminal(_serve(tmp_path, "--workers", str(workers))) as screen:
        everyone = _asked(screen)
        assert len(everyone) == 2 if workers == 1 else 4
        screen.hang_up()
        assert screen.process.wait(PATIENCE) == 0
        _until_gone(everyone)


@needs_proc
@pytest.mark.usefixtures("fake_llama")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_gateway_leaves_nothing_behind(tmp_path: Path, workers: int) -> None:
    """`kill -9` leaves it no time to say anything: the others notice."""
    with terminal(_serve(tmp_path, "--workers", str(workers))) as screen:
        everyone = _asked(screen)
        screen.process.kill()
        screen.process.wait()
        _until_gone(everyone)


@needs_proc
def test_a_gateway_ends_with_the_shell_that_runs_it(tmp_path: Path) -> None:
    """Closing the terminal ends the shell; then the system tells what ran in it."""
    shell = ["sh", "-c", '"$@"; :', "sh", *_serve(tmp_path)]
    with terminal(shell) as screen:
        everyone = _asked_nothing(screen)
        screen.hang_up()
        _until_gone(everyone)


def _asked_nothing(screen: Terminal) -> set[int]:
    screen.until("Press Ctrl-C")
    return _descendants(screen.process.pid)


@needs_proc
def test_nohup_keeps_a_gateway_running(tmp_path: Path) -> None:
    """The signal is ignored from the start: it reloads the configuration, as without a terminal."""
    out = tmp_path / "nohup.out"
    shell = ["sh", "-c", 'nohup "$@" >nohup.out 2>&1 </dev/null & echo "pid $!."; read x',
             "sh", *_serve(tmp_path)]  # fmt: skip
    with terminal(shell, folder=tmp_path) as screen:
        pid = int(screen.until(".").rpartition("pid ")[2].rstrip("."))
        try:
            _until_said(out, "Press Ctrl-C")
            screen.hang_up()
            screen.process.wait(PATIENCE)
            assert "and on SIGHUP" in out.read_text()
            os.kill(pid, signal.SIGHUP)
            _until_said(out, "the configuration was reloaded")
            assert is_alive(pid)
        finally:
            os.kill(pid, signal.SIGTERM)
            _until_gone([pid])


def _until_said(path: Path, text: str) -> None:
    deadline = monotonic() + PATIENCE
    while not path.exists() or text not in path.read_text():
        assert monotonic() < deadline, path.read_text()
        time.sleep(0.02)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_service_reloads(tmp_path: Path, workers: int) -> None:
    """Without a terminal the signal means: reload."""
    text = '[[routes]]\nmodel = "*"\nto = ["echo:"]\n'
    with process(tmp_path, text, "--workers", str(workers)) as serving:
        serving.wait_for("and on SIGHUP")
        serving.signal(signal.SIGHUP)
        serving.wait_for("the configuration was reloaded")
        assert serving.process.poll() is None


def test_the_tour_ends_with_its_terminal(tmp_path: Path) -> None:
    """While it serves the gateway; nothing is written to the terminal that is gone."""
    environment = {"DRAGOMAN_HISTORY": f"sqlite:///{tmp_path / 'chats.db'}"}
    with terminal(dragoman("tour"), environment) as screen:
        screen.until("its web page is http://127.0.0.1:")
        screen.hang_up()
        assert screen.process.wait(PATIENCE) == 0


def test_a_command_on_a_closed_terminal_removes_what_it_began(tmp_path: Path) -> None:
    """As after SIGTERM: no half-written file stays."""
    command = dragoman("convert", "-", "--to", "openai-chat", "--out", str(tmp_path / "out.jsonl"))
    with terminal(command) as screen:
        _until_there(tmp_path)
        screen.hang_up()
        assert screen.process.wait(PATIENCE) == 128 + signal.SIGHUP
    assert list(tmp_path.iterdir()) == []


def _until_there(folder: Path) -> None:
    deadline = monotonic() + PATIENCE
    while not list(folder.glob(".out.jsonl.*")):
        assert monotonic() < deadline
        time.sleep(0.02)


def test_an_ignored_signal_stays_ignored(tmp_path: Path) -> None:
    """As under nohup: the command goes on to its end."""
    program = (
        "import os, signal; signal.signal(signal.SIGHUP, signal.SIG_IGN);"
        "from dragoman.cli.exit_codes import clean_ending\n"
        "with clean_ending(): os.kill(os.getpid(), signal.SIGHUP); print('here')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, cwd=tmp_path
    )
    assert done.stdout == b"here\n"
