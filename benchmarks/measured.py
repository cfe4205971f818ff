"""One command run to its end: prints the seconds it took and the peak memory it had, in bytes.

`python -m benchmarks.measured COMMAND...`, a process of its own: the system counts towards a
process's peak what the one that started it had in memory, which has to be little.
"""

from __future__ import annotations

import os
import subprocess
import sys
from time import perf_counter


def main(command: list[str]) -> None:
    """Run it; what it ends with, if not well, is what this ends with too."""
    start = perf_counter()
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    took = perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(process.returncode)
    print(took, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024))


if __name__ == "__main__":
    main(sys.argv[1:])
