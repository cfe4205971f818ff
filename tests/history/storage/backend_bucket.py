"""Sessions in a bucket of objects: the example of docs/contributing/write-a-backend.md."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from dragoman.history.storage.protocol import Storage

_PAGE = Path(__file__).parents[3] / "docs" / "contributing" / "write-a-backend.md"


@cache
def _example() -> dict[str, Any]:
    """The names that the page's first two Python blocks define."""
    names: dict[str, Any] = {"__name__": "bucket"}
    for block in _PAGE.read_text().split("```python\n")[1:3]:
        code = compile(block.partition("```")[0], str(_PAGE), "exec", dont_inherit=True)
        exec(code, names)  # noqa: S102 - our own documentation
    return names


@contextmanager
def place(_tmp_path: Path) -> Generator[Callable[[], Storage]]:
    """A bucket of its own."""
    names = _example()
    bucket = names["Bucket"]()
    yield lambda: names["Ledger"](names["BucketShelf"](bucket))
