"""Names of processes, as owners of leases: whether the process is gone can be told on its machine.

A killed process gives nothing back. Whoever looks on the same machine sees that it is gone; others
have to wait until its lease is over.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from functools import cache
from pathlib import Path
from uuid import getnode

_NAME = re.compile(r"process:([^/ ]+)/(\d+)/(\d+)(?: |\Z)")
_ENDED = frozenset("ZX")  # nothing of it is left but its exit status
_STATE, _STARTED = 0, 19  # fields of /proc/PID/stat, behind the program's name


def this_process() -> str:
    """The name of this process. A lease's owner may have more behind a space."""
    return _named(os.getpid())


@cache  # by process: a fork has a name of its own
def _named(pid: int) -> str:
    return f"process:{_machine()}/{pid}/{_started(pid) or 0}"


def is_gone(owner: str) -> bool:
    """Whether such an owner is a process of this machine that has ended."""
    found = _NAME.match(owner)
    if found is None or found[1] != _machine():
        return False
    pid = int(found[2])
    if not pid or sys.platform == "win32":  # where looking for a process may end it
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    started = _started(pid)
    return started == 0 or (started is not None and found[3] != str(started))


@cache
def _machine() -> str:
    """This machine since it was started, and where process numbers are its own: a container."""
    try:
        booted = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{booted}-{os.stat('/proc/self/ns/pid').st_ino}"  # noqa: PTH116 - no file's
    except OSError:
        return re.sub(r"[^\w.-]", "_", f"{platform.node()}-{getnode():x}")


def _started(pid: int) -> int | None:
    """When a process was started, which tells it from later ones; 0: it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return 0 if fields[_STATE] in _ENDED else int(fields[_STARTED])
