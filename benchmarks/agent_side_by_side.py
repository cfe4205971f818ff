"""The same three programs with Dragoman, pydantic-ai and the OpenAI Agents SDK.

Their lines, the CPU time of a call, and which of some mistakes type checkers find in them. The
programs are beside this file, in `agent_programs`, as text: the peers are not installed here.
`python -m benchmarks.agent_side_by_side` needs pydantic-ai-slim, openai-agents, mypy and pyright.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from statistics import median
from typing import NamedTuple

PROGRAMS = Path(__file__).parent / "agent_programs"
LIBRARIES = ("dragoman", "pydantic_ai", "openai_agents")
KINDS = {
    "typed": "a typed agent with a tool and dependencies",
    "approval": "a stream with approval",
    "handover": "one agent hands over to another",
}
_ROUNDS, _REPEATS = 7, 40
_CACHE = Path(tempfile.gettempdir()) / "dragoman_side_by_side_mypy"
_EXPECTED = {"typed": "7: sent", "approval": "It is gone. " * 30, "handover": "billing: 5 euros."}
_ERROR = re.compile(r"program\.py:(\d+)(?::\d+)?(?: -|:) error")

_RUN = f"""
import asyncio, gc, json, sys
from time import process_time
import program

async def main():
    said = await program.program()
    for _ in range({_REPEATS}):
        await program.program()
    gc.collect()
    gc.freeze()
    begun = process_time()
    for _ in range({_REPEATS}):
        await program.program()
    print(json.dumps([said, (process_time() - begun) / {_REPEATS}]))

asyncio.run(main())
"""


class Mistake(NamedTuple):
    """The same slip in each library's words: what is written in the place of what."""

    what: str
    kind: str
    slips: dict[str, tuple[str, str]]
    before: tuple[str, str] = ("\0", "")
    """What has to be written for it besides."""


_ARCHIVE = "@dataclass\nclass Archive:\n    orders: dict[int, str]\n\n\n"
_HANDOFF = 'billing.as_handoff("billing", "Answers questions about bills.")'
_OTHER = "def _other(requests: DeferredToolRequests) -> DeferredToolResults:"

MISTAKES = [
    Mistake("a field of the output is misspelled", "typed", {
        "dragoman": ("output.text}", "output.txt}"),
        "pydantic_ai": ("output.text}", "output.txt}"),
        "openai_agents": ("status.text}", "status.txt}"),
    }),
    Mistake("another kind of dependencies is given", "typed", {
        "dragoman": ('deps=Database({7: "sent"})', 'deps={7: "sent"}'),
        "pydantic_ai": ('deps=Database({7: "sent"})', 'deps={7: "sent"}'),
        "openai_agents": ('context=Database({7: "sent"})', 'context={7: "sent"}'),
    }),
    Mistake("the dependencies are forgotten", "typed", {
        "dragoman": (', deps=Database({7: "sent"})', ""),
        "pydantic_ai": (', deps=Database({7: "sent"})', ""),
        "openai_agents": (', context=Database({7: "sent"})', ""),
    }),
    Mistake("a tool wants other dependencies", "typed", {
        "dragoman": ("run: RunContext[Database]", "run: RunContext[Archive]"),
        "pydantic_ai": ("ctx: RunContext[Database]", "ctx: RunContext[Archive]"),
        "openai_agents": ("context: RunContextWrapper[Database]",
                          "context: RunContextWrapper[Archive]"),
    }, ("@dataclass\nclass Status:", f"{_ARCHIVE}@dataclass\nclass Status:")),
    Mistake("a setting is misspelled", "typed", {
        "dragoman": ("temperature=0", "temprature=0"),
        "pydantic_ai": ("temperature=0", "temprature=0"),
        "openai_agents": ("temperature=0", "temprature=0"),
    }),
    Mistake("approving returns something else", "approval", {
        "dragoman": (") -> bool | str:\n    return", ") -> int:\n    return 5 or"),
        "pydantic_ai": (") -> DeferredToolResults:", f") -> int:\n    return 5\n\n\n{_OTHER}"),
        "openai_agents": ("state.approve(item)", "state.approve(5)"),
    }),
    Mistake("the conversation is handed over to no agent", "handover", {
        "dragoman": (_HANDOFF, '"billing"'),
        "pydantic_ai": ("[ask_billing, answer]", '["ask_billing", answer]'),
        "openai_agents": ("handoffs=[billing]", 'handoffs=["billing"]'),
    }),
    Mistake("who answered is misspelled", "handover", {
        "dragoman": ("result.agent}", "result.agnt}"),
        "pydantic_ai": ("output.agent}", "output.agnt}"),
        "openai_agents": ("last_agent.name}", "last_agent.nam}"),
    }),
]  # fmt: skip


def main() -> None:
    """All of it."""
    for kind, what in KINDS.items():
        print(f"\n{what}")
        costs: dict[str, list[float]] = {library: [] for library in LIBRARIES}
        for _ in range(_ROUNDS):
            for library in LIBRARIES:
                costs[library].append(_cost(library, kind))
        for library in LIBRARIES:
            took = median(costs[library]) * 1e6
            print(f"  {library:15} {_lines(library, kind):3} lines {took:8.0f} µs CPU a call")
    _show_mistakes()


def source(library: str, kind: str) -> str:
    """The text of a program."""
    return (PROGRAMS / f"{library}_{kind}.txt").read_text("utf-8")


def _lines(library: str, kind: str) -> int:
    return sum(bool(line.strip()) for line in source(library, kind).splitlines())


def _cost(library: str, kind: str) -> float:
    with tempfile.TemporaryDirectory() as place:
        _write(Path(place), library, source(library, kind))
        (Path(place) / "run.py").write_text(_RUN, "utf-8")
        done = subprocess.run(
            [sys.executable, "run.py"], capture_output=True, cwd=place, check=False, text=True
        )
    if done.returncode:
        raise RuntimeError(done.stderr)
    said, took = json.loads(done.stdout)
    if said.strip() != _EXPECTED[kind].strip():
        msg = f"{library} says something else in {kind}"
        raise RuntimeError(msg)
    return float(took)


def _write(place: Path, library: str, program: str) -> None:
    (place / "program.py").write_text(program, "utf-8")
    (place / "quick.py").write_text(source(library, "quick"), "utf-8")


# --- mistakes


def _show_mistakes() -> None:
    print("\nwhat mypy --strict and pyright find")
    for library in LIBRARIES:
        for kind in KINDS:
            found = _found(library, source(library, kind))
            if any(found.values()):
                print(f"  {library} {kind}: without any mistake, {found}")
    for mistake in MISTAKES:
        marks: list[str] = []
        for library in LIBRARIES:
            before, after = mistake.slips[library]
            program = source(library, mistake.kind).replace(*mistake.before)
            if program.count(before) != 1:
                msg = f"{library}: {mistake.what}: the program has changed"
                raise RuntimeError(msg)
            clean = _found(library, program)
            found = _found(library, program.replace(before, after))
            marks.append("/".join("yes" if found[name] > clean[name] else "no" for name in found))
        shown = "  ".join(f"{name} {mark:7}" for name, mark in zip(LIBRARIES, marks, strict=True))
        print(f"  {mistake.what:45} {shown}", flush=True)


@cache
def _found(library: str, program: str) -> dict[str, int]:
    """How many lines of a program each checker finds fault with."""
    with tempfile.TemporaryDirectory() as place:
        _write(Path(place), library, program)
        checkers = {
            "mypy": [
                "-m",
                "mypy",
                "--strict",
                "--follow-imports=silent",
                f"--cache-dir={_CACHE}",
                "program.py",
            ],
            "pyright": ["-m", "pyright", "--pythonpath", sys.executable, "program.py"],
        }
        return {name: _count(place, command) for name, command in checkers.items()}


def _count(place: str, command: list[str]) -> int:
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, cwd=place, check=False, text=True
    )
    return len({match[1] for match in _ERROR.finditer(done.stdout)})


if __name__ == "__main__":
    main()
