"""Google's models."""

from __future__ import annotations

from dragoman.providers.facts.sizes import Size
from dragoman.providers.family import Family

_GEMINI = "gemini"
_LOW_TO_HIGH = ("low", "medium", "high")
_K = 1024

_ERRORS = ("recorded error texts", "2026-11")
_DOCS = ("Google's documentation; wire rules", "2026-11")
_PROBED = ("pydantic-ai 2.66 profiles, tried against the API", "2026-10")

_OLD = {
    "turns.prefill": "free",
    "media.in_results": False,
    "schemas.refuses_json_with_tools": True,
    "tools.refuses_mixed": True,
}

FAMILIES = (
    Family(r"(models/)?gemini-(1|2\.0)", {"thinking.form": "never", **_OLD}, _GEMINI, *_ERRORS),
    # W93: older than the JSON Schema fields.
    Family(r"(models/)?gemini-1", {"schemas.takes_json_schema": False}, _GEMINI, *_DOCS),
    Family(
        r"(models/)?gemini-2\.5",
        # 0 is off
        {"thinking.form": "budget", "thinking.budget_range": (1, 24_576), **_OLD}, _GEMINI, *_DOCS,
    ),
    Family(
        r"(models/)?gemini-2\.5-pro",
        {"thinking.budget_range": (128, 32_768), "thinking.is_always_on": True}, _GEMINI, *_DOCS,
    ),
    Family(
        r"(models/)?gemini-2\.5-flash-lite", {"thinking.budget_range": (512, 24_576)},
        _GEMINI, *_DOCS,
    ),
    # "Thinking is not enabled for this model".
    Family(r"(models/)?gemini-2\.5-flash-image", {"thinking.form": "never"}, _GEMINI, *_PROBED),
    # W83, W96: from here on calls are signed, and results can hold media.
    Family(
        r"(models/)?gemini-([3-9]|\d\d)",
        {
            "thinking.form": "effort",
            "thinking.is_on_by_default": True,
            "thinking.signs_calls": True,
            "media.in_results": True,
        },
        _GEMINI, *_DOCS,
    ),
    # "Thinking level MEDIUM is not supported for this model": supported from 3.1 on. MINIMAL is
    # only supported by Flash, up to 3.6.
    Family(r"(models/)?gemini-3-pro", {"thinking.efforts": ("low", "high")}, _GEMINI, *_ERRORS),
    Family(
        r"(models/)?gemini-([3-9]\.\d+-pro|3\.[78]-flash|4-argon)",
        {"thinking.efforts": _LOW_TO_HIGH}, _GEMINI, *_PROBED,
    ),
    Family(
        r"(models/)?gemini-4-carbon", {"thinking.efforts": _LOW_TO_HIGH},
        _GEMINI, "assumed: as gemini-4-argon", "2026-11",
    ),
    Family(
        r"(models/)?gemini-3\.1-flash-lite-image", {"thinking.efforts": ("minimal", "high")},
        _GEMINI, *_DOCS,
    ),
)  # fmt: skip

_PRICES = ("genai-prices 0.2.1", "2026-11")

SIZES = (
    Size(r"gemini-1\.5-pro|gemini-exp", 2 * _K * _K, None, *_DOCS),
    Size(r"gemini-1\.0|gemini-pro$", 32 * _K, None, *_DOCS),
    Size(r"gemini-2\.0-flash", _K * _K, 8_192, *_DOCS),
    Size(r"gemini-(2\.5|3\.8).*-tts", 8_192, None, *_PRICES),
    Size(r"gemini-3\.8-live", 128 * _K, None, *_PRICES),
    Size(
        r"gemini-3\.8-flash", _K * _K, 65_536, "Vercel AI Gateway, its page of the model", "2026-11"
    ),
    # One limit for input and output together.
    Size(r"gemini-4-argon", _K * _K, _K * _K, "Google's introduction to Gemini 4", "2026-11"),
    Size(r"gemini", _K * _K, None, *_DOCS),
    Size(r"gemma-4", 256 * _K, None, *_PRICES),
)

NAMES = (
    # google-genai 3.1: _gaos/types/interactions/model.py, without dates
    "gemini-4-argon", "gemini-4-carbon", "gemini-3.8-flash", "gemini-3.8-flash-tts",
    "gemini-3.8-flash-lite-tts", "gemini-3.7-flash", "gemini-3.6-flash", "gemini-3.5-flash",
    "gemini-3.5-flash-lite", "gemini-3.1-pro", "gemini-3.1-pro-preview-customtools",
    "gemini-3.1-flash-lite", "gemini-3.1-flash-lite-image", "gemini-3.1-flash-image",
    "gemini-3.1-flash-tts", "gemini-3-pro", "gemini-3-pro-image", "gemini-3-flash",
    "gemini-2.5-pro", "gemini-2.5-flash", "gemini-2.5-flash-lite", "gemini-2.5-flash-image",
    "gemini-flash", "gemini-flash-lite", "gemini-pro", "nano-banana-pro", "gemini-nano-banana-2.1",
    "gemma-4-26b-a4b-it", "gemma-4-31b-it",
    # google-genai 3.3: nothing else is known of it
    "gemini-4-hydrogen",
    # recorded traffic, and genai-prices 0.2.1
    "gemini-2.5-pro-tts", "gemini-2.5-flash-tts", "gemini-2.5-flash-lite-tts", "gemini-3.1-live",
    "gemini-2.0-flash", "gemini-2.0-flash-lite", "gemini-2.0-flash-thinking", "gemini-2.0-pro",
    "gemini-1.5-pro", "gemini-1.5-flash", "gemini-1.5-flash-8b", "gemini-1.0-pro", "gemini-exp",
    "gemini-1.0-pro-vision", "gemini-robotics-er-2", "gemini-robotics-er-1.6", "gemini-omni-flash",
    "gemini-omni-1.1-flash", "gemini-omni-1.2-flash", "gemini-3.5-transcribe", "lyria-3-clip",
    "lyria-3-pro", "lyria-3.5",
    "gemma-3-27b-it", "gemma-3-12b-it", "gemma-3-4b-it", "gemma-3-1b-it", "gemma-3n-e4b-it",
    "gemma-3n-e2b-it", "gemma-2-27b-it", "gemini-2.5-computer-use",
    "tunedmodels/*",
    # embeddings
    "gemini-embedding", "gemini-embedding-2", "text-embedding", "embedding",
)  # fmt: skip
