"""What differs between the deployments and models of one dialect."""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import Literal

from dragoman.model.value import Value


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


class Target(Value, frozen=True, kw_only=True, gc=True, dict=True):
    """The facts about a target that decide how a request has to look.

    Each dialect has one for its vendor's own deployment; providers and models are variations of
    it (`target.replace(...)`). Wire code asks these flags, never for a provider's name.
    """

    dialect: str
    provider: str | None = None
    model: str | None = None
    tool_id: str = r"[\s\S]*"
    """What a tool call's id must look like, as a regular expression for the whole of it."""
    tool_id_length: int = 64
    """The most characters an id may have; ids that we make have as many as fit, up to 29."""
    tool_name: str = r"[A-Za-z0-9_-]{1,64}"
    """What a tool's name must look like."""
    tool_name_length: int = 64
    has_unique_tool_ids: bool = False
    """Whether an id may be used once only in a whole request (W43)."""
    pairs_results: bool = True
    """Whether every call needs its result, and every result its call, before anyone goes on."""
    groups_results: bool = False
    """Whether all results of a round must be in one message (W40, W78)."""
    merges_turns: bool = False
    """Whether neighbouring messages of one role are one turn to it: calls in two of them wait for
    results together."""
    refuses_blank_text: bool = False
    """Whether a text of nothing but white space is refused (W46, W76)."""
    thinking_back: Literal["own", "never", "all"] = "own"
    """Which thinking goes back to it: what it made itself, none (Groq: W110), or some in every
    answer, be it empty (DeepSeek: C2)."""
    verifies_thinking: bool = False
    """Whether thinking without a signature is refused (W54)."""
    thinking_begins_turns: bool = False
    """Whether, with thinking on, a turn that goes on after tools must have begun with it (W51)."""
    keeps_state: bool = False
    """Whether it may have kept earlier messages, to which results in this request belong."""
    needs_message: bool = False
    """Whether instructions alone are refused (W47, W75)."""
    starts_with_user: bool = False
    """Whether the first message must be the user's (W47, W77)."""

    @cached_property
    def _id(self) -> re.Pattern[str]:
        return _compiled(self.tool_id)

    @cached_property
    def _name(self) -> re.Pattern[str]:
        return _compiled(self.tool_name)

    def accepts_id(self, tool_id: str) -> bool:
        """Whether a tool call may have this id."""
        return len(tool_id) <= self.tool_id_length and self._id.fullmatch(tool_id) is not None

    def accepts_name(self, name: str) -> bool:
        """Whether a tool may have this name."""
        return self._name.fullmatch(name) is not None
