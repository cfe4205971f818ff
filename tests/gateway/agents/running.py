"""One run of a coding agent: a clean environment, two notes to read, and what came of it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.gateway.agents.behind import Gateway, dead_end, gateway
from tests.gateway.agents.coder import Coder

TASK = "Read one.txt and two.txt, write their words into out.txt, and tell me what they say."
WORDS = "word-mostar word-neretva"
_TIMEOUT = 240


class Ran(NamedTuple):
    """What an agent did."""

    code: int
    printed: str
    complained: str
    wanted: tuple[str, ...]
    """What it would have asked of other machines."""


class Desk:
    """Where an agent works: its home, and the folder of its task."""

    def __init__(self, folder: Path, served: Gateway, coder: Coder) -> None:
        self.home = folder / "home"
        self.work = folder / "home" / "task"
        self.served = served
        self.coder = coder
        self.work.mkdir(parents=True)
        one, two = WORDS.split()
        (self.work / "one.txt").write_text(f"{one}\n")
        (self.work / "two.txt").write_text(f"{two}\n")

    @property
    def out(self) -> str:
        """What the agent has written."""
        file = self.work / "out.txt"
        return file.read_text().strip() if file.exists() else ""

    def run(self, *command: str | Path, env: Mapping[str, str]) -> Ran:
        """Run an agent; it sees nothing of our environment, and no other machine."""
        with dead_end() as (proxy, wanted):
            clean = {"PATH": os.environ["PATH"], "HOME": str(self.home), **_by(proxy), **env}
            done = subprocess.run(
                [str(word) for word in command], env=clean, cwd=self.work,
                stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                timeout=_TIMEOUT,
            )  # fmt: skip
        return Ran(done.returncode, done.stdout, done.stderr, tuple(wanted))


def _by(proxy: str) -> dict[str, str]:
    named = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), proxy)
    return {**named, "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}


@contextmanager
def desk(folder: Path, coder: Coder) -> Generator[Desk]:
    """A desk, with a gateway to that model."""
    with gateway(folder / "gateway", coder) as served:
        yield Desk(folder, served, coder)


def note(desk: Desk, ran: Ran, **more: Any) -> None:
    """Print the figures of a run; pytest shows them with -s or -rP."""
    told = desk.served.records(len(desk.coder.bodies))
    print({  # noqa: T201 - that is what it is for
        **more, "back": desk.coder.name, "code": ran.code,
        "requests": [(each["kind"], each["front"], each["status"]) for each in told],
        "passed": [each.get("passed", False) for each in told],
        "losses": sorted({loss for each in told for loss in each.get("losses", ())}),
        "repairs": sorted({rule for each in told for rule in each.get("repairs", ())}),
        "errors": [each["error"] for each in told if "error" in each],
        "others": desk.coder.others, "wanted": sorted(set(ran.wanted)),
    })  # fmt: skip
