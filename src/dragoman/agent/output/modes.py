"""How a model is made to give a value: in its answer, through a tool, or in a second request."""

from __future__ import annotations

from typing import Literal

from dragoman.errors import InvalidInputError
from dragoman.wire.target import Target

Mode = Literal["native", "tool", "two_phase"]
"""`native`: the provider holds the answer to the schema. `tool`: the model calls a tool with the
value. `two_phase`: it works with tools first, then is asked once more, for the value alone."""

_MODES = ("native", "tool", "two_phase")


def mode_for(target: Target | None, has_tools: bool, mode: Mode | None = None) -> Mode:  # noqa: FBT001 - the contract's order
    """How this target is asked; `mode` where the caller has chosen.

    Without a target, as for scripted models and people's own, nothing is known but tools.
    """
    if mode is not None:
        return checked_mode(mode)
    if target is None or "schema" not in target.schemas.outputs:
        return "tool"
    return "two_phase" if has_tools and target.schemas.refuses_json_with_tools else "native"  # W97


def checked_mode(mode: object) -> Mode:
    """The mode, if it is one."""
    for known in _MODES:
        if isinstance(mode, str) and mode == known:
            return known  # type: ignore[return-value]  # one of the three
    msg = f"the mode of a typed output must be {', '.join(_MODES[:-1])} or {_MODES[-1]}"
    raise InvalidInputError(msg)
