"""Converts thinking settings (efforts, budgets, switches) into the form the target supports."""

from __future__ import annotations

from typing import Any

from dragoman.model.requests import Request, ThinkingConfig
from dragoman.wire.losses import NEAREST_EFFORT, Action, Loss, Note, Repair
from dragoman.wire.target import Target

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""All efforts, from lowest to highest."""

# The token budget assumed for each effort, for conversion in both directions.
BUDGETS = {
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    "high": 16384,
    "xhigh": 24576,
    "max": 32000,
}
_MEDIUM = "medium"


def with_supported_thinking(request: Request, target: Target, notes: list[Note]) -> Request:
    """Convert the thinking settings to the target's form."""
    config = request.thinking
    if config is None or (target.thinking.form == "any" and target.thinking.efforts is None):
        return request
    found: list[Note] = []
    made = _converted(config, target, found)
    if made is not None and made.effort is not None and target.thinking.efforts is not None:
        made = _with_known_effort(made, target.thinking.efforts, found)
    if made is not None and target.thinking.budget_range is not None:
        made = _within(made, target, target.thinking.budget_range, found)
    if made is config:
        return request
    if not found:
        action: Action = "dropped" if made is None else "retyped"
        found.append(Repair("thinking", "W12", action, "converted to what this model supports"))
    notes += found
    return request.replace_trusted(thinking=made)


def _converted(config: ThinkingConfig, target: Target, notes: list[Note]) -> ThinkingConfig | None:
    if target.thinking.is_always_on and target.thinking.form == "adaptive":
        config = _always_on(config, target, notes)
    is_bare = bool(config.enabled) and config.effort is None and config.budget is None
    if is_bare and target.thinking.form == "effort" and target.thinking.is_on_by_default:
        return config.replace(enabled=None)  # the model decides how much
    return _FORMS.get(target.thinking.form, _as_it_is)(config, notes)


def _always_on(config: ThinkingConfig, target: Target, notes: list[Note]) -> ThinkingConfig:
    """For a model that can't switch thinking off: use the lowest effort instead."""
    if not is_thinking_off(config):
        return config
    notes.append(Loss("thinking", "can't be turned off; the minimum is requested"))
    least = target.thinking.efforts[0] if target.thinking.efforts else None
    return ThinkingConfig(effort=least, visible=config.visible)


def _as_it_is(config: ThinkingConfig, _notes: list[Note]) -> ThinkingConfig | None:
    return config


def _never(config: ThinkingConfig, notes: list[Note]) -> ThinkingConfig | None:
    is_requested = (
        config.enabled or config.budget is not None or config.effort not in {None, "none"}
    )
    if is_requested and config.enabled is not False:
        notes.append(Loss("thinking", "this model does not support thinking"))
    return None


def _by_effort(config: ThinkingConfig, notes: list[Note]) -> ThinkingConfig | None:
    """As an effort: a budget or a switch becomes the nearest effort."""
    changes = _without_budget(config, notes)
    if config.enabled is False:
        changes |= {"effort": "none", "enabled": None}
    elif config.enabled:
        changes.setdefault("effort", config.effort or _MEDIUM)
        changes["enabled"] = None
    return config.replace(**changes) if changes else config


def _by_switch(config: ThinkingConfig, notes: list[Note]) -> ThinkingConfig | None:
    """As a switch, with an optional effort."""
    changes = _without_budget(config, notes)
    if changes:
        changes["enabled"] = config.enabled is not False
    if config.effort == "none":
        changes |= {"enabled": False, "effort": None}
    return config.replace(**changes) if changes else config


def _by_budget(config: ThinkingConfig, notes: list[Note]) -> ThinkingConfig | None:
    """As a token budget, estimated from the effort."""
    if config.enabled is False or config.effort == "none":
        return config.replace(enabled=False, effort=None, budget=None)
    if config.budget is not None or (config.enabled is None and config.effort is None):
        return config
    if config.effort is not None:
        notes.append(Loss("thinking.effort", "converted to a token budget"))
    return config.replace(enabled=True, budget=BUDGETS.get(config.effort or _MEDIUM, 8192))


def _adaptively(config: ThinkingConfig, notes: list[Note]) -> ThinkingConfig | None:
    """As a switch with an optional effort; the model decides how much to think."""
    if config.effort == "none":
        return _either(config, notes)
    changes = _without_budget(config, notes)
    if changes and config.enabled is None:
        changes["enabled"] = True
    return config.replace(**changes) if changes else config


def _either(config: ThinkingConfig, _notes: list[Note]) -> ThinkingConfig | None:
    """As given, but effort `none` switches thinking off: efforts also affect the response."""
    if config.effort != "none":
        return config
    return config.replace(enabled=False, effort=None, budget=None)


_FORMS = {
    "never": _never,
    "effort": _by_effort,
    "switch": _by_switch,
    "template": _by_switch,
    "budget": _by_budget,
    "adaptive": _adaptively,
    "either": _either,
}


def _without_budget(config: ThinkingConfig, notes: list[Note]) -> dict[str, Any]:
    """The changes that replace the budget with the nearest effort."""
    if config.budget is None:
        return {}
    notes.append(Loss("thinking.budget", "converted to the nearest effort"))
    if config.effort is not None or config.enabled is False:
        return {"budget": None}
    budget = config.budget
    return {"budget": None, "effort": min(BUDGETS, key=lambda one: abs(BUDGETS[one] - budget))}


def _with_known_effort(
    config: ThinkingConfig, known: tuple[str, ...], notes: list[Note]
) -> ThinkingConfig:
    effort = config.effort
    if effort in known:
        return config
    if effort not in EFFORTS or not known:
        if config.budget is None:  # otherwise the budget is kept
            notes.append(Loss("thinking.effort", "this effort is not supported"))
        return config.replace(effort=None)
    wanted = EFFORTS.index(effort)
    candidates = [one for one in known if one in EFFORTS and (one != "none" or effort == "none")]
    if not candidates:
        notes.append(Loss("thinking.effort", "this effort is not supported"))
        return config.replace(effort=None)
    # Of two equally near efforts the higher wins, as in Google's endpoint for OpenAI clients.
    nearest = min(candidates[::-1], key=lambda one: abs(EFFORTS.index(one) - wanted))
    if effort == "none":  # it thinks all the same
        notes.append(Loss("thinking.effort", NEAREST_EFFORT))
    else:
        notes.append(Repair("thinking.effort", "W12", "retyped", NEAREST_EFFORT))
    return config.replace(effort=nearest)


def _within(
    config: ThinkingConfig, target: Target, limits: tuple[int, ...], notes: list[Note]
) -> ThinkingConfig:
    """Limit the token budget to the model's range."""
    least, most = limits
    is_off = config.enabled is False or config.budget == 0
    if is_off and target.thinking.is_always_on:
        notes.append(Loss("thinking", "can't be turned off; the minimum is requested"))
        return config.replace(enabled=None, budget=least)
    if is_off or config.budget is None or least <= config.budget <= most or config.budget < 0:
        return config
    notes.append(Loss("thinking.budget", "limited to this model's range"))
    return config.replace(budget=min(max(config.budget, least), most))


def will_think(config: ThinkingConfig | None, target: Target) -> bool:
    """Whether the model will think, as far as the settings tell."""
    if config is None:
        return target.thinking.is_on_by_default
    if is_thinking_off(config):
        return False
    said = (config.enabled, config.effort, config.budget)
    return target.thinking.is_on_by_default or any(one is not None for one in said)


def is_thinking_off(config: ThinkingConfig | None) -> bool:
    """Whether thinking is switched off."""
    return config is not None and (config.enabled is False or config.effort == "none")
