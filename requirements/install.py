"""Installs packages into the environment of the Python that runs it, and shows how far it is.

    .venv/bin/python requirements/install.py 'dragoman[dev]' -r requirements/dev.txt

The first argument says what is installed, the others are pip's. On a terminal, a line that changes
says what pip is doing; elsewhere only the first line is printed. What pip says is printed if it
fails. Only the standard library is used: nothing else is there yet.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

PIP = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
# Most of what is installed is never imported: Python compiles the rest when it is.
PIP += ["--no-compile"]
_ENTRY = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)==\S+(?P<marker> ;)?")
_WIDTH = 76
# What pip says of packages with which nothing is wrong.
_STEPS = (
    "Requirement already satisfied", "Collecting ", "Ignoring ", "Downloading ", "Looking in ",
    "Using cached ", "Processing ", "Obtaining ", "Installing collected packages",
)  # fmt: skip


def locked(path: Path) -> set[str]:
    """The packages that a lock names for every platform, those of included locks too."""
    names: set[str] = set()
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("-r "):
            names |= locked(path.parent / line.removeprefix("-r ").strip())
        elif (found := _ENTRY.match(line)) and not found["marker"]:
            names.add(found["name"])
    return names


class Status:
    """The line that says how far pip is."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.found = 0
        self.doing = "asking the index"
        self._began = time.monotonic()

    def read(self, line: str) -> None:
        """Follow one line of pip's."""
        verb, _, rest = line.strip().partition(" ")
        name = re.split(r"[=<>~!;\[ ]", rest, maxsplit=1)[0]
        if verb == "Collecting" or line.startswith("Requirement already satisfied"):
            self.found += 1
            if verb == "Collecting":
                self.doing = name
        elif verb == "Downloading":
            file, _, size = rest.rpartition("/")[2].partition(" ")
            # Of `msgspec-0.22.0-cp311-cp311-….whl (1.9 MB)` what a reader would look for.
            self.doing = f"downloading {'-'.join(file.split('-')[:2])} {size}".strip()
        elif verb == "Building":
            self.doing = line.strip()
        elif line.startswith("Installing collected packages"):
            self.doing = f"unpacking {line.count(',') + 1} packages"

    def text(self) -> str:
        """The line as it is now."""
        of = f" of {max(self.expected, self.found)}" if self.expected else ""
        seconds = int(time.monotonic() - self._began)
        return f"    {self.found}{of} packages, {seconds} s: {self.doing}"[:_WIDTH]


def install(arguments: list[str]) -> tuple[int, str]:
    """Run pip; its exit status and all it said."""
    locks = [Path(b) for a, b in pairwise(arguments) if a == "-r"]
    status = Status(len(set().union(*(locked(path) for path in locks if path.is_file()))))
    with subprocess.Popen(
        [*PIP, "--progress-bar=off", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    ) as pip:  # fmt: skip
        ended = threading.Event()
        painter = threading.Thread(target=_paint, args=(status, ended))
        if sys.stderr.isatty():
            painter.start()
        said: list[str] = []
        try:
            for line in pip.stdout or ():
                said.append(line)
                status.read(line)
        finally:
            ended.set()
            if painter.is_alive():
                painter.join()
    return pip.returncode, "".join(said)


def reason(said: str) -> str:
    """What pip said but its steps: why it failed."""
    lines = said.splitlines(keepends=True)
    return "".join(each for each in lines if not each.lstrip().startswith(_STEPS)) or said


def _paint(status: Status, ended: threading.Event) -> None:
    while not ended.wait(0.2):
        room = shutil.get_terminal_size().columns - 1  # a line that wraps can't be painted over
        sys.stderr.write(f"\r\x1b[K{status.text()[:room]}")
        sys.stderr.flush()
    sys.stderr.write("\r\x1b[K")
    sys.stderr.flush()


def main(what: str, *arguments: str) -> int:
    """Install, and print what pip said if it failed."""
    print(f"==> installing {what}", flush=True)
    try:
        code, said = install(list(arguments))
    except KeyboardInterrupt:
        return 130
    if code:
        sys.stderr.write(reason(said))
        sys.stderr.write(f"==> {what} can't be installed; pip's reason is above\n")
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
