"""Settings that Anthropic refuses together, or beyond their limits (W59)."""

from __future__ import annotations

from typing import Any

from dragoman.model.frozen import EMPTY
from dragoman.model.requests import Request
from dragoman.wire.anthropic.settings import LEAST_TOP_P, MIN_BUDGET, is_on, thinking_field
from dragoman.wire.fitting.steps import Step
from dragoman.wire.losses import Loss, Note
from dragoman.wire.target import Target


def with_low_temperature(request: Request, target: Target, notes: list[Note]) -> Request:
    """With a temperature of 1 at the most."""
    temperature = request.sampling.temperature
    if not target.is_strict or temperature is None or temperature <= 1:
        return request
    notes.append(Loss("sampling.temperature", "it goes up to 1 here"))
    return request.replace(sampling=request.sampling.replace(temperature=1))


def with_smaller_budget(request: Request, target: Target, notes: list[Note]) -> Request:
    """With a budget smaller than what may be written in all, which includes it."""
    config, limit = request.thinking, request.sampling.max_tokens
    if not target.is_strict or config is None or limit is None:
        return request
    field = thinking_field(config)
    budget = field.get("budget_tokens")
    if not is_on(field) or type(budget) is not int or budget < limit:
        return request
    if limit > MIN_BUDGET:
        notes.append(Loss("thinking.budget", "it is cut to what may be written in all"))
        # Half of it, or nothing would be left to answer with.
        return request.replace(thinking=config.replace(budget=max(MIN_BUDGET, limit // 2)))
    notes.append(Loss("thinking", "there is no room for it in what may be written in all"))
    return request.replace(thinking=config.replace(enabled=False, budget=None, extras=EMPTY))


def with_sampling_for_thinking(request: Request, target: Target, notes: list[Note]) -> Request:
    """Without what can't be set while the model thinks."""
    sampling = request.sampling
    refused = {
        "temperature": sampling.temperature not in (None, 1),
        "top_p": sampling.top_p is not None and sampling.top_p < LEAST_TOP_P,
        "top_k": sampling.top_k is not None,
    }
    names = [name for name, is_refused in refused.items() if is_refused]
    config = request.thinking
    if not names or not target.is_strict or config is None or not is_on(thinking_field(config)):
        return request
    reason = "it can't be set while the model thinks"
    notes.extend(Loss(f"sampling.{name}", reason) for name in names)
    changes: dict[str, Any] = dict.fromkeys(names)
    return request.replace(sampling=sampling.replace(**changes))


STEPS = (
    Step(with_low_temperature, ("is_strict",)),
    Step(with_smaller_budget, ("is_strict",)),
    Step(with_sampling_for_thinking, ("is_strict",)),
)
"""What fitting sees to for this dialect alone."""
