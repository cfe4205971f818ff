"""One compiler from JSON Schema to what each target takes; see `projection.projected`.

- `profiles`: what each target takes, as data
- `projection`: the way in, and what comes out
- `compiler`: the walk over a schema; `objects`, `arrays`, `unions`, `literals` and `types` know
  their keywords, `references` and `merging` what stands elsewhere, `notes` the words for the rest
- `sent`: the schemas of a whole request
- `weights`: what is counted in them
- `undoing`: from the target's terms back to the original's
"""

from __future__ import annotations

from dragoman.wire.schemas.keywords import Weight
from dragoman.wire.schemas.profiles import (
    ANTHROPIC,
    ANTHROPIC_STRICT,
    GEMINI_JSON_SCHEMA,
    GEMINI_OUTPUT,
    GEMINI_PARAMETERS,
    OLLAMA,
    OPENAI,
    OPENAI_STRICT,
    PLAIN,
    PROFILES,
    Profile,
)
from dragoman.wire.schemas.projection import Projection, projected
from dragoman.wire.schemas.request_schemas import (
    ANTHROPICS,
    NO_PARAMETERS,
    Profiles,
    SentSchemas,
    anthropic_profiles,
    is_refused_strict,
    openai_profiles,
)

__all__ = [
    "ANTHROPIC",
    "ANTHROPICS",
    "ANTHROPIC_STRICT",
    "GEMINI_JSON_SCHEMA",
    "GEMINI_OUTPUT",
    "GEMINI_PARAMETERS",
    "NO_PARAMETERS",
    "OLLAMA",
    "OPENAI",
    "OPENAI_STRICT",
    "PLAIN",
    "PROFILES",
    "Profile",
    "Profiles",
    "Projection",
    "SentSchemas",
    "Weight",
    "anthropic_profiles",
    "is_refused_strict",
    "openai_profiles",
    "projected",
]
