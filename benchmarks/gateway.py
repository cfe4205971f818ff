"""Gateways side by side: CPU per request, and the time that each adds.

`make bench-gateways`. The server behind, the client and each gateway are processes of their own;
counted is the gateway's CPU, for answers whose content is right. The bars of ours are multiples of
a bare starlette + aiohttp pass-through.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.gateway_subjects import CHAT, CLAUDE, SUBJECTS, Running
from benchmarks.report import Ratio, show

PIECES = 50
PAUSE = 500
"""Microseconds between the pieces of a stream."""
AT_ONCE = 16
ROUNDS = 5
_PATHS = {CHAT: "/v1/chat/completions", CLAUDE: "/v1/messages"}
_ENDINGS = {CHAT: "[DONE]", CLAUDE: "message_stop"}


class Case(NamedTuple):
    """What is asked, and the bar of ours."""

    front: str
    back: str
    stream: bool
    is_large: bool
    bar: float

    @property
    def title(self) -> str:
        """For people."""
        kind = "a stream of 50 pieces" if self.stream else "a whole answer"
        size = ", a coding agent's 100 KB request" if self.is_large else ""
        return f"{self.front} -> {self.back}: {kind}{size}"


CASES = (
    Case(CHAT, CHAT, stream=False, is_large=False, bar=1.0),
    Case(CLAUDE, CLAUDE, stream=False, is_large=False, bar=1.0),
    Case(CHAT, CHAT, stream=True, is_large=False, bar=1.0),
    Case(CLAUDE, CLAUDE, stream=True, is_large=False, bar=1.0),
    Case(CHAT, CLAUDE, stream=False, is_large=False, bar=2.0),
    Case(CLAUDE, CHAT, stream=False, is_large=False, bar=2.0),
    Case(CHAT, CLAUDE, stream=True, is_large=False, bar=2.5),
    Case(CLAUDE, CHAT, stream=True, is_large=False, bar=2.5),
    Case(CHAT, CHAT, stream=False, is_large=True, bar=3.0),
    Case(CHAT, CLAUDE, stream=False, is_large=True, bar=3.0),
    Case(CLAUDE, CHAT, stream=False, is_large=True, bar=3.0),
)


def body_of(case: Case, model: str) -> dict[str, Any]:
    """What a client sends."""
    messages = [{"role": "user", "content": "Where is the Old Bridge?"}]
    body: dict[str, Any] = {"model": model, "messages": messages}
    if case.stream:
        body["stream"] = True
    if case.is_large:
        said = [{"role": r, "content": "t" * 300} for _ in range(10) for r in ("user", "assistant")]
        body["messages"] = [*said, *messages]
        body["tools"] = [_tool(case.front, number) for number in range(70)]
        if case.front == CHAT:
            body["messages"] = [{"role": "system", "content": "S" * 10_000}, *body["messages"]]
        else:
            body["system"] = "S" * 10_000
    if case.front == CLAUDE:
        body["max_tokens"] = 256
    return body


def _tool(front: str, number: int) -> dict[str, Any]:
    properties = {
        "path": {"type": "string", "description": "d" * 200},
        "count": {"type": "integer"},
    }
    schema = {"type": "object", "properties": properties, "required": ["path"]}
    named = {"name": f"tool_{number}", "description": "x" * 900}
    if front == CLAUDE:
        return {**named, "input_schema": schema}
    return {"type": "function", "function": {**named, "parameters": schema}}


class Load:
    """The client."""

    def __init__(self, pieces: int = PIECES) -> None:
        self._pieces = pieces
        self._process = started("benchmarks.gateway_load")

    def ask(self, case: Case, gateway: Running, times: int, at_once: int = AT_ONCE) -> Any:
        """Ask so many times; says how many answers were right, and when bytes came."""
        model = gateway.subject.models[0 if case.back == CHAT else 1]
        said = f" bridge {self._pieces - 1}" if case.stream else "Mostar"
        order = {
            "port": gateway.port, "path": _PATHS[case.front], "times": times, "at_once": at_once,
            "body": json.dumps(body_of(case, model)), "expected": said,
            "headers": {"authorization": f"Bearer {gateway.key}", "anthropic-version": "2023"},
            "ending": _ENDINGS[case.front] if case.stream else "",
        }  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def stop(self) -> None:
        """End it."""
        self._process.kill()


def started(module: str) -> subprocess.Popen[str]:
    """A process that runs a module of ours and is told what to do on its standard input."""
    return subprocess.Popen(
        [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


@contextmanager
def gateways(pause: int = PAUSE) -> Generator[list[Running]]:
    """All that can be started, before one server."""
    server = started("benchmarks.transport_server")
    assert server.stdout is not None
    base = f"http://127.0.0.1:{int(server.stdout.readline())}/{PIECES}/{pause}/v1"
    with tempfile.TemporaryDirectory() as folder:
        launched: list[Running] = []
        for number, subject in enumerate(SUBJECTS):
            try:
                launched.append(Running(subject, base, Path(folder) / str(number)))
            except OSError:
                print(f"  {subject.name} is not installed")
        ready = [each for each in launched if each.wait()]
        try:
            yield ready
        finally:
            for each in launched:
                each.stop()
            server.kill()


def measured(case: Case, gateway: Running, load: Load) -> float | None:
    """CPU seconds per request; None where its answers are wrong."""
    times = 300 if case.stream or case.is_large else 1000
    if gateway.subject.name == "LiteLLM":
        times //= 10
    before = gateway.cpu()
    found = load.ask(case, gateway, times)
    return None if found["wrong"] else (gateway.cpu() - before) / times


def compare(case: Case, running: list[Running], load: Load) -> list[Ratio]:
    """One case, all gateways in turn, several rounds; the best of each counts."""
    serving = [
        each for each in running
        if not each.subject.serves or (case.front, case.back) in each.subject.serves
        or each.subject.name.startswith("bare")
    ]  # fmt: skip
    times: dict[str, float] = {}
    for number in range(ROUNDS + 1):
        for each in serving:
            asked = case
            if each.subject.name.startswith("bare"):  # it translates nothing
                asked = case._replace(back=case.front)
            found = measured(asked, each, load)
            name = each.subject.name
            if found is not None and number:  # the first round warms up
                times[name] = min(found, times.get(name, found))
    bare = times.get(SUBJECTS[0].name, 1.0)
    ratios = [
        Ratio(
            f"{name}, of the bare one",
            found / bare,
            at_most=case.bar if name == "dragoman" else None,
        )
        for name, found in times.items()
        if name != SUBJECTS[0].name
    ]
    show(case.title, times, ratios)
    for each in serving:
        if each.subject.name not in times:
            print(f"  {each.subject.name:58} answers wrongly")
    return ratios


def latency(running: list[Running], load: Load) -> list[Ratio]:
    """What ours adds to the first and the last byte of a stream, of one client alone."""
    ratios: list[Ratio] = []
    bare = next(each for each in running if each.subject.name.startswith("bare"))
    ours = next(each for each in running if each.subject.name == "dragoman")
    for case in (CASES[2], CASES[6]):
        plain = load.ask(case._replace(back=case.front), bare, 50, at_once=1)
        found = load.ask(case, ours, 50, at_once=1)
        for what in ("first", "last"):
            added = (found[what] - plain[what]) * 1000
            title = f"{case.front} -> {case.back}: {what} byte later than the bare one's"
            ratios.append(Ratio(title, added, at_most=2.0, unit="ms"))
    show("Time added, at the median", {}, ratios)
    return ratios


def main() -> None:
    """All cases."""
    load = Load()
    with gateways() as running:
        ratios = [ratio for case in CASES for ratio in compare(case, running, load)]
        ratios += latency(running, load)
    load.stop()
    missed = sum(not ratio.is_met for ratio in ratios)
    print(f"\n{missed} bars missed" if missed else "\nAll bars cleared")


if __name__ == "__main__":
    main()
