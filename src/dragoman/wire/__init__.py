"""Wire formats: translates between provider JSON and the message model. Performs no I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman._lazy import lazily

if TYPE_CHECKING:
    from dragoman.wire.context import Context
    from dragoman.wire.dialect import Dialect
    from dragoman.wire.encoded import Encoded
    from dragoman.wire.front import Front
    from dragoman.wire.losses import Loss, Repair
    from dragoman.wire.target import Target
    from dragoman.wire.violations import Violation

_HOMES = {
    "context": ("Context",),
    "dialect": ("Dialect",),
    "encoded": ("Encoded",),
    "front": ("Front",),
    "losses": ("Loss", "Repair"),
    "target": ("Target",),
    "violations": ("Violation",),
}

__all__ = [
    "Context",
    "Dialect",
    "Encoded",
    "Front",
    "Loss",
    "Repair",
    "Target",
    "Violation",
]

__getattr__, __dir__ = lazily(__name__, _HOMES)
