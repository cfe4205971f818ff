"""Targets with the flags of Google's models."""

from __future__ import annotations

from dragoman.wire.gemini.dialect import TARGET
from dragoman.wire.target import Target

THIRD = TARGET.with_flags(
    {
        "model": "gemini-3-pro",
        "thinking.signs_calls": True,
        "media.in_results": True,
        "thinking.form": "effort",
    }
)
SECOND = TARGET.with_flags(
    {
        "model": "gemini-2.5-pro",
        "media.in_results": False,
        "ids.are_allowed": False,
        "schemas.refuses_json_with_tools": True,
        "tools.refuses_mixed": True,
        "thinking.form": "budget",
        "turns.prefill": "free",
    }
)
TARGETS: dict[str, Target] = {"unknown": TARGET, "third": THIRD, "second": SECOND}
