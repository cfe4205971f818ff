"""Repairs for Anthropic only: conflicting settings, and thinking in a prefilled response."""

from __future__ import annotations

from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message
from dragoman.model.parts import Thinking
from dragoman.model.requests import Request
from dragoman.model.roles import Role
from dragoman.wire.anthropic.dialect import NAME, RANGES
from dragoman.wire.anthropic.request import belongs_to_system_prompt
from dragoman.wire.anthropic.settings import (
    MIN_BUDGET,
    MIN_TOP_P,
    PLACES,
    SETTINGS,
    is_on,
    thinking_field,
)
from dragoman.wire.fitting.settings import sampling_within
from dragoman.wire.fitting.steps import Contents, Step, unless_same
from dragoman.wire.losses import Loss, Note, Repair
from dragoman.wire.overlay import fields_of
from dragoman.wire.overlay_edits import without_edited
from dragoman.wire.rows import SILENT
from dragoman.wire.target import Target

_ROOM = 4096
"""Tokens for the answer beside a thinking budget, if the request has no limit."""


def with_smaller_budget(request: Request, _target: Target, notes: list[Note]) -> Request:
    """Make the thinking budget smaller than `max_tokens`, which includes it."""
    config, limit = request.thinking, request.sampling.max_tokens
    if config is None or limit is None:
        return request
    field = thinking_field(config)
    budget = field.get("budget_tokens")
    if not is_on(field) or type(budget) is not int or budget < limit:
        return request
    if limit > MIN_BUDGET:
        notes.append(Loss("thinking.budget", "lowered to fit into max_tokens"))
        # Half of the limit, so that some is left for the response.
        return request.replace_trusted(thinking=config.replace(budget=max(MIN_BUDGET, limit // 2)))
    notes.append(Loss("thinking", "turned off: max_tokens leaves no room for it"))
    return request.replace_trusted(
        thinking=config.replace(enabled=False, budget=None, extras=EMPTY)
    )


def with_sampling_for_thinking(request: Request, _target: Target, notes: list[Note]) -> Request:
    """Remove sampling settings that are refused while thinking is on."""
    config, sampling = request.thinking, request.sampling
    if config is None or not is_on(thinking_field(config)):
        return request
    refused = {
        "temperature": sampling.temperature not in (None, 1),
        "top_p": sampling.top_p is not None and sampling.top_p < MIN_TOP_P,
        "top_k": sampling.top_k is not None,
    }
    names = [name for name, is_refused in refused.items() if is_refused]
    if not names:
        return request
    notes.extend(Loss(f"sampling.{name}", "not supported while thinking is on") for name in names)
    changes: dict[str, Any] = dict.fromkeys(names)
    return request.replace_trusted(sampling=sampling.replace_trusted(**changes))


def with_token_limit(request: Request, target: Target, notes: list[Note]) -> Request:
    """Add a token limit if the target requires one (W50)."""
    if request.sampling.max_tokens is not None:
        return request
    extras = EMPTY if request.extras is EMPTY else without_edited(request, NAME, PLACES)
    if "max_tokens" in fields_of(extras, NAME):
        return request  # malformed: let the target report it
    config, limit = request.thinking, target.sampling.default_output_tokens
    if config is not None and is_on(thinking_field(config)):
        limit = max(limit, (config.budget or 0) + _ROOM)  # the budget counts towards the limit
    reason = "max_tokens is required; a default is sent"
    notes.append(Repair("sampling.max_tokens", "W50", "added", reason))
    return request.replace_trusted(sampling=request.sampling.replace_trusted(max_tokens=limit))


def without_fast_mode(request: Request, _target: Target, notes: list[Note]) -> Request:
    """Remove the tier that is sent as `speed`, for a model that has no fast mode, or a host."""
    service = request.service
    if service is None or SETTINGS.write(Request(service=service), SILENT).get("speed") != "fast":
        return request
    notes.append(Loss("service.tier", "this model has no fast mode"))
    return request.replace(service=service.replace(tier=None))


def without_thinking_in_prefill(request: Request, _target: Target, notes: list[Note]) -> Request:
    """Remove thinking from a prefilled response while thinking is off (W53)."""
    config = request.thinking
    if config is not None and thinking_field(config).get("type") in ("enabled", "adaptive"):
        return request
    reason = "with thinking off, a prefilled response can't contain thinking"
    first = _prefill_start(request.messages)
    messages = list(request.messages[:first])
    for index, message in enumerate(request.messages[first:], first):
        thoughts = [place for place, part in enumerate(message.parts) if _is_thinking(part)]
        if not thoughts or message.role is not Role.ASSISTANT:
            messages.append(message)
            continue
        notes.extend(Loss(f"messages[{index}].parts[{place}]", reason) for place in thoughts)
        if rest := tuple(part for part in message.parts if not _is_thinking(part)):
            messages.append(message.replace_unchecked(parts=rest))
    left = unless_same(messages, request.messages)
    return request if left is request.messages else request.replace_trusted(messages=left)


def _prefill_start(messages: tuple[Message, ...]) -> int:
    """The index of the first message of the prefill, which may span several messages."""
    first = len(messages)
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role is Role.ASSISTANT:
            first = index
        elif not belongs_to_system_prompt(messages[index]):
            break
    return first


def _is_thinking(part: AnyPart) -> bool:
    return isinstance(part, Thinking)


def _is_strict(_seen: Contents, target: Target) -> bool:
    return target.is_strict


def _has_thinking(seen: Contents, target: Target) -> bool:
    return seen.has_thinking and target.thinking.is_refused_in_prefill


def _has_one_speed(_seen: Contents, target: Target) -> bool:
    return not target.sampling.has_fast_mode


def _needs_limit(_seen: Contents, target: Target) -> bool:
    return target.sampling.needs_token_limit


STEPS = (
    sampling_within(RANGES),
    Step(with_smaller_budget, ("is_strict",), _is_strict),
    Step(with_sampling_for_thinking, ("is_strict",), _is_strict),
    Step(without_thinking_in_prefill, ("thinking.is_refused_in_prefill",), _has_thinking),
    Step(without_fast_mode, ("sampling.has_fast_mode",), _has_one_speed),
    Step(with_token_limit, ("sampling.needs_token_limit",), _needs_limit),
)
"""Fitting steps for this dialect only."""
