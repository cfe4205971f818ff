"""Hostile texts by the thousand in every field: nothing runs, nothing is loaded, the page responds.

The attacks with a name are in `test_attacks`; these come from a generator, or from lists of others.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.gateway.page.attack_corpus import NAMES, foreign, generated
from tests.gateway.page.browsing import PATIENCE, Looking, serving
from tests.gateway.page.mock_state import Mock
from tests.gateway.page.test_attacks import ATTRIBUTES, ELEMENTS
from tests.gateway.page.test_using import PLACES, compare

pytestmark = pytest.mark.slow

_COUNT = 1500
_MATHML = (
    "msqrt", "mroot", "mover", "munder", "munderover", "mphantom", "menclose", "mmultiscripts",
    "mprescripts", "none",
)  # fmt: skip
_OF_MATHML = (
    "fence", "separator", "minsize", "maxsize", "symmetric", "largeop", "movablelimits", "accent",
    "accentunder", "linethickness", "height", "depth", "voffset", "columnalign", "rowspacing",
    "columnspacing", "columnlines", "rowlines", "notation",
)  # fmt: skip
_RENDERED = """async ([texts, elements, attributes]) => {
  const { render, html } = await import('./ui.js');
  const { Markdown } = await import('./markdown.js');
  const { idle } = await import('./work.js');
  const box = document.createElement('div');
  document.querySelector('main').append(box);
  const bad = [];
  const look = (text) => {
    for (const one of box.querySelectorAll('*')) {
      const names = one.getAttributeNames();
      const isLink = /^https?:|^mailto:/.test(one.href ?? 'https:');
      const isKnown = elements.includes(one.localName)
        && names.every((name) => attributes.includes(name.toLowerCase()));
      if (!isLink || !isKnown) bad.push([text, one.outerHTML.slice(0, 200)]);
    }
  };
  const drawn = async () => {
    await idle();
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  };
  for (let from = 0; from < texts.length; from += 100) {
    const some = texts.slice(from, from + 100);
    for (const live of [true, false]) {
      const key = (at) => `${live} ${from + at}`;
      const one = (text, at) => html`<${Markdown} key=${key(at)} text=${text} live=${live} />`;
      render(html`${some.map(one)}`, box);
      look(`number ${from} and later, at once`);
      for (let turn = 0; turn < 3; turn += 1) await drawn(); // formulas and highlighting come later
      look(`number ${from} and later`);
    }
  }
  box.remove();
  return { bad: bad.slice(0, 5), count: bad.length };
}"""
_FORBIDDEN = [
    "iframe",
    "object",
    "embed",
    "base",
    "form",
    "frame",
    "portal",
    "foreignObject",
    "x-evil",
]
_WHOLE = """(forbidden) => {
  const isOwn = (url) => url.startsWith(location.origin) || /^(blob|data):/.test(url);
  const isBad = (one) => {
    const to = one.localName === 'a' ? one.getAttribute('href') : null;
    return one.getAttributeNames().some((name) => name.startsWith('on'))
      || forbidden.includes(one.localName)
      || (to !== null && !/^(#|https?:|mailto:)/.test(to))
      || (one.src && !isOwn(new URL(one.src, location).href))
      || /url\\(/.test(one.getAttribute('style') ?? '');
  };
  return [...document.querySelectorAll('*')].filter(isBad).slice(0, 5)
    .map((one) => one.outerHTML.slice(0, 200));
}"""
_ALERTS = """() => {
  for (const name of ['alert', 'confirm', 'prompt']) window[name] = () => { window.alerted = 1; };
}"""


class Guarded:
    """A page that records what an attack would do."""

    def __init__(self, chromium: Any, address: str, mock: Mock) -> None:
        self.context = chromium.new_context()
        self.context.set_default_timeout(PATIENCE)
        self.looking = Looking(self.context.new_page(), address, mock)
        self.page = self.looking.page
        self.page.on("request", self._asked)
        self._address = address
        self.foreign: list[str] = []
        self.blocked: list[str] = []
        self.page.expose_function("toldBlocked", lambda text: self.blocked.append(text))  # noqa: PLW0108
        self.page.add_init_script(
            "document.addEventListener('securitypolicyviolation',"
            " (event) => window.toldBlocked(`${event.effectiveDirective} ${event.blockedURI}`))"
        )

    def _asked(self, request: Any) -> None:
        own = urlsplit(self._address)
        if urlsplit(request.url)[:2] != own[:2] and not request.url.startswith(("blob:", "data:")):
            self.foreign.append(request.url)

    def expect_nothing_happened(self) -> None:
        """No script ran, nothing left the page, nothing had to be blocked."""
        assert self.page.evaluate("[window.pwned, window.alerted]") == [None, None]
        assert self.page.evaluate(_WHOLE, _FORBIDDEN) == []
        assert (self.foreign, self.blocked) == ([], [])
        assert not [each for each in self.looking.complaints if each.startswith("dialog")]


@pytest.fixture
def guarded(chromium: Any, mock: Mock) -> Any:
    """A page on the mock API."""
    with serving(mock) as address:
        made = Guarded(chromium, address, mock)
        yield made
        made.page.goto("about:blank")
        made.context.close()


def test_rendered_texts_have_only_known_elements(guarded: Guarded) -> None:
    """Every text becomes elements and attributes of the fixed list, whole or while it streams."""
    page = guarded.looking.go(wait=".composer")
    page.evaluate(_ALERTS)
    texts = generated(_COUNT) + foreign()
    known = [[*ELEMENTS, *_MATHML], [*ATTRIBUTES, *_OF_MATHML]]
    found = page.evaluate(_RENDERED, [texts, *known])
    assert found["bad"] == [], found["count"]
    guarded.expect_nothing_happened()


_STRUCTURE = frozenset((
    "id", "kind", "role", "type", "cursor", "call_id", "status", "mime", "url", "branch", "number",
    "parent", "period", "since", "form", "format", "extension", "left", "right",
))  # fmt: skip


def _poisoned(value: Any, name: str, draw: Callable[[], str], kept: frozenset[str]) -> Any:
    """The value with every string replaced, except in fields of these names."""
    if isinstance(value, dict):
        return {each: _poisoned(inner, each, draw, kept) for each, inner in value.items()}
    if isinstance(value, list):
        return [_poisoned(inner, name, draw, kept) for inner in value]
    return draw() if isinstance(value, str) and name not in kept else value


def _poison(guarded: Guarded, kept: frozenset[str]) -> None:
    texts = itertools.cycle([*NAMES, *foreign()])

    def answer(route: Any) -> None:
        if "/live" in route.request.url or route.request.url.endswith("/talk"):
            route.continue_()
            return
        given = route.fetch()
        if "json" not in given.headers.get("content-type", ""):
            route.fulfill(response=given)
            return
        poisoned = _poisoned(given.json(), "", lambda: next(texts), kept)
        route.fulfill(response=given, body=json.dumps(poisoned))

    guarded.page.route("**/ui/api/**", answer)


@pytest.mark.parametrize("kept", [_STRUCTURE, frozenset({"id"})], ids=["content", "everything"])
@pytest.mark.parametrize(("name", "place"), [(n, p) for n, (p, _) in PLACES.items()])
def test_hostile_fields_are_only_text(
    guarded: Guarded, name: str, place: str, kept: frozenset[str]
) -> None:
    """Whatever a field of the API says, the view shows it as text, or says that it can't."""
    _poison(guarded, kept)
    page = guarded.page
    page.goto(f"{guarded.looking.address}{place}")
    page.wait_for_selector("main *")
    page.wait_for_timeout(600)
    for fold in page.locator("details > summary").all()[:6]:
        fold.evaluate("(one) => one.click()")
    if name == "talk":
        for opens in (".model > button", ".composer [aria-label=Prompts]"):
            page.locator(opens).evaluate("(one) => one.click()")
            page.wait_for_timeout(300)
    if name in {"history", "keys"}:
        page.keyboard.press("/")
        page.keyboard.type("cat")
        page.wait_for_timeout(300)
    guarded.expect_nothing_happened()
    assert page.locator(".views a").count() == 5  # the navigation is still there


def test_hostile_lens_is_only_text(guarded: Guarded) -> None:
    """Bodies, findings and rules of a comparison are text too."""
    page = compare(guarded.looking)
    _poison(guarded, _STRUCTURE)
    page.get_by_label("Swap sides").click()
    page.wait_for_timeout(800)
    guarded.expect_nothing_happened()


def test_hostile_files_and_answers_are_only_text(guarded: Guarded, mock: Mock) -> None:
    """Names of attached and imported files, streamed answers, tool names and error texts."""
    page = guarded.looking.go(wait=".composer > textarea")
    mock.answer = [*NAMES[:40]]
    given = [
        {"name": text.replace("/", "").replace("\x00", "")[:80] or "x", "mimeType": "text/plain",
         "buffer": b"x"}
        for text in NAMES[:10]
    ]  # fmt: skip
    page.set_input_files(".composer input[type=file]", given)
    page.fill(".composer > textarea", NAMES[3])
    page.press(".composer > textarea", "Enter")
    page.wait_for_selector(".message.assistant:not(.live)")
    guarded.expect_nothing_happened()
    guarded.looking.go("#/history", ".history-row")
    _poison(guarded, frozenset())
    page.set_input_files(".toolbar input[type=file]", given)
    page.wait_for_selector("dialog")
    guarded.expect_nothing_happened()
