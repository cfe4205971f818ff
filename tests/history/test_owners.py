"""Names of processes: which of them is gone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.history.owners import is_gone, this_process

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/ns/pid").exists(), reason="other systems don't tell when one was started"
)


def test_a_process_that_runs_is_not_gone() -> None:
    """Whatever stands behind its name."""
    assert not is_gone(this_process())
    assert not is_gone(f"{this_process()} and more")


def test_a_process_that_ended_is_gone() -> None:
    """Also while its parent has not asked for its exit status."""
    program = "from dragoman.history.owners import this_process; print(this_process(), flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as one:
        assert one.stdout is not None
        name = one.stdout.read().strip()
        os.waitid(os.P_PID, one.pid, os.WEXITED | os.WNOWAIT)
        assert is_gone(name)
    assert is_gone(name)


def test_another_process_of_the_same_number_is_not_it() -> None:
    """Numbers are used again."""
    name = this_process()
    assert is_gone(f"{name.rpartition('/')[0]}/1")


def test_a_fork_has_a_name_of_its_own() -> None:
    """It may hold leases, and end before its parent."""
    name, (read, write) = this_process(), os.pipe()
    if (child := os.fork()) == 0:
        os.write(write, this_process().encode())
        os._exit(0)
    os.waitpid(child, 0)
    told = os.read(read, 1000).decode()
    os.close(read)
    os.close(write)
    assert told != name
    assert is_gone(told)


@pytest.mark.parametrize(
    "owner", ["", "a", "process:", "process:elsewhere/1/1", "process:x/0/1", "process:x/9/", "9/9"]
)
def test_nothing_is_known_of_other_owners(owner: str) -> None:
    """Theirs is the lease's time."""
    assert not is_gone(owner)


def test_numbers_that_no_process_has_are_gone_or_unknown() -> None:
    """A name is read from the store: it may be anything."""
    place = this_process().rsplit("/", 2)[0]
    assert not is_gone(f"{place}/0/1")
    assert is_gone(f"{place}/4194305/1")
    assert not is_gone(f"{place}/{10**30}/1")
