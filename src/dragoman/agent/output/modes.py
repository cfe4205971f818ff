"""Modes of typed output: in the answer, through a tool, or in a second request."""

from __future__ import annotations

from typing import Literal

from dragoman.errors import InvalidInputError
from dragoman.wire.target import Target

Mode = Literal["native", "tool", "two_phase"]
"""`native`: the provider enforces the schema. `tool`: the model calls a tool with the value.
`two_phase`: the model works with tools first, then a last request asks for the value alone."""

_MODES = ("native", "tool", "two_phase")


def mode_for(target: Target | None, has_tools: bool, mode: Mode | None = None) -> Mode:  # noqa: FBT001 - the contract's order
    """The mode for a target, unless the caller has chosen one.

    Without a target, as for scripted and custom models, only tools can be assumed.
    """
    if mode is not None:
        return checked_mode(mode)
    if target is None or "schema" not in target.schemas.outputs:
        return "tool"
    return "two_phase" if has_tools and target.schemas.refuses_json_with_tools else "native"  # W97


def checked_mode(mode: object) -> Mode:
    """The mode, if valid."""
    for known in _MODES:
        if isinstance(mode, str) and mode == known:
            return known  # type: ignore[return-value]  # one of the three
    msg = f"output_mode must be {', '.join(_MODES[:-1])} or {_MODES[-1]}"
    raise InvalidInputError(msg)
