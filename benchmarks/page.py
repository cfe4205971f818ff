"""`python -m benchmarks.page`: the gateway's web page with much stored, in a real Chromium.

With 10,000 conversations (one of 2,000 messages) and 100,000 requests stored: the time of list
queries, of the first paint and of opening a long conversation, the longest frame while scrolling,
and the size of what the page loads. Needs playwright (the dev extra) and Chromium.

Other programs on the machine make a frame longer, but hardly its CPU time in the browser's main
thread, which is read from a trace and printed beside it.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import tempfile
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from dragoman import ChatHistory, Message, Messages
from dragoman.gateway.page.api import static_files
from dragoman.gateway.page.traffic_store import Traffic
from dragoman.gateway.records import RequestRecord
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage_urls import open_storage
from dragoman.model.usage import Usage
from tests.gateway.page.browsing import browser, opened
from tests.gateway.page.real import gateway_at

CONVERSATIONS, REQUESTS, LONG = 10_000, 100_000, 2000
ROUNDS = 15
LATER = ("vendor/highlight.js", "vendor/temml.js", "vendor/LICENSES.md")
"""Loaded when a text needs them, or never."""
_FRAMES = """async ([selector, by]) => {
  const box = document.querySelector(selector);
  const frames = [];
  let before = performance.now();
  for (let frame = 0; frame < 240; frame += 1) {
    box.scrollTop += by;
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    frames.push(now - before);
    before = now;
  }
  frames.sort((one, other) => one - other);
  return [frames[frames.length >> 1], frames.at(-5), frames.at(-1)];
}"""


def main() -> None:
    """Fill the stores, then measure."""
    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        _run(Path(folder), chromium)


def _run(folder: Path, chromium: Any) -> None:
    start = perf_counter()
    with ThreadPoolExecutor(1) as apart:  # the browser's loop runs in this thread
        long = apart.submit(asyncio.run, _stored(f"sqlite:///{folder}/chats.db")).result()
    _requested(folder)
    print(f"{CONVERSATIONS:,} conversations and {REQUESTS:,} requests stored"
          f" in {perf_counter() - start:.0f} s")  # fmt: skip
    with gateway_at(folder) as (gateway, _):
        gateway.read("info")  # as the page, which asks this first
        paths = ("conversations?limit=200", "conversations?limit=200&query=bridge",
                 f"conversations/{long}?limit=60", "traffic?limit=200", "traffic?status=error",
                 "traffic/series?step=60")  # fmt: skip
        for path in paths:
            _told(path.replace(long, "{id}"), "100 ms", partial(gateway.read, path))
        _in_browser(chromium, f"{gateway.url}/ui/", long)
    _sizes()


def _told(name: str, bar: str, work: Callable[[], Any]) -> None:
    """Print the times of a query: the first, which may fill caches, the median and the best."""
    times = []
    for _ in range(ROUNDS):
        start = perf_counter()
        work()
        times.append(1000 * (perf_counter() - start))
    print(f"GET {name:<42} first {times[0]:6.1f} ms, median {statistics.median(times):6.1f} ms,"
          f" best {min(times):6.1f} ms (bar: {bar})")  # fmt: skip


async def _stored(url: str) -> str:
    """Store the conversations; gives the id of the long one."""
    chance = random.Random(7)
    words = ["old", "bridge", "river", "stone", "market", "tea", "morning", "train", "letter"]
    async with open_storage(url) as storage:
        return await _filled(storage, chance, words)


async def _filled(storage: Any, chance: random.Random, words: list[str]) -> str:
    for number in range(CONVERSATIONS):
        text = " ".join(chance.choices(words, k=30))
        history = await ChatHistory.open(SessionIdentity(chat=f"c{number}", agent="chat"), storage)
        await history.extend(Messages(Message.user(f"{number}: {text}"), Message.assistant(text)))
    identity = SessionIdentity(chat="long", agent="chat")
    history = await ChatHistory.open(identity, storage)
    turns = [
        Message.user(f"Question {number}") if number % 2 == 0 else Message.assistant(
            f"**Answer** {number} with `code`\n\n- one\n- two\n\n" + " ".join(words * 6)
        )
        for number in range(LONG)
    ]  # fmt: skip
    await history.extend(Messages(*turns))
    return identity.digest


def _requested(folder: Path) -> None:
    """Store the requests."""
    chance = random.Random(7)
    traffic = Traffic(folder / "traffic.db", pause=0.01)
    for number in range(REQUESTS):
        status = chance.choices([200, 429, 500], [90, 5, 5])[0]
        traffic(RequestRecord(
            "chat", "openai-chat", status, chance.random(), 0.1, f"route {number % 5}", "p",
            f"model {number % 9}", f"key {number % 7}", Usage(input=3, output=4),
            Decimal("0.002"), attempts=1,
        ))  # fmt: skip
        if number % 20_000 == 0:
            traffic.flush(120)
    traffic.flush(120)
    traffic.close()


def _in_browser(chromium: Any, address: str, long: str) -> None:
    with opened(chromium, address) as looking:
        page = looking.page
        for visit in ("first", "second"):
            looking.go("", ".composer")
            paint = page.evaluate(
                "performance.getEntriesByName('first-contentful-paint')[0].startTime"
            )
            print(f"first paint, {visit} visit: {paint:.0f} ms (bar: 1 s)")
            page.goto("about:blank")
        looking.go("#/history", ".history-row")
        for name, place, wait, box, by in (
            ("history", "#/history", ".history-row", ".virtual", 700),
            ("traffic", "#/traffic", ".traffic-row", ".virtual", 700),
            (f"{LONG:,} messages", f"#/talk/{long}", ".message.assistant", ".thread", -700),
        ):
            page.goto("about:blank")
            looking.go(place, wait)
            page.wait_for_timeout(1500)
            with traced(page) as tasks:
                typical, high, worst = page.evaluate(_FRAMES, [box, by])
            print(f"frames while scrolling {name}: median {typical:.1f} ms, 5th longest"
                  f" {high:.1f} ms, longest {worst:.1f} ms (bar: 50 ms), longest task"
                  f" {max(tasks):.1f} ms CPU")  # fmt: skip
        looking.go("", ".composer")
        page.wait_for_timeout(500)
        start = page.evaluate(f"(location.hash = '#/talk/{long}', performance.now())")
        page.wait_for_selector(".message.assistant")
        took = page.evaluate(
            "new Promise((done) => requestAnimationFrame(() => done(performance.now())))"
        )
        print(f"a conversation of {LONG:,} messages opens in {took - start:.0f} ms (bar: 1 s)")


@contextmanager
def traced(page: Any) -> Generator[list[float]]:
    """The CPU times of the main thread's tasks in milliseconds, after the block."""
    events, ends = list[Any](), list[Any]()
    debugger = page.context.new_cdp_session(page)
    debugger.on("Tracing.dataCollected", lambda some: events.extend(some["value"]))
    debugger.on("Tracing.tracingComplete", lambda end: ends.append(end))  # noqa: PLW0108 - no builtin
    config = {"includedCategories": ["toplevel", "devtools.timeline"]}
    debugger.send("Tracing.start", {"transferMode": "ReportEvents", "traceConfig": config})
    tasks: list[float] = []
    yield tasks
    debugger.send("Tracing.end")
    while not ends:
        page.wait_for_timeout(50)
    debugger.detach()
    is_main = {
        (each["pid"], each["tid"]) for each in events
        if each["name"] == "thread_name" and each["args"]["name"] == "CrRendererMain"
    }  # fmt: skip
    tasks += [
        each.get("tdur", 0) / 1000 for each in events
        if each["name"].endswith("RunTask") and (each["pid"], each["tid"]) in is_main
    ]  # fmt: skip


def _sizes() -> None:
    files = static_files()
    first = {name: file for name, file in files.items() if name not in LATER}
    packed, plain = (sum(len(getattr(file, kind)) for file in first.values())
                     for kind in ("packed", "plain"))  # fmt: skip
    print(f"all files but highlighting and maths: {packed / 1024:.0f} KB sent,"
          f" {plain / 1024:.0f} KB unpacked (bar: 200 KB sent)")  # fmt: skip


if __name__ == "__main__":
    main()
