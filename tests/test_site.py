"""The documentation site's own code: navigation, links out of docs/, llms.txt, its checks.

`make docs` builds the site and runs the check on it; these tests need no mkdocs.
"""

from __future__ import annotations

import json
import re
import runpy
import shutil
from pathlib import Path
from typing import Any

import pytest

import dragoman

SITE = Path(__file__).resolve().parent.parent / "docs" / "site"
HOOKS: dict[str, Any] = runpy.run_path(str(SITE / "hooks.py"))
CHECK: dict[str, Any] = runpy.run_path(str(SITE / "check_links.py"))
SEARCH: dict[str, Any] = runpy.run_path(str(SITE / "check_search.py"))


def test_the_version_is_the_package_s() -> None:
    """It is read from the source, not from an installed package."""
    assert HOOKS["version"]() == dragoman.__version__


def test_globs_take_the_remaining_pages_by_title() -> None:
    """An index comes first; pages named elsewhere are not repeated; empty sections are dropped."""
    titles = {
        "a/index.md": "All",
        "a/one.md": "Zebra",
        "a/two.md": "apple",
        "a/named.md": "Named",
        "a/deep/x.md": "X",
    }
    nav = [{"A": ["a/named.md", "a/*"]}, {"Empty": ["b/*"]}, {"Home": "index.md"}]
    assert HOOKS["expanded"](nav, titles) == [
        {"A": ["a/named.md", "a/index.md", "a/two.md", "a/one.md"]},
        {"Home": "index.md"},
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a](../guides/b.md#c)", "[a](../guides/b.md#c)"),
        ("[a](../../CHANGELOG.md#x)", "[a](../changelog.md#x)"),
        ("[`t`](../../tests/t.py)", "[`t`](https://host/r/blob/main/tests/t.py)"),
        ("`[a](../../x)`", "`[a](../../x)`"),
        ("```text\n[a](../../x)\n```", "```text\n[a](../../x)\n```"),
        ("[a](https://e.org/../../x)", "[a](https://e.org/../../x)"),
    ],
)
def test_links_out_of_the_site_lead_to_the_repository(text: str, expected: str) -> None:
    """Links to pages stay, links to files become URLs, code is unchanged."""
    assert HOOKS["linked"](text, "contributing/page.md", "https://host/r") == expected


def test_links_to_an_unknown_repository_become_text() -> None:
    """Without a repository URL there is no link."""
    assert HOOKS["linked"]("See [the test](../../tests/t.py).", "a/b.md", "") == "See the test."


def test_files_of_the_root_become_pages() -> None:
    """Their links are relative to the page."""
    text = "[a](docs/guides/x.md) [b](SECURITY.md#y) [c](LICENSE)"
    assert HOOKS["relocated"](text, "", "contributing") == (
        "[a](../guides/x.md) [b](../security.md#y) [c](../../LICENSE)"
    )


def test_llms_text_lists_pages_by_section() -> None:
    """In the form of llmstxt.org."""
    listed = HOOKS["Listed"]("Install", "https://host/install/", "How to.")
    assert HOOKS["llms_text"]("Name", "What\nit is.", {"Start": [listed]}) == (
        "# Name\n\n> What it is.\n\n## Start\n\n- [Install](https://host/install/): How to.\n"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# T\n\nFirst **one**. Second.\n", "First one."),
        ("# T\n\n```python\na = 1\n\nb = 2\n```\n\nSee [that](x.md): more.\n", "See that"),
        ("# T\n", ""),
    ],
)
def test_summaries_are_first_sentences(text: str, expected: str) -> None:
    """Without markup, and never code."""
    assert HOOKS["summary"](text) == expected


def page(body: str) -> str:
    """A page of a site."""
    return f"<html><body>{body}</body></html>"


def site(folder: Path, body: str, llms: str = "- [A](a/): A.\n") -> list[str]:
    """The problems of a site with two pages, one of which has this body."""
    (folder / "a").mkdir()
    (folder / "index.html").write_text(page(body))
    (folder / "a" / "index.html").write_text(page('<h1 id="here">A</h1><a href="..">up</a>'))
    (folder / "llms.txt").write_text(llms)
    return list(CHECK["problems"](folder))


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ('<a href="a/#here">a</a> <a href="#">top</a> <a href="https://e.org">e</a>', []),
        ('<a href="b/">b</a>', ["index.html: b/"]),
        ('<a href="a/#gone">a</a>', ["index.html: a/#gone"]),
        ('<img src="gone.png">', ["index.html: gone.png"]),
        (
            '<script src="https://cdn.example/x.js"></script>',
            ["index.html: loads https://cdn.example/x.js"],
        ),
    ],
)
def test_the_check_finds_broken_links_and_foreign_files(
    body: str, found: list[str], tmp_path: Path
) -> None:
    """Files, anchors, and resources that a page loads from other hosts."""
    assert site(tmp_path, body) == found


def test_the_check_reads_llms_text_and_styles(tmp_path: Path) -> None:
    """Both are part of the site."""
    (tmp_path / "x.css").write_text("@import url(https://fonts.example/f.css);")
    assert site(tmp_path, "", llms="- [B](b/): B.\n") == [
        "x.css: loads from elsewhere",
        "llms.txt: b/",
    ]


def test_the_search_check_wants_sections_that_exist() -> None:
    """Whoever renames a heading sees it here, before `make docs` asks the search itself."""
    for place in SEARCH["FIRST"].values():
        page, _, wanted = place.partition("#")
        source = SITE.parent / f"{page.rstrip('/')}.md"
        heads = re.findall(r"^##+ (.+)$", source.read_text("utf-8"), re.MULTILINE)
        slugs = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
        assert not wanted or wanted in slugs, place


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_search_check_names_what_comes_first(tmp_path: Path) -> None:
    """It asks the worker of the site's theme; here a small one that finds one page for all."""
    worker = tmp_path / "assets/javascripts/workers/search.1.min.js"
    worker.parent.mkdir(parents=True)
    worker.write_text(
        """let found;
        addEventListener("message", ({ data: { type, data } }) => {
          if (type === 0) found = data.docs;
          postMessage({ data: { items: [found] } });
        });"""
    )
    (tmp_path / "search").mkdir()
    index = {"config": {}, "docs": [{"location": "guides/costs/"}]}
    (tmp_path / "search" / "search_index.json").write_text(json.dumps(index))
    told = list(SEARCH["problems"](tmp_path, "node"))
    assert len(told) == len(SEARCH["FIRST"]) - 1
    assert "search for 'mcp': guides/costs/; not guides/mcp-client/" in told
