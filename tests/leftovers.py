"""Objects that stay in memory although nobody refers to them any more: those in cycles."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType, FunctionType
from typing import Any


@contextmanager
def leftovers() -> Generator[Counter[str]]:
    """After the block: what only the garbage collector would free of ours, by type.

    These are objects of our own types, our functions, and the frames of our calls.
    """
    left: Counter[str] = Counter()
    gc.collect()
    gc.freeze()  # what is older is not searched again
    gc.disable()
    try:
        yield left
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        left.update(name for found in gc.garbage if (name := _name(found)).startswith("dragoman"))
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
        gc.collect()


def _name(found: Any) -> str:
    if isinstance(found, FrameType):
        return f"{found.f_globals.get('__name__')}.{found.f_code.co_qualname}"
    kind = found if isinstance(found, FunctionType) else type(found)
    return f"{kind.__module__}.{kind.__qualname__}"
