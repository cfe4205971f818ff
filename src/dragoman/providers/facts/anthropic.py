"""Anthropic's models."""

from __future__ import annotations

from dragoman.providers.facts.sizes import Size
from dragoman.providers.family import Family

_ANTHROPIC = "anthropic"
_LOW_TO_HIGH = ("low", "medium", "high")

_ERRORS = ("recorded error texts", "2026-11")
_DOCS = ("Anthropic's documentation; wire rules", "2026-11")
_PROBED = ("pydantic-ai 2.66 profiles, tried against the API", "2026-10")
_LIKE_5_1 = ("assumed: as the 5.1 of the same name", "2026-11")

_WITHOUT_SCHEMAS = {"schemas.takes_strict_tools": False, "schemas.outputs": ("text",)}
_UNFORCED = {"tools.takes_forced_choice": False}

_MODELS = (
    Family(
        r"claude-(instant|[12]\b|3-(opus|sonnet|haiku|5))",
        {"thinking.form": "never", "thinking.efforts": (), **_WITHOUT_SCHEMAS}, _ANTHROPIC, *_DOCS,
    ),
    Family(
        r"claude-(3-7|(opus|sonnet)-4(?!-[1-9]\b))",
        {"thinking.form": "budget", "thinking.efforts": (), **_WITHOUT_SCHEMAS}, _ANTHROPIC, *_DOCS,
    ),
    Family(
        r"claude-(opus-4-1|(sonnet|haiku)-4-5)",
        {"thinking.form": "budget", "thinking.efforts": ()}, _ANTHROPIC, *_DOCS,
    ),
    Family(
        r"claude-opus-4-5",
        {"thinking.form": "budget", "thinking.efforts": _LOW_TO_HIGH}, _ANTHROPIC, *_DOCS,
    ),
    # "`temperature` and `top_p` cannot both be specified for this model": W59.
    Family(
        r"claude-(opus-4-[156]|(sonnet|haiku)-4-[56])\b",
        {"sampling.refuses_temperature_with_top_p": True}, _ANTHROPIC, *_ERRORS,
    ),
    # W48: no prefill. The efforts are from a recorded error text.
    Family(
        r"claude-(opus|sonnet)-4-6",
        {
            "thinking.form": "either",
            "thinking.efforts": (*_LOW_TO_HIGH, "max"),
            "turns.prefill": "refused",
        },
        _ANTHROPIC, *_ERRORS,
    ),
    # W59: adaptive thinking only, and no sampling settings.
    Family(
        r"claude-(opus-4-[7-9]|[a-z]+-([5-9]|\d\d)\b|mythos|fable)",
        {
            "thinking.form": "adaptive",
            "thinking.efforts": (*_LOW_TO_HIGH, "xhigh", "max"),
            "turns.prefill": "refused",
            "sampling.refused": ("temperature", "top_p", "top_k"),
        },
        _ANTHROPIC, *_PROBED,
    ),
    # Thinking can't be turned off.
    Family(
        r"claude-(fable-5|mythos|opus-5-5)", {"thinking.is_always_on": True}, _ANTHROPIC, *_PROBED
    ),
    # `disabled` is refused, with an error text that names this value instead.
    Family(r"claude-sonnet-5-5", {"thinking.off_word": "between_tools"}, _ANTHROPIC, *_PROBED),
    Family(
        r"claude-(?!opus-(4-[6-9]|[5-9]))", {"sampling.has_fast_mode": False}, _ANTHROPIC,
        "Anthropic's documentation", "2026-11",
    ),
    # Tool calls can't be forced, with or without thinking.
    Family(
        r"claude-(fable-5-1|mythos-5-1|opus-5-5|sonnet-5-5)", _UNFORCED, _ANTHROPIC, *_PROBED
    ),
    Family(r"claude-(fable|mythos)-5-[2-9]", _UNFORCED, _ANTHROPIC, *_LIKE_5_1),
)  # fmt: skip

_PRICES = ("genai-prices 0.2.1; Anthropic's list of models", "2026-11")

SIZES = (
    Size(r"claude-(2\.0|instant)", 100_000, 4_096, *_DOCS),
    Size(r"claude-(mythos-5|fable-5-[2-9])", 1_000_000, 128_000,
         "assumed: as claude-fable-5-1", "2026-11"),
    Size(r"claude-(fable-5|(opus|sonnet)-(4-[6-8]|5)|haiku-5-5)", 1_000_000, 128_000, *_PRICES),
    Size(r"claude-(haiku|opus|sonnet)-4-5", 200_000, 64_000, *_PRICES),
    Size(r"claude-(opus-4|4-opus)", 200_000, 32_000, *_DOCS),
    Size(r"claude-(sonnet-4|4-sonnet|3-7)", 200_000, 64_000, *_DOCS),
    Size(r"claude-3-5", 200_000, 8_192, *_DOCS),
    Size(r"claude-[2-4]", 200_000, 4_096, *_DOCS),
    Size(r"claude", 200_000, 64_000, "assumed: as the ones before 4.6", "2026-11"),
)  # fmt: skip

# The first row that matches counts for a size, and the last for a flag.
_LIMITS = tuple(
    Family(size.pattern, {"sampling.default_output_tokens": size.max_output_tokens}, _ANTHROPIC,
           size.source, size.date)
    for size in reversed(SIZES)
)  # fmt: skip
FAMILIES = (*_MODELS, *_LIMITS)

NAMES = (
    # anthropic 2.8: types/model.py, without dates
    "claude-fable-5-2", "claude-mythos-5-2", "claude-haiku-5-5", "claude-sonnet-5-5",
    "claude-fable-5-1", "claude-opus-5-5", "claude-mythos-5-1", "claude-sonnet-5", "claude-fable-5",
    "claude-mythos-5", "claude-opus-5", "claude-opus-4-8", "claude-opus-4-7", "claude-mythos",
    "claude-opus-4-6", "claude-sonnet-4-6", "claude-haiku-4-5", "claude-opus-4-5",
    "claude-sonnet-4-5",
    # recorded traffic, and genai-prices 0.2.1
    "claude-opus-4-1", "claude-opus-4-0", "claude-opus-4", "claude-sonnet-4-0", "claude-sonnet-4",
    "claude-3-7-sonnet", "claude-3-5-sonnet", "claude-3-5-haiku", "claude-3-opus",
    "claude-3-sonnet", "claude-3-haiku", "claude-2", "claude-2.0", "claude-2.1", "claude-instant",
    "claude-instant-1.2",
)  # fmt: skip
