"""The libraries' programs: each is a process that does one job after the other."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.environment import PATIENCE
from tests.gateway.libraries.clients import Library
from tests.npm import Packages
from tests.pypi import Pypi

_PROGRAMS = Path(__file__).parent / "programs"


class Programs:
    """Starts a library's program when it is first asked for something."""

    def __init__(self, folder: Path, pypi: Pypi, npm: Packages) -> None:
        self._folder, self._pypi, self._npm = folder, pypi, npm
        self._started: dict[str, subprocess.Popen[str]] = {}

    def play(self, library: Library, **job: Any) -> dict[str, Any]:
        """The result of a job."""
        process = self._started.get(library.program)
        if process is None or process.poll() is not None:
            process = self._started[library.program] = self._start(library)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], PATIENCE)
        line = process.stdout.readline() if ready else ""
        if not line:
            process.kill()
            pytest.fail(f"{library.program} gave no result:\n{self._log(library).read_text()}")
        found: dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        """End the programs."""
        for process in self._started.values():
            process.kill()
            process.communicate()

    def _log(self, library: Library) -> Path:
        return self._folder / f"{library.program}.log"

    def _start(self, library: Library) -> subprocess.Popen[str]:
        home = self._folder / "home"
        home.mkdir(exist_ok=True)
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "NO_PROXY": "*"}
        with self._log(library).open("w") as log:
            return subprocess.Popen(
                self._command(library), env=env, cwd=home, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            )  # fmt: skip

    def _command(self, library: Library) -> list[str]:
        program = _PROGRAMS / library.program
        if program.suffix == ".py":
            return [str(self._pypi(*library.requirements)), str(program)]
        folder = self._npm(*library.requirements)
        for each in (program, _PROGRAMS / "jobs.mjs"):  # Node looks for packages beside them
            shutil.copy(each, folder)
        return ["node", str(folder / program.name)]
