"""One compiler from JSON Schema to what each target takes; see `projection.projected`.

- `profiles`: what a target takes, as data; each dialect has its own
- `projection`: the way in, and what comes out
- `compiler`: the walk over a schema; `containers`, `unions` and `types` know their keywords,
  `references` and `merging` what stands elsewhere
- `request_schemas`: the schemas of a whole request
- `undo`: from the target's terms back to the original's
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
    """`PROFILES`: all profiles, by name. Each is here as well, by its name in capitals."""
    if name.isupper():
        from dragoman.wire.dialect import schema_profiles  # not above: dialects import this

        found = {PLAIN.name: PLAIN, **schema_profiles()}
        if name == "PROFILES":
            return found
        if profile := found.get(name.lower().replace("_", "-")):
            return profile
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
