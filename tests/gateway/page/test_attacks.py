"""Model output can't run, load, submit or cover anything: each attack by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.page.attacks import ATTACKS, Attack
from tests.gateway.page.browsing import DRAWN, PATIENCE, Looking, serving
from tests.gateway.page.mock_state import Mock

pytestmark = pytest.mark.slow  # seconds for the browser; the whole list then takes one load

ELEMENTS = frozenset((
    "rect", "circle", "polygon", "polyline", "text",
    "div", "p", "span", "a", "strong", "em", "del", "code", "pre", "h3", "h4", "h5", "h6", "ul",
    "ol", "li", "blockquote", "hr", "br", "table", "thead", "tbody", "tr", "th", "td", "figure",
    "figcaption", "button", "svg", "path", "math", "mrow", "mi", "mn", "mo", "ms", "mtext",
    "mspace", "msub", "msup", "msubsup", "mfrac", "mstyle", "mtable", "mtr", "mtd", "mpadded",
    "merror", "semantics", "wbr",
))  # fmt: skip
ATTRIBUTES = frozenset((
    "x", "y", "rx", "cx", "cy", "r", "points", "height",
    "class", "title", "href", "target", "rel", "dir", "tabindex", "role", "aria-label",
    "aria-hidden", "focusable", "viewbox", "d", "start", "type", "display", "displaystyle",
    "scriptlevel", "mathvariant", "stretchy", "form", "lspace", "rspace", "width",
))  # fmt: skip
_LOOK = """(id) => {
  const root = document.getElementById(`m-${id}`).querySelector('.parts');
  const all = [...root.querySelectorAll('*')].filter((one) => one.className !== 'parts');
  return {
    elements: [...new Set(all.map((one) => one.localName))],
    attributes: all.flatMap((one) => one.getAttributeNames()).map((name) => name.toLowerCase()),
    links: all.filter((one) => one.localName === 'a').map((one) => one.href),
    rels: all.filter((one) => one.localName === 'a').map((one) => one.rel),
    text: root.textContent,
  };
}"""


def _says(attack: Attack, number: int) -> dict[str, Any]:
    parts = [{"kind": "text", "text": attack.says}]
    return {
        "id": f"a{number}",
        "role": "assistant",
        "model": "hostile",
        "parts": parts,
        "siblings": [],
    }


@pytest.fixture(scope="module")
def attacked(chromium: Any) -> Iterator[tuple[Looking, list[str]]]:
    """The page with every attack in one conversation, and the URLs that it requested."""
    mock = Mock(conversations=2, pace=0)
    mock.threads["c0"] = {0: [_says(attack, number) for number, attack in enumerate(ATTACKS)]}
    context = chromium.new_context()
    context.set_default_timeout(4 * PATIENCE)  # some attacks are heavy
    asked: list[str] = []
    with serving(mock) as address:
        looking = Looking(context.new_page(), address, mock)
        looking.page.on("request", lambda request: asked.append(request.url))
        looking.go("#/talk/c0?message=a0", "#m-a0")
        yield looking, asked
    context.close()


@pytest.mark.parametrize(
    ("number", "attack"), list(enumerate(ATTACKS)), ids=[each.name for each in ATTACKS]
)
def test_attack_is_only_text(
    attacked: tuple[Looking, list[str]], number: int, attack: Attack
) -> None:
    """The text is readable, made of allowed elements, and links only to allowed URLs."""
    page = attacked[0].page
    page.evaluate("(id) => { location.hash = `#/talk/c0?message=${id}`; }", f"a{number}")
    page.wait_for_selector(f"#m-a{number}", state="attached")
    page.evaluate(DRAWN)
    found = page.evaluate(_LOOK, f"a{number}")
    assert set(found["elements"]) <= ELEMENTS
    assert set(found["attributes"]) <= ATTRIBUTES
    for words in attack.shows:
        assert words in found["text"]
    if attack.links:
        assert found["links"] == list(attack.links)
    assert all(link.startswith(("https://", "mailto:")) for link in found["links"])
    assert all("noopener" in rel and "noreferrer" in rel for rel in found["rels"])


def test_nothing_ran_and_nothing_was_loaded(attacked: tuple[Looking, list[str]]) -> None:
    """No script ran, the browser blocked nothing, and no other host was contacted."""
    looking, asked = attacked
    assert looking.page.evaluate("window.pwned") is None
    assert looking.complaints == []
    assert all(url.startswith((looking.address, "blob:", "data:")) for url in asked)
    assert looking.page.locator("main").is_visible()
    assert looking.page.evaluate("document.querySelectorAll('script').length") == 2


def test_hostile_names_and_titles_are_only_text(looking: Looking, mock: Mock) -> None:
    """Titles, model names, tool names, arguments, results and snippets are as harmless as texts."""
    bad = '<img src=x onerror="window.pwned=1">\u202e'
    mock.rows[0] |= {"title": bad, "first_line": bad, "model": bad}
    call = {"kind": "call", "name": bad, "call_id": "1", "arguments": bad}
    mock.threads["c0"] = {0: [
        {"id": "m1", "role": "assistant", "model": bad, "finish": bad, "siblings": [], "parts": [
            call, {"kind": "result", "call_id": "1", "text": bad}, {"kind": "refusal", "text": bad},
            {"kind": "image", "mime": "image/svg+xml", "name": bad, "url": "https://evil.example/x"},
            {"kind": "opaque", "name": bad, "text": bad}, {"kind": bad, "text": bad}]},
    ]}  # fmt: skip
    page = looking.go("#/talk/c0", ".message")
    looking.go("#/history", ".history-row")
    page.fill("[data-search]", "onerror")
    page.wait_for_selector("mark")
    assert page.evaluate("window.pwned") is None
    assert page.locator("img").count() == 0


def test_media_addresses_stay_within_the_api(looking: Looking, mock: Mock) -> None:
    """A URL outside the API is not fetched, so the key can't be sent elsewhere."""
    parts = [
        {"kind": "image", "mime": "image/png", "name": "x", "url": url}
        for url in (
            "https://evil.example/x.png",
            "//evil.example/x",
            "../../v1/models",
            "media/window",
        )
    ]
    mock.threads["c0"] = {0: [{"id": "m1", "role": "user", "siblings": [], "parts": parts}]}
    asked: list[str] = []
    looking.page.on("request", lambda request: asked.append(request.url))
    page = looking.go("#/talk/c0", ".message img")
    assert page.locator(".message img").count() == 1
    assert all(url.startswith((looking.address, "blob:")) for url in asked)


_WORKERS = """async () => {
  await (await import('./work.js')).read('markdown', '*a*');
  const tries = [
    () => new Worker('worker.js'),
    () => new Worker(URL.createObjectURL(new Blob(['postMessage(1)']))),
    () => trustedTypes.createPolicy('dragoman-worker', { createScriptURL: (text) => text }),
    () => trustedTypes.createPolicy('default', { createScriptURL: (text) => text }),
    () => { document.createElement('div').innerHTML = '<b>x</b>'; },
  ];
  return tries.map((one) => { try { one(); return 'done'; } catch (error) { return error.name; } });
}"""


def test_only_the_pages_own_worker_can_start(chromium: Any, mock: Mock) -> None:
    """No other worker, no second policy, no HTML: even a script in the page gets none of them."""
    context = chromium.new_context()
    with serving(mock) as address:
        looking = Looking(context.new_page(), address, mock)
        page = looking.go(wait=".composer")
        assert page.evaluate(_WORKERS) == ["TypeError"] * 5
        looking.page.goto("about:blank")
    context.close()
