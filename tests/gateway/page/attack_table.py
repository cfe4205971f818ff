"""The attacks on the page by name, as docs/operations/web-page-attacks.md lists them.

python -m tests.gateway.page.attack_table   # writes the tables anew
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tests.gateway.page.attacks import ATTACKS as RENDERING
from tests.gateway.page.test_access import ATTACKS as REQUESTS
from tests.gateway.page.test_on_a_gateway import PASTED

PAGE = Path(__file__).parents[3] / "docs" / "operations" / "web-page-attacks.md"
_REFUSED = "refused with 403, nothing is stored"


def _rows(heads: tuple[str, str], rows: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"| {one} | {other} |" for one, other in (heads, ("---", "---"), *rows))


TABLES = {
    "output": _rows(("attack", "outcome"), ((each.name, each.outcome) for each in RENDERING)),
    "requests": _rows(("request", "outcome"), ((name, _REFUSED) for name in REQUESTS)),
    "lens": _rows(
        ("text", "the lens shows"), ((name, f"`{shows}`") for name, (_, shows) in PASTED.items())
    ),
}


def written(page: str) -> str:
    """The page with its tables as they should be."""
    for name, table in TABLES.items():
        block = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- end -->)", re.DOTALL)
        page, count = block.subn(rf"\g<1>{table.replace(chr(92), chr(92) * 2)}\g<2>", page)
        assert count == 1, name
    return page


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
