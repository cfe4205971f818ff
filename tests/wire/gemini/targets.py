"""Targets as the models of Google's are."""

from __future__ import annotations

from dragoman.wire.gemini.target import TARGET
from dragoman.wire.target import Target

THIRD = TARGET.replace(
    model="gemini-3-pro",
    signs_calls=True,
    media_in_results=True,
    thinking_form="effort",
)
SECOND = TARGET.replace(
    model="gemini-2.5-pro",
    media_in_results=False,
    takes_tool_ids=False,
    refuses_json_with_tools=True,
    refuses_mixed_tools=True,
    thinking_form="budget",
    prefill="free",
)
TARGETS: dict[str, Target] = {"unknown": TARGET, "third": THIRD, "second": SECOND}
