"""Compiles JSON Schema into the subset that each target supports; see `projection.projected`.

- `profiles`: what a target supports, as data; each dialect has its own
- `projection`: the entry point, and its result
- `compiler`: the traversal of a schema; `containers`, `unions` and `types` handle their keywords,
  `references` and `merging` handle references and combined schemas
- `request_schemas`: the schemas of a whole request
- `undo`: converts values back to the original schema
"""

from __future__ import annotations

from typing import Any

from dragoman.wire.schemas.keywords import Weight
from dragoman.wire.schemas.profiles import PLAIN, Profile
from dragoman.wire.schemas.projection import Projection, projected
from dragoman.wire.schemas.request_schemas import Profiles, SentSchemas

__all__ = [
    "PLAIN",
    "Profile",
    "Profiles",
    "Projection",
    "SentSchemas",
    "Weight",
    "projected",
]


def __getattr__(name: str) -> Any:
    """Return `PROFILES`, all profiles by name, or a single profile by its name in capitals."""
    if name.isupper():
        from dragoman.wire.dialect import schema_profiles  # not above: dialects import this

        found = {PLAIN.name: PLAIN, **schema_profiles()}
        if name == "PROFILES":
            return found
        if profile := found.get(name.lower().replace("_", "-")):
            return profile
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
