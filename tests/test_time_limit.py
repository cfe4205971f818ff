"""A test that hangs fails in time, and says where; what it started does not outlive it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import time_limit

_HANGING = """
import subprocess, sys, threading, time

def test_waits_for_a_thread():
    def endless_thread():
        while True:
            time.sleep(1)
    thread = threading.Thread(target=endless_thread, daemon=True)
    thread.start()
    thread.join()

def test_waits_for_a_child():
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600) # endless child"])
    print(f"pid={child.pid};")
    child.wait()

def test_catches_everything_but_ends():
    try:
        time.sleep(600)
    except Exception:
        time.sleep(600)

def test_passes():
    pass
"""

_STUCK = """
import re, signal

def test_cannot_be_interrupted():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    import time
    time.sleep(600)
"""

_CONFTEST = """
import pytest
from tests import time_limit
time_limit._GRACE = 1

def pytest_configure():
    time_limit.keep_stderr()

@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    with time_limit.limited(1):
        return (yield)
"""


def _run(tmp_path: Path, tests: str, *options: str) -> tuple[int, str]:
    (tmp_path / "conftest.py").write_text(_CONFTEST)
    (tmp_path / "test_it.py").write_text(tests)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "test_it.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_test_that_hangs_fails_with_all_stacks_and_ends_its_children(tmp_path: Path) -> None:
    """Each hanging test fails with its name, threads and processes; the next one still runs."""
    code, said = _run(tmp_path, _HANGING)
    assert code == pytest.ExitCode.TESTS_FAILED
    assert "3 failed, 1 passed" in said
    assert "FAILED test_it.py::test_waits_for_a_thread - Failed: not done after 1 s" in said
    assert "in endless_thread" in said
    assert "in test_waits_for_a_thread" in said
    child = int(said.split("\npid=")[1].split(";")[0])
    assert f"killed: {child} " in said
    assert "# endless child" in said
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_what_no_signal_interrupts_ends_with_its_process(tmp_path: Path) -> None:
    """A call that no signal reaches ends the process, with stacks; xdist names the test."""
    code, said = _run(tmp_path, _STUCK, "-n", "1", "--max-worker-restart=0")
    assert code != 0
    assert "in test_cannot_be_interrupted" in said
    assert "crashed while running 'test_it.py::test_cannot_be_interrupted'" in said


def test_every_test_has_a_limit() -> None:
    """The limit is armed while any test of this suite runs, this one included."""
    assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
    assert time_limit.LIMITS.keys() == {"quick", "dev", "ci", "torture"}
