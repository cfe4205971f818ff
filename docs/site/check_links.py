"""Checks a built site: `python docs/site/check_links.py build/site`.

Every internal link must lead to a file, and to an id in it if it names one. No page may load
anything (scripts, styles, pictures, fonts) from another host.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADING = {"audio", "embed", "iframe", "img", "link", "script", "source", "video"}
_NOT_LOADED = {"canonical", "next", "prev", "edit"}  # relations of <link> that fetch nothing
_IN_STYLES = re.compile(r"(?:@import\s+|url\()\s*[\"']?(https?:)?//", re.IGNORECASE)


class Links(HTMLParser):
    """The ids of a page, where it links to, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes ids, links and what is loaded."""
        told = {name: value or "" for name, value in attrs}
        self.ids |= {told[name] for name in ("id", "name") if told.get(name)}
        address = told.get("href") or told.get("src")
        if not address or (tag == "link" and told.get("rel") in _NOT_LOADED):
            return
        self.links.append(address)
        if tag in _LOADING:
            self.loaded.append(address)


def problems(site: Path) -> Iterator[str]:
    """What is wrong with a site, one line each."""
    pages = {
        page.relative_to(site).as_posix(): Links(page.read_text(encoding="utf-8"))
        for page in sorted(site.rglob("*.html"))
    }
    for name, page in pages.items():
        yield from (f"{name}: loads {each}" for each in page.loaded if _is_elsewhere(each))
        if name != "404.html":  # its links are absolute: it is shown at any address
            yield from (
                f"{name}: {link}" for link in page.links if _is_broken(site, pages, name, link)
            )
    for style in sorted(site.rglob("*.css")):
        if _IN_STYLES.search(style.read_text(encoding="utf-8")):
            yield f"{style.relative_to(site)}: loads from elsewhere"
    yield from _llms_problems(site)


def _is_elsewhere(address: str) -> bool:
    return bool(urlsplit(address).netloc)


def _is_broken(site: Path, pages: dict[str, Links], page: str, link: str) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return False
    path = unquote(parts.path)
    place = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
    if (site / place).is_dir():
        place = posixpath.join(place, "index.html")
    place = posixpath.normpath(place)
    if not (site / place).is_file():
        return True
    anchor = unquote(parts.fragment)
    return bool(anchor) and place in pages and anchor not in pages[place].ids


def _llms_problems(site: Path) -> Iterator[str]:
    file = site / "llms.txt"
    if not file.is_file():
        yield "llms.txt is missing"
        return
    for address in re.findall(
        r"^- \[.*?\]\((.*?)\)", file.read_text(encoding="utf-8"), re.MULTILINE
    ):
        if not _is_elsewhere(address) and not (site / address / "index.html").is_file():
            yield f"llms.txt: {address}"


def main(site: Path) -> int:
    """Prints what is wrong; the exit code says whether anything is."""
    found = list(problems(site))
    for problem in found:
        print(problem, file=sys.stderr)
    count = len(list(site.rglob("*.html")))
    print(f"{count} pages: {len(found) or 'no'} problems")
    return 1 if found or not count else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
