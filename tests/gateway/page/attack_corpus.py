"""Hostile texts by the thousand: generated from parts, or taken from lists that others wrote.

Set DRAGOMAN_TEST_XSS to a file, or a folder of files, with one text per line to try those as well.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

_RUN = "window.pwned=1"
_HOST = "//evil.example"
_TAGS = (
    "img", "svg", "math", "iframe", "style", "script", "noscript", "template", "form", "input",
    "video", "audio", "object", "embed", "base", "meta", "link", "details", "marquee", "xmp",
    "textarea", "title", "select", "table", "body", "a", "button", "foreignObject", "mglyph",
    "annotation-xml", "animate", "set", "use", "frameset", "plaintext", "x-evil", "portal", "p",
    "desc", "malignmark", "option", "isindex", "keygen", "source", "image", "slot", "dialog",
)  # fmt: skip
_HANDLERS = (
    "onerror", "onload", "ontoggle", "onfocus", "onmouseover", "onbegin", "onpageshow", "onclick",
    "onanimationstart", "onbeforetoggle", "onscrollend", "oncontentvisibilityautostatechange",
)  # fmt: skip
_SCHEMES = (
    "javascript:", "JaVaScRiPt:", "java\tscript:", "java\nscript:", "&#106;avascript:",
    "javascript&colon;", "&#x6A&#x61vascript:", "\x01javascript:", " javascript:", "vbscript:",
    "data:text/html,<script>", "data:image/svg+xml,<svg onload=", "blob:", "file:///",
    "view-source:",
    "\u200bjavascript:", "javascript:/*--></title></style>*/", "feed:javascript:", "jar:",
    "intent:",
    "http:", "https:", "//", "\\\\", "/\\", "ws:", "filesystem:", "%6Aavascript:", "java%0ascript:",
)  # fmt: skip
_ATTRIBUTES = (
    "href", "src", "xlink:href", "formaction", "action", "srcdoc", "style", "poster", "background",
    "data", "ping", "srcset", "content", "http-equiv", "is", "id", "name", "class", "slot",
    "target",
    "autofocus", "tabindex", "values", "to", "from", "attributeName", "encoding", "popovertarget",
)  # fmt: skip
_CONFUSIONS = (
    "<math><mtext><table><mglyph><style><!--</style>", '<svg></p><style><a id="</style>',
    "<form><math><mtext></form><form><mglyph><style></math>", "<!--><!---->", "<![CDATA[", "]]>",
    '<noscript><p title="</noscript>', "<svg><desc><noscript>", "<select><template><style>",
    '<math><annotation-xml encoding="text/html">', "</title></textarea></style></script>", "<!-",
    '<svg><![CDATA[><image xlink:href="]]>', "<table><caption><svg><title></table>", "<?xml ", "<%",
    "<x\x00><", "<a\x0bhref=", "<\u2028", "\ufeff", "\u202e", "\u2066", "\U000e0041\U000e0042",
    "\ud83d",
    "&lt;", "&#60;", "&#x3c;", "&NewLine;", "&quot;", "\\", "`", "\"'><", "--!>", "${", "{{",
    "<!DOCTYPE x [",
)  # fmt: skip
_MARKDOWN = (
    "{}", "[{}](https://ok.example)", "[x]({})", "[x](<{}>)", '[x](https://ok.example "{}")',
    "![{}](https://evil.example/a.png)", "![x]({})", "[x][y]\n\n[y]: {}", "[{}]: {}\n\n[{}]",
    "<{}>",
    "# {}", "| a | {} |\n|---|:-:|\n| {} | b |", "- [ ] {}\n  1. {}", "> {}\n>> {}",
    "```{}\n{}\n```",
    "~~~js {}\n{}", "`{}`", "``{}`{}``", "${}$", "$$\n{}\n$$", "\\({}\\)", "\\[{}\\]",
    "**{}** *{}* ~~{}~~",
    "$\\href{{{}}}{{x}}$", "$\\text{{{}}}$", "$\\url{{{}}}\\includegraphics{{{}}}$", "    {}",
    "{}\n===",
    "$\\htmlStyle{{{}}}{{x}}\\class{{{}}}{{y}}\\unicode{{{}}}$", "[^1]\n\n[^1]: {}",
    "<div>\n\n{}\n\n</div>",
    "$\\def\\a{{{}}}\\a\\a$", "$\\color{{{}}}{{x}}\\tag{{{}}}$", "www.{}", "a@{}", "https://{}",
    "<!-- {} -->",
)  # fmt: skip


class _Maker:
    def __init__(self, seed: int) -> None:
        self._chance = Random(seed)

    def text(self) -> str:
        """A hostile text in one to three layers of Markdown."""
        found = self._fragment()
        for _ in range(self._chance.randint(1, 3)):
            frame = self._chance.choice(_MARKDOWN)
            others = (self._fragment() for _ in range(frame.count("{}") - 1))
            found = frame.format(found, *others)
        return found

    def _fragment(self) -> str:
        kinds = (self._tag, self._tag, self._url, self._confused, self._nested)
        return self._chance.choice(kinds)()

    def _url(self) -> str:
        return self._chance.choice(_SCHEMES) + self._chance.choice(
            (_RUN, _HOST, f"{_HOST}/x'\"><b>")
        )

    def _tag(self) -> str:
        tag, quote = self._chance.choice(_TAGS), self._chance.choice(("", '"', "'", "`"))
        space = self._chance.choice((" ", "/", "\t", "\n", "\x0c"))
        pairs = [
            f"{self._chance.choice(_HANDLERS)}={quote}{_RUN}{quote}",
            f"{self._chance.choice(_ATTRIBUTES)}={quote}{self._url()}{quote}",
        ]
        end = self._chance.choice((">", f">{_RUN}</{tag}>", "/>", "", ">x"))
        return f"<{tag}{space}{space.join(pairs)}{end}"

    def _confused(self) -> str:
        return self._chance.choice(_CONFUSIONS) + self._tag()

    def _nested(self) -> str:
        middle = self._chance.choice(_CONFUSIONS)
        return f"<{self._chance.choice(_TAGS)}>{middle}{self._tag()}</{self._chance.choice(_TAGS)}>"


def generated(count: int, seed: int = 1) -> list[str]:
    """Hostile texts, the same ones for the same seed."""
    maker = _Maker(seed)
    return [_encodable(maker.text()) for _ in range(count)]


def foreign() -> list[str]:
    """The texts of the lists in DRAGOMAN_TEST_XSS, if it is set."""
    place = os.environ.get("DRAGOMAN_TEST_XSS")
    return [] if place is None else list(dict.fromkeys(_lines(Path(place))))


def _lines(place: Path) -> Iterator[str]:
    for path in sorted(place.iterdir()) if place.is_dir() else [place]:
        yield from filter(None, path.read_text("utf-8", "replace").splitlines())


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


NAMES = tuple(generated(300, seed=2))
"""Texts for fields that are not Markdown, such as names and titles."""
