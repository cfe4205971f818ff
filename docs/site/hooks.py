"""What the site needs beyond mkdocs' settings; mkdocs.yml names this file under `hooks`.

- The version stands in the site's name.
- CHANGELOG.md, CONTRIBUTING.md and SECURITY.md become pages of the site.
- `folder/*` in the navigation is replaced with the folder's remaining pages.
- Links to files outside docs/ lead to the repository, or become plain text if it is unknown.
- Guides rank first in the search, then recipes and operations; two long tables for maintainers
  are left out of it.
- llms.txt lists all pages for language models (https://llmstxt.org).
"""

from __future__ import annotations

import os
import posixpath
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.nav import Navigation
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
GENERATED = {  # files of the repository's root, and the pages that they become
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing/index.md",
    "SECURITY.md": "security.md",
}
_LINK = re.compile(r"(?P<text>!?\[[^\]]*\])\((?P<target>[^)\s]+)\)")
_CODE_OR_LINK = re.compile(
    rf"^ *(?P<fence>`{{3,}}).*?^ *(?P=fence) *$|{_LINK.pattern}|`[^`\n]*`", re.MULTILINE | re.DOTALL
)
_FENCED = re.compile(r"^ *(`{3,}).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r"^# +(.+)$", re.MULTILINE)


class Listed(NamedTuple):
    """A page in llms.txt."""

    title: str
    address: str
    summary: str


def on_config(config: MkDocsConfig, **_: Any) -> None:
    """Fills in what is computed: version, repository and the globs of the navigation."""
    config.site_name = f"Dragoman {version()}"
    config.repo_url = config.repo_url or repository()
    config.repo_name = "Repository"
    if not config.repo_url:
        config.edit_uri = None
    config.nav = expanded(config.nav or [], pages(Path(config.docs_dir)))


def on_files(files: Files, config: MkDocsConfig, **_: Any) -> None:
    """Adds the pages that are made from files of the repository's root."""
    from mkdocs.structure.files import File

    for name, page in GENERATED.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        content = relocated(text, "", posixpath.dirname(page))
        file = File.generated(config, page, content=content)
        file.edit_uri = f"../{name}"
        files.append(file)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Redirects links to files that are not part of the site, and ranks the page in the search."""
    page.meta["search"] = search_rank(page.file.src_uri)
    return linked(markdown, page.file.src_uri, config.repo_url or "")


def search_rank(page: str) -> dict[str, Any]:
    """How the search treats a page: long tables for maintainers would bury everything else."""
    if page in {"contributing/carried-as-is.md", "contributing/requirements-trace.md"}:
        return {"exclude": True}
    if page.startswith(("get-started/", "guides/")):
        return {"boost": 3}
    return {"boost": 2 if page.startswith(("recipes/", "operations/")) else 1}


def on_nav(nav: Navigation, config: MkDocsConfig, **_: Any) -> None:
    """Keeps the navigation for llms.txt."""
    config.extra["_nav"] = nav


def on_post_build(config: MkDocsConfig, **_: Any) -> None:
    """Writes llms.txt."""
    nav: Navigation = config.extra["_nav"]
    sections = {
        item.title or "": list(_listed(item, config.site_url or ""))
        for item in nav.items
        if item.is_section
    }
    text = llms_text("Dragoman", config.site_description or "", sections)
    (Path(config.site_dir) / "llms.txt").write_text(text, encoding="utf-8")


def _listed(item: Any, base: str) -> Iterator[Listed]:
    for child in item.children or ():
        yield from _listed(child, base)
    if item.is_page:
        yield Listed(item.title, base + item.url, summary(item.markdown or ""))


def llms_text(name: str, description: str, sections: dict[str, list[Listed]]) -> str:
    """The text of llms.txt: a title, a sentence, and the pages by section."""
    lines = [f"# {name}", "", f"> {' '.join(description.split())}"]
    for title, listed in sections.items():
        lines += ["", f"## {title}", ""]
        lines += [f"- [{page.title}]({page.address}): {page.summary}" for page in listed]
    return "\n".join(lines) + "\n"


def summary(markdown: str) -> str:
    """The first sentence below the title, without markup."""
    below = _FENCED.sub("", _TITLE.split(markdown, maxsplit=1)[-1])
    paragraphs = (part.strip() for part in below.split("\n\n"))
    first = next((part for part in paragraphs if re.match(r"[\w*\[`]", part)), "")
    plain = _LINK.sub(lambda found: found["text"].strip("![]"), " ".join(first.split()))
    return re.split(r"(?<=[.:]) ", plain.replace("**", ""), maxsplit=1)[0].rstrip(":")


def version() -> str:
    """The package's version, read without importing it."""
    text = (ROOT / "src" / "dragoman" / "_version.py").read_text(encoding="utf-8")
    found = re.search(r'__version__ = "([^"]+)"', text)
    assert found is not None  # noqa: S101 - the build reads the same line
    return found[1]


def repository() -> str:
    """The repository's address on the web: of hosted CI, or of the git remote; empty if unknown."""
    if "GITHUB_REPOSITORY" in os.environ:
        host = os.environ.get("GITHUB_SERVER_URL", "https://github.com")
        return f"{host}/{os.environ['GITHUB_REPOSITORY']}"
    command = ["git", "-C", str(ROOT), "remote", "get-url", "origin"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:  # no git
        return ""
    remote = re.fullmatch(r"(?:https://|git@|ssh://git@)([\w.-]+)[:/]([\w./-]+?)(?:\.git)?", told)
    return f"https://{remote[1]}/{remote[2]}" if remote else ""


def pages(folder: Path) -> dict[str, str]:
    """The pages below a folder by path, with their titles."""
    found = sorted(folder.rglob("*.md"))
    return {page.relative_to(folder).as_posix(): _title(page) for page in found}


def _title(page: Path) -> str:
    found = _TITLE.search(page.read_text(encoding="utf-8"))
    return found[1] if found else page.stem


def expanded(nav: list[Any], titles: dict[str, str]) -> list[Any]:
    """A navigation in which each `folder/*` is replaced with the folder's remaining pages."""
    named = set(_named(nav))
    return [item for item in (_expanded(entry, titles, named) for entry in nav) for item in item]


def _expanded(entry: Any, titles: dict[str, str], named: set[str]) -> list[Any]:
    if isinstance(entry, str):
        if not entry.endswith("/*"):
            return [entry]
        folder = entry.removesuffix("/*")
        rest = [p for p in titles if posixpath.dirname(p) == folder and p not in named]
        return sorted(rest, key=lambda p: (posixpath.basename(p) != "index.md", titles[p].lower()))
    ((title, value),) = entry.items()
    if isinstance(value, str):
        return [entry]
    inner = [item for each in value for item in _expanded(each, titles, named)]
    return [{title: inner}] if inner else []


def _named(nav: list[Any]) -> Iterator[str]:
    for entry in nav:
        for value in entry.values() if isinstance(entry, dict) else [entry]:
            if isinstance(value, str):
                yield value
            else:
                yield from _named(value)


def relocated(text: str, before: str, after: str) -> str:
    """A page's text with its links adapted, for a page that moves from the root into docs/."""

    def changed(target: str) -> str:
        path, mark, anchor = target.partition("#")
        place = posixpath.normpath(posixpath.join(before, path))
        inside = GENERATED.get(place) or place.removeprefix("docs/")
        if inside == place:  # outside docs/: as seen from there
            inside = f"../{place}"
        return posixpath.relpath(inside, after or ".") + mark + anchor

    return _with_links(text, changed)


def linked(text: str, page: str, repository_url: str) -> str:
    """A page's text with links that leave docs/ pointing to generated pages or the repository."""
    folder = posixpath.dirname(page)

    def changed(target: str) -> str | None:
        path, mark, anchor = target.partition("#")
        place = posixpath.normpath(posixpath.join(folder, path))
        if not place.startswith("../"):
            return target
        inside = GENERATED.get(place.removeprefix("../"))
        if inside:
            return posixpath.relpath(inside, folder or ".") + mark + anchor
        return f"{repository_url}/blob/main/{place[3:]}{mark}{anchor}" if repository_url else None

    return _with_links(text, changed)


def _with_links(text: str, changed: Any) -> str:
    """A text whose relative links, code apart, went through a function; `None` unlinks."""

    def link(found: re.Match[str]) -> str:
        target = found["target"]
        if target is None or "://" in target or target.startswith(("#", "mailto:")):
            return found[0]  # code, or another site
        new = changed(target)
        return found["text"].strip("[]") if new is None else f"{found['text']}({new})"

    return _CODE_OR_LINK.sub(link, text)
