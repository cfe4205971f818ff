"""The links of the documentation work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.whole

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

_CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)
_UNHEARD = re.compile(r"[^\w\- ]")


def links(text: str) -> list[str]:
    """The links of a page, without those to other sites."""
    found = _LINK.findall(_CODE.sub("", text))
    return [link for link in found if "://" not in link and not link.startswith("mailto:")]


def anchors(text: str) -> set[str]:
    """The anchors of a page: its headings, as GitHub spells them."""
    headings = _HEADING.findall(_FENCED.sub("", text))
    return {_UNHEARD.sub("", heading.lower()).replace(" ", "-") for heading in headings}


def is_there(page: Path, link: str) -> bool:
    """Whether a link of a page leads to an existing file and heading."""
    name, _, anchor = link.partition("#")
    place = page.parent / name if name else page
    return place.exists() and (not anchor or anchor in anchors(place.read_text()))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_work(page: Path) -> None:
    """Files and headings that a page links to exist."""
    assert [link for link in links(page.read_text()) if not is_there(page, link)] == []


@pytest.mark.parametrize("page", ["SECURITY.md", "docs/operations/web-page-attacks.md"])
def test_promises_name_files_that_exist(page: str) -> None:
    """Tests from the root, modules from `src/dragoman`: what shows a promise, and what keeps it."""
    named = re.findall(r"`((?:[\w-]+/)+(?:[\w-]+\.py)?|[\w]+\.py)`", (ROOT / page).read_text())
    roots = (ROOT, ROOT / "src" / "dragoman")
    assert [each for each in named if not any((root / each).exists() for root in roots)] == []
    assert any(each.startswith("tests/") for each in named)


def test_every_page_is_in_the_navigation() -> None:
    """By name or with its folder."""
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = set(re.findall(r"[\w/-]+\.md|[\w/-]+/(?=\*)", nav))
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs")
        assert {name.as_posix(), f"{name.parent.as_posix()}/"} & listed, name


def test_broken_links_are_noticed(tmp_path: Path) -> None:
    """A missing page, and a missing heading."""
    page = tmp_path / "page.md"
    page.write_text("# One two\n[a](#one-two) [b](page.md#three) [c](gone.md) `[d](no.md)`\n")
    found = links(page.read_text())
    assert found == ["#one-two", "page.md#three", "gone.md"]
    assert [is_there(page, link) for link in found] == [True, False, False]
