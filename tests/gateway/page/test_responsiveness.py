"""The page stays responsive: no text of a model blocks its thread, whole or while it streams."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.gateway.page.browsing import Looking
from tests.gateway.page.hostile_texts import code, issued, mixed, repeats, shaped

pytestmark = pytest.mark.slow

LONGEST = 200.0
"""Milliseconds that the page's thread may be blocked at a time."""
_TRIES = 4  # the machine may be busy with something else
_BLOCKED = """async ([texts, isStreamed]) => {
  const { render, html } = await import('./ui.js');
  const { JsonLines, lines } = await import('./json_view.js');
  const { Part } = await import('./message.js');
  const { idle } = await import('./work.js');
  const box = document.createElement('div');
  box.className = 'column';
  document.querySelector('main').append(box);
  let longest = 0;
  const take = (all) => { for (const one of all) longest = Math.max(longest, one.duration); };
  const observer = new PerformanceObserver((list) => take(list.getEntries()));
  const pause = (time) => new Promise((done) => { setTimeout(done, time); });
  const frame = () => new Promise((done) => { requestAnimationFrame(() => setTimeout(done)); });
  await pause(100); // what reading the texts took is not the page's
  observer.observe({ type: 'longtask' });
  const found = [];
  for (const text of texts) {
    longest = 0;
    const results = new Map([['c', text.result]]);
    const show = (shown, live) => {
      if (text.json) { render(html`<${JsonLines} all=${lines(text.json)} />`, box); return; }
      const part = text.kind ? text : { kind: 'text', text: shown };
      const one = html`<${Part} live=${live} part=${part} results=${results} />`;
      render(html`<div class="message">${one}</div>`, box);
      for (const fold of box.querySelectorAll('details')) fold.open = true;
    };
    for (let turn = 1; isStreamed && turn <= 24; turn += 1) {
      show(text.slice(0, Math.ceil(text.length * turn / 24)), true);
      await pause(40);
    }
    show(text, false);
    await frame();
    let size = -1;
    for (let turn = 0; turn < 400 && size !== box.getElementsByTagName('*').length; turn += 1) {
      size = box.getElementsByTagName('*').length;
      await idle();
      await frame();
      await frame();
      await frame();
    }
    render(null, box);
    await frame();
    take(observer.takeRecords());
    found.push(longest);
  }
  observer.disconnect();
  box.remove();
  return found;
}"""
_AT_ONCE = 10  # texts


def longest_blocks(page: Any, texts: list[Any], *, streamed: bool = False) -> dict[int, float]:
    """By the number of a text: milliseconds of the longest block, the least of several tries."""
    least = dict.fromkeys(range(len(texts)), float("inf"))
    for _ in range(_TRIES):
        left = [number for number, time in least.items() if time >= LONGEST]
        for start in range(0, len(left), _AT_ONCE):
            some = left[start : start + _AT_ONCE]
            times = page.evaluate(_BLOCKED, [[texts[number] for number in some], streamed])
            for number, time in zip(some, times, strict=True):
                least[number] = min(least[number], time)
    return least


def expect_responsive(
    page: Any, texts: list[str], show: Callable[[str], None], *, streamed: bool = False
) -> None:
    """No text blocks the page; prints the longest block."""
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    times = longest_blocks(page, texts, streamed=streamed)
    slowest = max(times, key=times.__getitem__)
    show(f"{len(texts)} texts, longest blocked frame {times[slowest]:.0f} ms"
         f" ({texts[slowest][:30]!r}, {len(texts[slowest]):,} characters)")  # fmt: skip
    slow = {texts[number][:60]: time for number, time in times.items() if time >= LONGEST}
    assert slow == {}


@pytest.fixture
def show(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Any:
    """Prints a figure, also while output is captured."""

    def tell(line: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n{request.node.name}: {line}\n")

    return tell


_GROUPS: dict[str, Callable[[], list[str]]] = {
    "reported": lambda: [*issued()],
    "repeated": lambda: [*repeats()],
    "mixed": lambda: [*mixed(120)],
    "code": lambda: [*code()],
    "large": lambda: [*shaped()],
}


@pytest.mark.parametrize("group", _GROUPS)
def test_no_text_blocks_the_page(looking: Looking, group: str, show: Any) -> None:
    """Each hostile text is shown, formatted or not, without a block of 200 ms."""
    page = looking.go(wait=".composer")
    expect_responsive(page, _GROUPS[group](), show)


def test_no_result_blocks_the_page(looking: Looking, show: Any) -> None:
    """Results, arguments and JSON of megabytes, in what is opened at once: a part is shown."""
    page = looking.go(wait=".composer")
    sources = [{"title": f"Source {number}"} for number in range(20_000)]
    rows = [{"name": f"row {number}", "values": [number] * 3} for number in range(3_000)]
    long = json.dumps(rows * 10)
    parts = [
        {"kind": "result", "text": long},
        {"kind": "result", "text": "\u202e" * 2_000_000},
        {"kind": "opaque", "name": "x", "text": "x" * 3_000_000},
        {"kind": "refusal", "text": "no " * 900_000},
        {"kind": "thinking", "text": "so " * 900_000},
        {"kind": "call", "name": "f", "call_id": "c", "arguments": long,
         "result": {"text": long, "is_error": True}},
        {"kind": "text", "text": "See.", "citations": sources},
        {"json": rows},
    ]  # fmt: skip
    times = longest_blocks(page, parts)
    show(f"longest blocked frame {max(times.values()):.0f} ms")
    assert {number: time for number, time in times.items() if time >= LONGEST} == {}


def test_no_text_blocks_the_page_while_it_streams(looking: Looking, show: Any) -> None:
    """Growing piece by piece, as an answer does, hostile texts don't block the page either."""
    page = looking.go(wait=".composer")
    some = [*issued(), *[*repeats()][::8], *mixed(20, seed=2), *[*shaped()][:10]]
    expect_responsive(page, some, show, streamed=True)
